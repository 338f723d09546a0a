// The results of `l3 bench` as JSON and as a table for the terminal.
#include <algorithm>
#include <array>
#include <cstdio>

#include "base/json_writer.h"
#include "bench_run.h"
#include "command_tree.h"
#include "progress.h"

namespace tools {
namespace {

constexpr int kSpeedDigits = 6;

void add_speed(base::Json& json, const char* name, const bench::Speed& speed) {
  json.key(name).number(speed.median, kSpeedDigits);
  json.key(std::string(name) + "_spread")
      .open_array()
      .number(speed.minimum, kSpeedDigits)
      .number(speed.maximum, kSpeedDigits)
      .close_array();
}

void add_codec(base::Json& json, const bench::CodecFigures& codec, bool all_threads) {
  json.open_object().member("codec", codec.name).member("title", codec.title);
  if (!codec.absent.empty()) {
    json.member("absent", codec.absent).member("package", codec.package).close_object();
    return;
  }
  json.member("version", codec.version).member("files", codec.files).member("pixels", codec.pixels);
  json.member("bytes", codec.bytes).member("supplied_bytes", codec.supplied_bytes);
  json.member("sample_bytes", codec.sample_bytes);
  json.key("ratio").number(codec.ratio(), 6);
  json.key("bits_per_pixel").number(codec.bits_per_pixel(), 4);
  if (!codec.decodes_only) add_speed(json, "encode_mpps", codec.encode);
  add_speed(json, "decode_mpps", codec.decode);
  if (all_threads) {
    if (!codec.decodes_only) add_speed(json, "encode_all_mpps", codec.encode_all);
    add_speed(json, "decode_all_mpps", codec.decode_all);
  }
  if (codec.decode_gpu.median > 0) add_speed(json, "decode_gpu_mpps", codec.decode_gpu);
  json.member("lossy", codec.lossy).member("lossless", codec.lossless).member("samples_only", codec.samples_only);
  if (codec.psnr > 0) json.key("psnr_db").number(codec.psnr, 2);
  if (codec.memory) {
    if (!codec.decodes_only) json.member("encode_memory", codec.memory->encode);
    json.member("decode_memory", codec.memory->decode);
  }
  json.key("not_held").open_object();
  for (const auto& [reason, files] : codec.not_held) json.member(reason, files);
  json.close_object().close_object();
}

void add_set(base::Json& json, const bench::SetFigures& set, bool all_threads) {
  json.key("codecs").open_array();
  for (const bench::CodecFigures& codec : set.codecs) add_codec(json, codec, all_threads);
  json.close_array().member("files", set.files).member("pixels", set.pixels);
  json.member("supplied_bytes", set.supplied_bytes).member("sample_bytes", set.sample_bytes);
  json.key("clock_seconds").number(set.clock_seconds, 6).key("processor_seconds").number(set.processor_seconds, 6);
}

std::string format_speed(const bench::Speed& speed) {
  return speed.median > 0 ? format_number(speed.median, speed.median < 10 ? 2 : speed.median < 100 ? 1 : 0) : "-";
}

// How much the rounds differ, in percent of the median.
std::string format_spread(const bench::Speed& speed) {
  if (speed.rounds < 2 || speed.median <= 0) return "";
  return "+-" + format_number(50 * (speed.maximum - speed.minimum) / speed.median, 0) + "%";
}

std::string format_lossless(const bench::CodecFigures& codec) {
  if (codec.lossy) return codec.psnr > 0 ? "lossy, " + format_number(codec.psnr, 1) + " dB" : "lossy";
  return codec.lossless ? (codec.samples_only ? "yes, samples" : "yes") : "NO";
}

// A line of a table. The first cell is aligned to the left, the last one as it is, the others to the right.
std::string row(const std::vector<std::string>& cells, const std::vector<size_t>& widths) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    const size_t pad = widths[i] - std::min(widths[i], cells[i].size());
    if (i == 0) {
      line += cells[i] + std::string(pad, ' ');
    } else if (i + 1 == cells.size()) {
      line += "  " + cells[i];
    } else {
      line += "  " + std::string(pad, ' ') + cells[i];
    }
  }
  return line;
}

