#include "base/hex.h"
#include "base/json_writer.h"
#include "loader/data_writer.h"
#include "loader/shard_format.h"

namespace loader {

std::string to_json(const DataSetIndex& index) {
  std::string json = "{\n \"format\": ";
  base::append_json_text(json, kIndexFormat);
  json += ",\n \"version\": " + std::to_string(kShardVersion) + ",\n \"samples\": " + std::to_string(index.samples());
  json += ",\n \"groups\": " + std::to_string(index.groups());
  json += ",\n \"classes\": [";
  for (size_t i = 0; i < index.classes.size(); ++i) {
    json += i > 0 ? ",\n  " : "\n  ";
    base::append_json_text(json, index.classes[i]);
  }
  json += "],\n \"shards\": [";
  for (size_t i = 0; i < index.shards.size(); ++i) {
    const ShardSummary& shard = index.shards[i];
    json += i > 0 ? ",\n  {\"file\": " : "\n  {\"file\": ";
    base::append_json_text(json, shard.file);
    json += ", \"bytes\": " + std::to_string(shard.bytes) + ", \"samples\": " + std::to_string(shard.samples) +
            ", \"groups\": " + std::to_string(shard.groups);
    if (shard.index_bytes) json += ", \"index_bytes\": " + std::to_string(*shard.index_bytes);
    json += ", \"index_check\": " + std::to_string(shard.index_check) + ", \"digest\": \"" +
            base::hexadecimal(shard.digest) + "\"}";
  }
  return json + "]\n}\n";
}

}  // namespace loader
