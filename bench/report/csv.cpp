#include "csv.h"

#include "frontier.h"
#include "markup.h"

namespace bench {
namespace {

std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string result = "\"";
  for (const char c : text) result += c == '"' ? std::string("\"\"") : std::string(1, c);
  return result + "\"";
}

std::string speed(const Speed& speed) {
  if (speed.median <= 0) return ",,";
  return fixed(speed.median, 6) + "," + fixed(speed.minimum, 6) + "," + fixed(speed.maximum, 6);
}

void add_set(std::string& table, const std::string& name, const SetFigures& set) {
  for (const CodecFigures& codec : set.codecs) {
    std::string not_held;
    for (const auto& [reason, files] : codec.not_held) {
      not_held += (not_held.empty() ? "" : "; ") + reason + ": " + std::to_string(files);
    }
    table += cell(name) + "," + codec.name + "," + cell(codec.absent.empty() ? codec.version : "absent") + "," +
             std::to_string(codec.files) + "," + std::to_string(set.files) + "," + std::to_string(codec.pixels) + "," +
             std::to_string(codec.bytes) + "," + std::to_string(codec.supplied_bytes) + "," + fixed(codec.ratio(), 6) +
             "," + fixed(codec.bits_per_pixel(), 4) + "," + speed(codec.encode) + "," + speed(codec.decode) + "," +
             speed(codec.encode_all) + "," + speed(codec.decode_all) + "," + speed(codec.decode_gpu) + ",";
    table += codec.memory && !codec.decodes_only ? std::to_string(codec.memory->encode) : "";
    table += ",";
    table += codec.memory ? std::to_string(codec.memory->decode) : "";
    table += std::string(",") + (codec.lossy ? "yes" : "no") + "," + (codec.lossless ? "yes" : "no") + "," +
             (codec.psnr > 0 ? fixed(codec.psnr, 2) : "") + "," + cell(not_held) + "," +
             (on_frontier(set, codec, Direction::decode) ? "yes" : "no") + "," +
             (on_frontier(set, codec, Direction::encode) ? "yes" : "no") + "\n";
  }
}

}  // namespace

std::string csv_table(const Results& results) {
  std::string table =
      "category,codec,version,files,files_of_set,pixels,bytes,supplied_bytes,ratio,bits_per_pixel,"
      "encode_mpps,encode_least,encode_most,decode_mpps,decode_least,decode_most,"
      "encode_all_mpps,encode_all_least,encode_all_most,decode_all_mpps,decode_all_least,decode_all_most,"
      "decode_gpu_mpps,decode_gpu_least,decode_gpu_most,encode_memory,decode_memory,lossy,lossless,psnr_db,not_held,"
      "decode_frontier,encode_frontier\n";
  for (const SetFigures& set : results.categories) add_set(table, set.name, set);
  add_set(table, "all", results.whole);
  return table;
}

}  // namespace bench