std::vector<std::string> formatted(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(rows[0].size());
  for (const auto& cells : rows) {
    for (size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], cells[i].size());
  }
  std::vector<std::string> lines;
  for (const auto& cells : rows) lines.push_back(row(cells, widths));
  return lines;
}

std::vector<std::string> table_of(const bench::SetFigures& set, uint32_t threads) {
  const bool all = threads > 1;
  const bool gpu = std::any_of(set.codecs.begin(), set.codecs.end(),
                               [](const bench::CodecFigures& codec) { return codec.decode_gpu.median > 0; });
  const bool memory = std::any_of(set.codecs.begin(), set.codecs.end(),
                                  [](const bench::CodecFigures& codec) { return codec.memory.has_value(); });
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string>& head = rows.emplace_back();
  head = {"codec", "bytes", "ratio", "encode MP/s", "", "decode MP/s", ""};
  if (all) {
    head.push_back("encode x" + std::to_string(threads));
    head.push_back("decode x" + std::to_string(threads));
  }
  if (gpu) head.emplace_back("decode GPU");
  if (memory) head.insert(head.end(), {"enc. MB", "dec. MB"});
  head.push_back("lossless");
  for (const bench::CodecFigures& codec : set.codecs) {
    if (codec.files == 0) continue;
    std::vector<std::string>& cells = rows.emplace_back();
    cells = {codec.name + (codec.files < set.files ? "*" : ""),
             std::to_string(codec.bytes),
             format_number(codec.ratio(), 4),
             format_speed(codec.encode),
             format_spread(codec.encode),
             format_speed(codec.decode),
             format_spread(codec.decode)};
    if (all) cells.insert(cells.end(), {format_speed(codec.encode_all), format_speed(codec.decode_all)});
    if (gpu) cells.push_back(format_speed(codec.decode_gpu));
    if (memory) {
      const auto display_name = [](uint64_t bytes) { return format_number(static_cast<double>(bytes) / 1e6, 1); };
      cells.push_back(codec.memory && !codec.decodes_only ? display_name(codec.memory->encode) : "-");
      cells.push_back(codec.memory ? display_name(codec.memory->decode) : "-");
    }
    cells.push_back(format_lossless(codec));
  }
  return formatted(rows);
}

std::vector<std::string> training_table(const bench::TrainingFigures& training) {
  std::vector<std::vector<std::string>> rows = {{"data set as", "bytes", "images/s", "from disk", "stalled", ""}};
  for (const bench::FeedFigures& feed : training.feeds) {
    rows.push_back({feed.name, std::to_string(feed.bytes), format_number(feed.warm, 1), format_number(feed.cold, 1),
                    format_number(100 * feed.stalled, 0) + "%", feed.lossy ? "lossy" : ""});
  }
  std::vector<std::string> lines = {"feeding a training: " + training.about};
  for (std::string& line : formatted(rows)) lines.push_back(std::move(line));
  lines.push_back(std::to_string(training.threads) + " threads, batches of " + std::to_string(training.batch) +
                  "; stalled: the share of the time that a training waits for data, at " +
                  format_number(training.step_seconds * 1e3, 1) + " ms a step");
  return lines;
}

std::string count_of(uint64_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

}  // namespace

