// index.json of a data set (spec/shard.md, section 5), in memory.
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

using Digest = std::array<uint8_t, L3_DIGEST_BYTES>;

struct ShardSummary {
  std::string file;
  uint64_t bytes = 0, samples = 0, groups = 0;
  uint32_t index_check = 0;
  Digest digest{};
};

struct DataSetIndex {
  std::vector<std::string> classes;
  std::vector<ShardSummary> shards;

  uint64_t samples() const;
  uint64_t groups() const;
};

// Whether a text is UTF-8. Only such a text can be a class name.
bool is_utf8(std::string_view text);

// Returns the text of index.json. All classes must be UTF-8.
std::string to_json(const DataSetIndex& index);

struct JsonFault {
  uint64_t offset;
  std::string reason;
};
// Reads and verifies the text of an index.json. Returns the fault, or nothing.
std::optional<JsonFault> read_json(std::string_view text, DataSetIndex& index);

std::string hexadecimal(const Digest& digest);
bool from_hexadecimal(std::string_view text, Digest& digest);

}  // namespace loader
