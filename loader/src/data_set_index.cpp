#include "loader/data_set_index.h"

#include <utility>

#include "base/hex.h"
#include "base/json_reader.h"
#include "loader/names.h"
#include "loader/shard_format.h"

namespace loader {
namespace {

// Tracks which of the required members have been read.
class Members {
 public:
  // Returns the number of a known name and marks it as read; -1 for other names.
  int take(std::string_view name, base::JsonReader& json) {
    for (size_t i = 0; i < names_.size(); ++i) {
      if (names_[i] != name) continue;
      if ((seen_ >> i & 1) != 0) json.fail("a member occurs twice");
      seen_ |= 1u << i;
      return static_cast<int>(i);
    }
    return -1;
  }
  // Whether all members but the last `optional` ones have been read.
  bool all(base::JsonReader& json, size_t optional = 0) const {
    const uint32_t required = (1u << (names_.size() - optional)) - 1;
    return (seen_ & required) == required || json.fail("a member is missing");
  }

  explicit Members(std::vector<std::string_view> names) : names_(std::move(names)) {}

 private:
  std::vector<std::string_view> names_;
  uint32_t seen_ = 0;
};

bool read_digest(base::JsonReader& json, Digest& digest) {
  std::string text;
  if (!json.text(text)) return false;
  return base::from_hexadecimal(text, digest) || json.fail("a digest must have 32 hexadecimal digits");
}

bool read_shard(base::JsonReader& json, ShardSummary& shard) {
  Members members({"file", "bytes", "samples", "groups", "index_check", "digest", "index_bytes"});
  std::string name;
  if (!json.open_object()) return false;
  while (json.next_member(name)) {
    uint64_t check = 0;
    switch (members.take(name, json)) {
      case 0:
        if (json.text(shard.file) && (!is_name(shard.file) || shard.file.find('/') != shard.file.npos)) {
          json.fail("the file name of a shard is invalid");
        }
        break;
      case 1: json.integer(shard.bytes); break;
      case 2: json.integer(shard.samples); break;
      case 3: json.integer(shard.groups); break;
      case 4:
        if (json.integer(check) && check > UINT32_MAX) json.fail("the index check is not below 2^32");
        shard.index_check = static_cast<uint32_t>(check);
        break;
      case 5: read_digest(json, shard.digest); break;
      case 6: json.integer(shard.index_bytes.emplace()); break;
      default: json.skip();
    }
  }
  return !json.failed() && members.all(json, 1);
}

bool read_members(base::JsonReader& json, DataSetIndex& index) {
  Members members({"format", "version", "samples", "groups", "classes", "shards"});
  std::string text;
  uint64_t number = 0, samples = 0, groups = 0;
  if (!json.open_object()) return false;
  while (json.next_member(text)) {
    switch (members.take(text, json)) {
      case 0:
        if (json.text(text) && text != kIndexFormat) json.fail("not the index of an l3 data set");
        break;
      case 1:
        if (json.integer(number) && number != kShardVersion) {
          json.fail(number == 0 ? "version 0, which l3 at commit 96825ae reads" : "a later version");
        }
        break;
      case 2: json.integer(samples); break;
      case 3: json.integer(groups); break;
      case 4:
        for (json.open_array(); json.next_element();) {
          if (json.text(text)) index.classes.push_back(text);
        }
        break;
      case 5:
        for (json.open_array(); json.next_element();) {
          if (read_shard(json, index.shards.emplace_back()) || json.failed()) continue;
        }
        break;
      default: json.skip();
    }
  }
  if (json.failed() || !members.all(json) || !json.end()) return false;
  // A sum that overflows is detected when the shards are opened.
  if (samples != index.samples()) return json.fail("the number of samples is not the sum over the shards");
  if (groups != index.groups()) return json.fail("the number of groups is not the sum over the shards");
  return true;
}

}  // namespace

std::optional<JsonFault> read_json(std::string_view text, DataSetIndex& index) {
  base::JsonReader json(text);
  if (read_members(json, index)) return std::nullopt;
  return JsonFault{json.place(), json.reason()};
}

}  // namespace loader
