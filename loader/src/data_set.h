// The implementation of an open data set.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "l3/l3_data.h"
#include "loader/data_set_index.h"
#include "loader/store.h"
#include "name_table.h"
#include "shard_index.h"

namespace loader {

struct CloseModel {
  void operator()(l3_model* model) const { l3_close_model(model); }
};

struct Shard {
  const std::string& name() const { return object->name(); }  // the path or URL

  std::unique_ptr<Object> object;
  size_t number = 0;  // in the data set
  uint64_t size = 0;
  ShardIndex index;
  uint64_t first_sample = 0, first_group = 0;
  std::vector<const l3_model*> models;  // null for a model that is not valid
  std::optional<Digest> digest;         // from index.json, if it has one
};

// The file name of a shard.
std::string_view file_of(const Shard& shard);

// Identifies the contents of a data set, wherever it is.
Digest digest_of(std::span<const std::unique_ptr<Shard>> shards);

// The options for its store. They point into `options`.
StoreOptions store_options(const l3_data_options& options);

class CacheStore;

}  // namespace loader

struct l3_data_set {
  l3_data_set(std::shared_ptr<loader::Store> of, const l3_data_options& wanted);
  ~l3_data_set();
  l3_data_set(const l3_data_set&) = delete;
  l3_data_set& operator=(const l3_data_set&) = delete;

  l3_status open(const std::string& shard, l3_data_error* error);

  // The number of the shard that contains a sample.
  size_t shard_number_of(uint64_t sample) const {
    const auto next = std::upper_bound(shards.begin(), shards.end(), sample,
                                       [](uint64_t number, const auto& shard) { return number < shard->first_sample; });
    return static_cast<size_t>(next - shards.begin() - 1);
  }
  const loader::Shard& shard_of(uint64_t sample) const { return *shards[shard_number_of(sample)]; }
  std::string_view name_of(uint64_t sample) const {
    const loader::Shard& shard = shard_of(sample);
    return shard.index.name(static_cast<uint32_t>(sample - shard.first_sample));
  }
  loader::NameTable::NameOf names() const {
    return [this](uint64_t number) { return name_of(number); };
  }
  // A read of a part of a sample, from byte `offset` of the sample.
  loader::Read read_of(uint64_t number, const l3_data_sample& sample, uint64_t offset, uint64_t size, void* to) const;

  // Declared before the shards, whose objects need it.
  std::shared_ptr<loader::Store> store;
  std::shared_ptr<loader::CacheStore> cache;  // the same as `store`, if the data set has a cache
  l3_data_options options;
  std::vector<std::unique_ptr<loader::Shard>> shards;
  std::vector<std::string> classes;
  uint64_t samples = 0, groups = 0, bytes = 0, sample_bytes = 0, index_bytes = 0;
  std::optional<loader::NameTable> table;
  std::map<loader::Digest, std::unique_ptr<l3_model, loader::CloseModel>> models;  // null: not valid
  std::vector<const l3_model*> valid_models;

  // Takes the next shard: `end` has the last bytes of its file.
  l3_status add_shard(std::unique_ptr<loader::Shard> shard, std::vector<uint8_t> end,
                      const loader::ShardSummary* summary, l3_data_error* error);

 private:
  l3_status read_json(std::vector<loader::ShardSummary>& summaries, l3_data_error* error);
  l3_status open_shards(const std::vector<loader::ShardSummary>& summaries, bool are_described, l3_data_error* error);
  l3_status check_head(const loader::Shard& shard, l3_data_error* error) const;
  l3_status open_models(loader::Shard& shard, l3_data_error* error);
  l3_status build_table(l3_data_error* error);
};
