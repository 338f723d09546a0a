// index.json of a data set (spec/shard.md, section 5), in memory. data_writer.h writes it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "l3/l3.h"

namespace loader {

inline constexpr const char* kIndexFile = "index.json";
inline constexpr std::string_view kIndexFormat = "l3 data set";

using Digest = std::array<uint8_t, L3_DIGEST_BYTES>;

struct ShardSummary {
  std::string file;
  uint64_t bytes = 0, samples = 0, groups = 0;
  uint32_t index_check = 0;
  Digest digest{};
  std::optional<uint64_t> index_bytes;  // the size of its index, if known
};

struct DataSetIndex {
  std::vector<std::string> classes;  // UTF-8
  std::vector<ShardSummary> shards;

  uint64_t samples() const { return sum(&ShardSummary::samples); }
  uint64_t groups() const { return sum(&ShardSummary::groups); }

 private:
  uint64_t sum(uint64_t ShardSummary::*count) const {
    uint64_t sum = 0;
    for (const ShardSummary& shard : shards) sum += shard.*count;
    return sum;
  }
};

struct JsonFault {
  uint64_t offset;
  std::string reason;
};
// Reads and verifies the text of an index.json. Returns the fault, or nothing.
std::optional<JsonFault> read_json(std::string_view text, DataSetIndex& index);

}  // namespace loader