std::string bench_json(const bench::Results& results) {
  const bool all = results.threads > 1;
  base::Json json;
  json.open_object();
  add_set(json, results.whole, all);
  json.member("failed", results.failed).member("listed_files", results.listed_files);
  json.member("sampled", results.sampled).member("threads", results.threads).member("folder", results.folder);
  json.member("command", results.command).member("memory_image", results.memory_image);
  json.key("categories").open_array();
  for (const bench::SetFigures& set : results.categories) {
    json.open_object().member("category", set.name);
    add_set(json, set, all);
    json.close_object();
  }
  json.close_array();
  if (results.training) {
    const bench::TrainingFigures& training = *results.training;
    json.key("training").open_object().member("about", training.about).member("images", training.images);
    json.member("threads", training.threads).member("batch", training.batch);
    json.key("step_seconds").number(training.step_seconds, 6);
    json.key("feeds").open_array();
    for (const bench::FeedFigures& feed : training.feeds) {
      json.open_object().member("feed", feed.name).member("bytes", feed.bytes).member("lossy", feed.lossy);
      json.key("warm").number(feed.warm, 1).key("cold").number(feed.cold, 1).key("stalled").number(feed.stalled, 4);
      json.close_object();
    }
    json.close_array().close_object();
  }
  const bench::Machine& machine = results.machine;
  json.key("machine").open_object().member("processor", machine.processor).member("processors", machine.processors);
  json.member("memory", machine.memory).member("system", machine.system).member("compiler", machine.compiler);
  json.member("gpu", machine.gpu).member("library", machine.library).member("date", machine.date).close_object();
  return json.member("cpu", l3_cpu_target()).close_object().line();
}

std::vector<std::string> bench_table(const bench::Results& results) {
  std::vector<std::string> lines;
  for (const bench::SetFigures& set : results.categories) {
    lines.push_back(set.name + ": " + count_of(set.files, "file", "files") + ", " +
                    format_number(static_cast<double>(set.pixels) / 1e6, 1) + " MP");
    for (std::string& line : table_of(set, results.threads)) lines.push_back(std::move(line));
    lines.emplace_back();
  }
  if (!results.categories.empty()) lines.emplace_back("all images:");
  for (std::string& line : table_of(results.whole, results.threads)) lines.push_back(std::move(line));
  uint32_t rounds = 0;
  std::string absent;
  std::vector<std::string> packages, left_out;
  for (const bench::CodecFigures& codec : results.whole.codecs) {
    rounds = std::max(rounds, codec.decode.rounds);
    if (!codec.absent.empty()) {
      absent += (absent.empty() ? "" : ", ") + codec.name;
      if (std::find(packages.begin(), packages.end(), codec.package) == packages.end())
        packages.push_back(codec.package);
    }
    std::string reasons;
    for (const auto& [reason, files] : codec.not_held) {
      reasons += (reasons.empty() ? "" : ", ") + std::to_string(files) + " (" + reason + ")";
    }
    if (!reasons.empty()) left_out.push_back("  " + codec.name + ": " + reasons);
  }
  lines.push_back(count_of(results.whole.files, "file", "files") +
                  (results.sampled ? " of " + std::to_string(results.listed_files) + " (limited by --seconds)" : "") +
                  ", " + format_number(static_cast<double>(results.whole.pixels) / 1e6, 1) + " MP, " +
                  count_of(results.threads, "thread", "threads") + ", " + l3_cpu_target() + ", median of " +
                  count_of(rounds, "round", "rounds"));
  if (!left_out.empty()) lines.emplace_back("* without the images that the codec cannot hold:");
  lines.insert(lines.end(), left_out.begin(), left_out.end());
  if (!absent.empty()) {
    lines.push_back("not measured, because this l3 was built without their libraries: " + absent +
                    " (on Debian: apt-get install " + joined(packages, " ") + ", then build l3 again)");
  }
  if (results.whole.busy() >= bench::kBusy) {
    lines.push_back("the machine was busy: work on one thread took " + format_number(results.whole.busy(), 1) +
                    " times its processor time" +
                    (results.threads > 1 ? ", so the columns for several threads are too low" : std::string()));
  }
  if (!results.memory_image.empty()) lines.push_back("memory was measured on " + results.memory_image);
  if (results.training) {
    lines.emplace_back();
    for (std::string& line : training_table(*results.training)) lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace tools
