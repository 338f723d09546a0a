// Verifies what opening a data set does not.
#include <algorithm>
#include <array>
#include <new>

#include "data_error.h"
#include "data_set.h"
#include "image_head.h"

namespace loader {
namespace {

// Verifies that the file contains only zero bytes from `begin` to `end`.
FileFault check_zero(const ShardFile& file, uint64_t begin, uint64_t end) {
  std::array<uint8_t, kFirstSample> bytes;
  const uint64_t size = end - begin;
  if (const FileFault fault = file.read(begin, bytes.data(), size)) return fault;
  for (uint64_t i = 0; i < size; ++i) {
    if (bytes[i] != 0) return {{"a byte between samples is not zero", begin + i}, 0};
  }
  return {};
}

FileFault check_gaps(const Shard& shard) {
  if (const FileFault fault = check_zero(shard.file, kHeadBytes, kFirstSample)) return fault;
  const Footer& footer = shard.index.footer();
  for (uint32_t i = 0; i < footer.entries; ++i) {
    const uint8_t* at = shard.index.entry(i);
    const uint64_t end = load_u64(at + entry::kOffset) + load_u64(at + entry::kSize);
    if (end == padded(end)) continue;
    if (const FileFault fault = check_zero(shard.file, end, padded(end))) return fault;
  }
  return {};
}

l3_status verify_shard(const Shard& shard, l3_data_error* error) {
  if (const FileFault fault = check_gaps(shard)) return fail(error, shard.file.path(), fault);
  const Footer& footer = shard.index.footer();
  for (uint32_t i = 0; i < footer.models; ++i) {
    if (shard.models[i] != nullptr) continue;
    const uint64_t place = footer.index_offset + uint64_t{footer.entries} * kEntryBytes + i * kModelEntryBytes;
    return fail(error, shard.file.path(), Fault{"a model is not valid", place});
  }
  std::vector<uint8_t> end(static_cast<size_t>(footer.index_size) + kFooterBytes);
  if (const FileFault fault = shard.file.read(footer.index_offset, end.data(), end.size())) {
    return fail(error, shard.file.path(), fault);
  }
  Digest digest{};
  l3_digest(end.data(), end.size(), digest.data());
  if (shard.digest && digest != *shard.digest) {
    return fail(error, shard.file.path(), Fault{"the digest differs from the one in index.json", footer.index_offset});
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
    return verify_shard(*set->shards[shard], error);
  } catch (const std::bad_alloc&) {
    return fail(error, L3_ERROR_MEMORY, set->shards[shard]->file.path(), "out of memory");
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
  const std::string& file = set->shards[sample.shard]->file.path();
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
