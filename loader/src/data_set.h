// The implementation of an open data set.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "l3/l3_data.h"
#include "loader/data_set_index.h"
#include "name_table.h"
#include "shard_file.h"
#include "shard_index.h"

namespace loader {

struct CloseModel {
  void operator()(l3_model* model) const { l3_close_model(model); }
};

struct Shard {
  Shard(std::string path, OpenFiles& open_files) : file(std::move(path), open_files) {}

  ShardFile file;
  ShardIndex index;
  uint64_t first_sample = 0, first_group = 0;
  std::vector<const l3_model*> models;  // null for a model that is not valid
  std::optional<Digest> digest;         // from index.json, if it has one
};

}  // namespace loader

struct l3_data_set {
  explicit l3_data_set(const l3_data_options& wanted);

  l3_status open(const std::string& path, l3_data_error* error);

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

  l3_data_options options;
  loader::OpenFiles open_files;
  std::vector<std::unique_ptr<loader::Shard>> shards;
  std::vector<std::string> classes;
  uint64_t samples = 0, groups = 0, bytes = 0, sample_bytes = 0, index_bytes = 0;
  std::optional<loader::NameTable> table;
  std::map<loader::Digest, std::unique_ptr<l3_model, loader::CloseModel>> models;  // null: not valid
  std::vector<const l3_model*> valid_models;

 private:
  l3_status open_folder(const std::string& path, l3_data_error* error);
  l3_status open_shard(const std::string& path, const loader::ShardSummary* summary, l3_data_error* error);
  l3_status open_models(loader::Shard& shard, l3_data_error* error);
  l3_status build_table(l3_data_error* error);
};
