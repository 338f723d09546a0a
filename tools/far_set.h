// Data sets in far stores: what l3 upload and l3 download share.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "failure.h"
#include "l3/l3_data.hpp"
#include "loader/data_set_index.h"
#include "loader/store.h"

namespace tools {

// A failure of an object or a store of this name.
Failure failure_of(const std::string& name, const loader::StoreFault& fault);

Outcome<std::unique_ptr<loader::Store>> open_far_store(const std::string& url);

// The end of an object.
struct FarEnd {
  std::vector<uint8_t> bytes;
  uint64_t object_size = 0;
};

// Reads the last `size` bytes of an object, or all of it if it is shorter. Nothing if there is no such object.
Outcome<std::optional<FarEnd>> read_end(loader::Store& store, const std::string& key, uint64_t size);

// Reads index.json. Nothing if there is none.
Outcome<std::optional<std::vector<uint8_t>>> read_far_index(loader::Store& store);

// Where the parts of a shard are.
struct ShardPlace {
  uint64_t first_sample = 0, samples = 0;  // their numbers in the data set
  uint64_t index_offset = 0;               // the index and the footer are the rest of the file
};

// Finds the places of all shards. Fails if the data set is not the one that `index` describes.
Outcome<std::vector<ShardPlace>> find_places(const l3::DataSet& set, const loader::DataSetIndex& index,
                                             const std::string& name);

// Whether these bytes are the index and the footer of this shard.
bool is_end_of(const loader::ShardSummary& shard, std::span<const uint8_t> bytes);

// Whether the store has this shard: an object of its size that ends with its index and footer.
Outcome<bool> has_shard(loader::Store& store, const loader::ShardSummary& shard, const ShardPlace& place);

}  // namespace tools
