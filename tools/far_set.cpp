#include "far_set.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "data_sets.h"
#include "loader/data_writer.h"
#include "loader/shard_format.h"

namespace tools {
namespace {

constexpr uint64_t kUsualIndexBytes = uint64_t{1} << 20;
constexpr uint64_t kMaxIndexBytes = uint64_t{1} << 28;  // as for opening

}  // namespace

Failure failure_of(const std::string& name, const loader::StoreFault& fault) {
  Failure failure{name, std::nullopt, fault.reason};
  if (fault.offset != L3_DATA_NONE) failure.offset = fault.offset;
  return failure;
}

Outcome<std::unique_ptr<loader::Store>> open_far_store(const std::string& url) {
  loader::StoreFault fault;
  std::unique_ptr<loader::Store> store = loader::open_store(url, {}, fault);
  if (store == nullptr) return failure_of(path_text(url), fault);
  return store;
}

Outcome<std::optional<FarEnd>> read_end(loader::Store& store, const std::string& key, uint64_t size) {
  const std::unique_ptr<loader::Object> object = store.open(key);
  FarEnd end;
  end.bytes.resize(static_cast<size_t>(size));
  std::array<loader::Read, 1> reads;
  loader::Read& read = reads.front();
  read.object = object.get();
  read.size = size;
  read.to = end.bytes.data();
  read.from_end = true;
  std::array<loader::StoreFault, 1> faults;
  store.read(reads, faults);
  if (faults.front().system_error == ENOENT) return std::optional<FarEnd>();
  if (faults.front()) return failure_of(object->name(), faults.front());
  end.bytes.resize(static_cast<size_t>(std::min(read.size, size)));
  end.object_size = read.object_size;
  return std::optional(std::move(end));
}

Outcome<std::optional<std::vector<uint8_t>>> read_far_index(loader::Store& store) {
  using Bytes = std::optional<std::vector<uint8_t>>;
  uint64_t size = kUsualIndexBytes;
  for (;;) {
    Outcome<std::optional<FarEnd>> end = read_end(store, loader::kIndexFile, size);
    if (!end) return end.failure();
    if (!*end) return Bytes();
    if ((*end)->object_size == (*end)->bytes.size()) return Bytes(std::move((*end)->bytes));
    const std::string name = store.open(loader::kIndexFile)->name();
    if ((*end)->object_size > kMaxIndexBytes) return Failure{name, std::nullopt, "larger than the limit of 256 MiB"};
    if ((*end)->object_size <= size) return Failure{name, std::nullopt, "has changed while it was read"};
    size = (*end)->object_size;
  }
}

Outcome<std::vector<ShardPlace>> find_places(const l3::DataSet& set, const loader::DataSetIndex& index,
                                             const std::string& name) {
  const Failure changed{name, std::nullopt, "the data set has changed while it was opened"};
  const l3_data_info info = set.info();
  if (info.shards != index.shards.size() || info.samples != index.samples()) return changed;
  std::vector<ShardPlace> places;
  uint64_t first = 0;
  for (const loader::ShardSummary& shard : index.shards) {
    ShardPlace place{first, shard.samples, loader::kFirstSample};
    if (shard.samples > 0) {
      const l3::Sample last = set.sample(first + shard.samples - 1);
      if (last.shard != places.size() || set.sample(first).shard != places.size()) return changed;
      place.index_offset = loader::ShardBuilder::next_after(last.offset + last.size);
    }
    if (shard.bytes < loader::kFooterBytes || place.index_offset > shard.bytes - loader::kFooterBytes) return changed;
    places.push_back(place);
    first += shard.samples;
  }
  return places;
}

bool is_end_of(const loader::ShardSummary& shard, std::span<const uint8_t> bytes) {
  loader::Digest digest{};
  l3_digest(bytes.data(), bytes.size(), digest.data());
  return digest == shard.digest;
}

Outcome<bool> has_shard(loader::Store& store, const loader::ShardSummary& shard, const ShardPlace& place) {
  Outcome<std::optional<FarEnd>> end = read_end(store, shard.file, shard.bytes - place.index_offset);
  if (!end) return end.failure();
  return *end && (*end)->object_size == shard.bytes && is_end_of(shard, (*end)->bytes);
}

}  // namespace tools
