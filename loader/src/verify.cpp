// Verifies what opening a data set does not.
#include <algorithm>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "data_error.h"
#include "data_set.h"
#include "image_head.h"

namespace loader {
namespace {

// The zero bytes of a shard: behind its head, and between samples.
class Gaps {
 public:
  Gaps(Store& store, const Shard& shard) : store_(store), shard_(shard) {}

  StoreFault check() {
    if (store_.keeps_samples_apart()) return {};
    add(kHeadBytes, kFirstSample);
    const Footer& footer = shard_.index.footer();
    for (uint32_t i = 0; i < footer.entries; ++i) {
      const uint8_t* at = shard_.index.entry(i);
      const uint64_t end = load_u64(at + entry::kOffset) + load_u64(at + entry::kSize);
      if (end < padded(end)) add(end, padded(end));
      if (reads_.size() < kAtOnce && i + 1 < footer.entries) continue;
      if (StoreFault fault = check_added()) return fault;
    }
    return check_added();
  }

 private:
  static constexpr size_t kAtOnce = 1024;  // reads

  void add(uint64_t begin, uint64_t end) {
    Read& read = reads_.emplace_back();
    read.object = shard_.object.get();
    read.offset = begin;
    read.size = end - begin;
    read.object_size = shard_.size;
  }
  StoreFault check_added() {
    size_t size = 0;
    for (const Read& read : reads_) size += static_cast<size_t>(read.size);
    bytes_.resize(size);
    faults_.assign(reads_.size(), {});
    uint8_t* to = bytes_.data();
    for (Read& read : reads_) {
      read.to = to;
      to += read.size;
    }
    const std::vector<Read> wanted = reads_;  // reading may change them
    store_.read(reads_, faults_);
    reads_.clear();
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (faults_[i]) return faults_[i];
      const uint8_t* const end = wanted[i].to + wanted[i].size;
      const uint8_t* const found =
          std::find_if(wanted[i].to, wanted[i].to + wanted[i].size, [](uint8_t b) { return b != 0; });
      if (found == end) continue;
      const uint64_t place = wanted[i].offset + static_cast<uint64_t>(found - wanted[i].to);
      return {L3_ERROR_CORRUPT, 0, place, "a byte between samples is not zero"};
    }
    return {};
  }

  Store& store_;
  const Shard& shard_;
  std::vector<Read> reads_;
  std::vector<StoreFault> faults_;
  std::vector<uint8_t> bytes_;
};

l3_status verify_shard(Store& store, const Shard& shard, l3_data_error* error) {
  if (const StoreFault fault = Gaps(store, shard).check()) return fail(error, shard.name(), fault);
  const Footer& footer = shard.index.footer();
  for (uint32_t i = 0; i < footer.models; ++i) {
    if (shard.models[i] != nullptr) continue;
    const uint64_t place = footer.index_offset + uint64_t{footer.entries} * kEntryBytes + i * kModelEntryBytes;
    return fail(error, shard.name(), Fault{"a model is not valid", place});
  }
  std::vector<uint8_t> end(static_cast<size_t>(footer.index_size) + kFooterBytes);
  Read read;
  read.object = shard.object.get();
  read.from_end = true;
  read.size = end.size();
  read.to = end.data();
  StoreFault fault;
  store.read({&read, 1}, {&fault, 1});
  if (fault) return fail(error, shard.name(), fault);
  Digest digest{};
  l3_digest(end.data(), end.size(), digest.data());
  if (shard.digest && digest != *shard.digest) {
    return fail(error, shard.name(), Fault{"the digest differs from the one in index.json", footer.index_offset});
  }
  return succeed(error);
}

}  // namespace
}  // namespace loader

using namespace loader;

l3_status l3_data_verify_shard(const l3_data_set* set, uint64_t shard, l3_data_error* error) {
  if (set == nullptr) return fail(error, L3_ERROR_ARGUMENT, "", "a pointer that must not be null is null");
  if (shard >= set->shards.size()) return fail(error, L3_ERROR_ARGUMENT, "", "there is no shard with this number");
  try {
    return verify_shard(*set->store, *set->shards[shard], error);
  } catch (const std::bad_alloc&) {
    return fail(error, L3_ERROR_MEMORY, set->shards[shard]->name(), "out of memory");
  } catch (const std::system_error& why) {
    return fail(error, L3_ERROR_MEMORY, set->shards[shard]->name(),
                std::string("cannot start a thread: ") + why.what());
  }
}

l3_status l3_data_check_sample(const l3_data_set* set, uint64_t index, const void* data, size_t size,
                               l3_data_error* error) {
  l3_data_sample sample = l3_data_sample_init();
  if (data == nullptr && size > 0) {
    return fail(error, L3_ERROR_ARGUMENT, "", "a pointer that must not be null is null");
  }
  if (l3_data_get(set, index, &sample) != L3_OK) {
    return fail(error, L3_ERROR_ARGUMENT, "", "there is no sample with this number");
  }
  const std::span<const uint8_t> bytes(static_cast<const uint8_t*>(data), size);
  const std::string& file = set->shards[sample.shard]->name();
  if (sample.kind == L3_DATA_IMAGE) {
    l3_info info = l3_info_init();
    l3_error why{};
    if (check_image_head(sample, bytes, info, why) == L3_OK) return succeed(error);
    return fail(error, why.status, file, why.reason, sample.offset + why.offset);
  }
  Digest found{};
  l3_digest(bytes.data(), bytes.size(), found.data());
  if (std::equal(found.begin(), found.end(), std::begin(sample.digest))) return succeed(error);
  return fail(error, file, Fault{"the digest of a sample differs from the index", sample.offset});
}
