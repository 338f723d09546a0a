// The index of one part of a data set. l3 merge joins these indexes.
#include <string>
#include <utility>

#include "base/json_reader.h"
#include "base/json_writer.h"
#include "file_io.h"
#include "set_writer.h"

namespace tools {

std::string part_index_name(uint32_t part, uint32_t parts) {
  return "part-" + std::to_string(part) + "of" + std::to_string(parts) + ".json";
}

// The index of a data set with three more members.
std::string to_json(const PartIndex& index) {
  std::string json = "{\n \"part\": " + std::to_string(index.part) + ",\n \"parts\": " + std::to_string(index.parts) +
                     ",\n \"settings\": ";
  base::append_json_text(json, index.settings);
  return json + "," + loader::to_json(index.index).substr(1);
}

Outcome<PartIndex> read_part_index(const std::string& path) {
  const Outcome<bridge::Buffer> file = read_file(path);
  if (!file) return file.failure();
  const std::string_view text(reinterpret_cast<const char*>(file->bytes().data()), file->size());
  PartIndex result;
  uint64_t part = 0, parts = 0;
  std::string name;
  base::JsonReader json(text);
  json.open_object();
  while (json.next_member(name)) {
    if (name == "part") {
      json.integer(part);
    } else if (name == "parts") {
      json.integer(parts);
    } else if (name == "settings") {
      json.text(result.settings);
    } else {
      json.skip();
    }
  }
  if (json.failed()) return Failure{path, json.place(), json.reason()};
  if (part == 0 || part > parts || parts > UINT32_MAX) return Failure{path, std::nullopt, "not the index of a part"};
  result.part = static_cast<uint32_t>(part);
  result.parts = static_cast<uint32_t>(parts);
  if (const auto fault = loader::read_json(text, result.index)) return Failure{path, fault->offset, fault->reason};
  return result;
}

}  // namespace tools
