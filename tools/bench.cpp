// l3 bench: codecs against each other on a folder of images.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "bench/timing.h"
#include "command_tree.h"
#include "file_io.h"
#include "image_tree.h"
#include "json.h"
#include "options.h"
#include "parallel.h"
#include "progress.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace tools {
namespace {

struct BenchOptions {
  std::string folder;
  std::vector<std::string> codecs = {"png", "l3-fast", "l3-dense5"};
  l3_limits limits{};
  uint32_t threads = 1;
  uint32_t rounds = 3;
  bool json = false;
  bool quiet = false;
};

// Samples of a batch, in bytes. More than any cache holds, so that every codec starts from memory; an image is there up
// to three times.
constexpr uint64_t kBatchBytes = uint64_t{256} << 20;

// Keeps freed memory in the process, so that no codec pays in every round for pages that the system hands out anew.
void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
#endif
}

Outcome<bench::Sample> read_sample(const std::string& path, const l3_limits& limits) try {
  Outcome<bridge::Buffer> file = read_file(path);
  if (!file) return file.failure();
  formats::Result<formats::Image> image = formats::read(file->bytes(), read_options(limits));
  if (!image) return failure_in(path, image.error());
  return bench::Sample{path, std::move(*file), std::move(*image)};
} catch (...) {
  return caught(path);
}

std::string as_json(const bench::Report& report, const BenchOptions& options, uint32_t threads, uint64_t failed) {
  Json json;
  json.open_object().key("codecs").open_array();
  for (const bench::CodecReport& codec : report.codecs) {
    json.open_object().member("codec", codec.codec).member("bytes", codec.bytes);
    json.key("ratio").number(codec.ratio, 6);
    json.key("encode_mpps").number(codec.encode_mpps, 3);
    json.key("decode_mpps").number(codec.decode_mpps, 3);
    json.member("lossless", codec.lossless).close_object();
  }
  json.close_array().member("files", report.files).member("failed", failed).member("pixels", report.pixels);
  json.member("supplied_bytes", report.supplied_bytes).member("threads", threads).member("rounds", options.rounds);
  return json.member("cpu", l3_cpu_target()).close_object().line();
}

std::vector<std::string> each_once(const std::vector<std::string>& names) {
  std::vector<std::string> result;
  for (const std::string& name : names) {
    if (std::find(result.begin(), result.end(), name) == result.end()) result.push_back(name);
  }
  return result;
}

void print_table(const bench::Report& report, const BenchOptions& options, uint32_t threads, Console& console) {
  char line[160];
  std::snprintf(line, sizeof line, "%-10s %14s %8s %14s %14s  %s", "codec", "bytes", "ratio", "encode MP/s",
                "decode MP/s", "lossless");
  console.print(line);
  for (const bench::CodecReport& codec : report.codecs) {
    std::snprintf(line, sizeof line, "%-10s %14llu %8.4f %14.1f %14.1f  %s", codec.codec.c_str(),
                  static_cast<unsigned long long>(codec.bytes), codec.ratio, codec.encode_mpps, codec.decode_mpps,
                  codec.lossless ? "yes" : "NO");
    console.print(line);
  }
  console.print(std::to_string(report.files) + " files, " + shown_number(static_cast<double>(report.pixels) / 1e6, 1) +
                " MP, " + std::to_string(threads) + (threads == 1 ? " thread, " : " threads, ") + l3_cpu_target() +
                ", median of " + std::to_string(options.rounds) + (options.rounds == 1 ? " round" : " rounds"));
}

int bench_folder(const BenchOptions& options, Context& context) {
  Console& console = context.console;
  console.set_quiet(options.quiet);
  const Tree tree = is_folder(options.folder) ? list_tree(options.folder, Kind::foreign) : Tree{{""}, 0, {}, {}};
  for (const std::string& skipped : tree.skipped) console.note(skipped, kSkipped);
  for (const Failure& failure : tree.failures) console.fail(failure);
  if (tree.files.empty()) {
    if (!tree.failures.empty()) return kExitFailed;
    console.fail({options.folder, std::nullopt, "no images in this folder"});
    return kExitFailed;
  }

  keep_freed_memory();
  Parallel parallel(options.threads);
  bench::Timing timing(each_once(options.codecs), options.rounds, parallel.for_l3());
  std::vector<bench::Sample> batch;
  uint64_t batch_bytes = 0, failed = tree.failures.size(), done = 0;
  const auto measure_batch = [&] {
    if (console.stderr_is_terminal()) {
      console.status(std::to_string(done) + "/" + std::to_string(tree.files.size()) + " files read, measuring");
    }
    timing.measure(std::move(batch));
    batch.clear();
    batch_bytes = 0;
  };
  for (const std::string& file : tree.files) {
    Outcome<bench::Sample> sample =
        read_sample(file.empty() ? options.folder : join(options.folder, file), options.limits);
    ++done;
    if (!sample) {
      console.fail(sample.failure());
      ++failed;
      continue;
    }
    batch_bytes += sample->image.pixels.size();
    batch.push_back(std::move(*sample));
    if (batch_bytes >= kBatchBytes) measure_batch();
  }
  if (!batch.empty()) measure_batch();

  console.clear_status();
  const bench::Report report = timing.report();
  for (const bench::Problem& problem : report.problems) console.fail({problem.name, std::nullopt, problem.reason});
  if (report.files == 0) return kExitFailed;  // every one is named; there is nothing to report
  if (options.json) {
    console.print(as_json(report, options, parallel.threads(), failed + report.problems.size()));
  } else {
    print_table(report, options, parallel.threads(), console);
  }
  return failed == 0 && report.problems.empty() ? kExitDone : kExitFailed;
}

}  // namespace

void add_bench(CLI::App& app, Command& chosen) {
  CLI::App* sub = app.add_subcommand("bench", "Measure size and speed of codecs on a folder of images");
  auto options = std::make_shared<BenchOptions>();
  sub->add_option("DIR", options->folder, "A folder of images, with all folders below it, or one file")
      ->required()
      ->type_name("");
  take_names(sub->add_option("--codecs", options->codecs, "Which to measure (default: png,l3-fast,l3-dense5)"),
             bench::codec_names());
  sub->add_option("-j,--threads", options->threads, "Files to work on side by side, 1 to 1024 (default: 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024).description(""));
  sub->add_option("--rounds", options->rounds, "Rounds to take the median of, 1 to 1000 (default: 3)")
      ->type_name("N")
      ->check(CLI::Range(1, 1000).description(""));
  sub->add_flag("--json", options->json, "One line of JSON, with keys that stay");
  add_quiet(*sub, options->quiet);
  add_limits(*sub, options->limits, false);
  sub->footer(
      "png      bytes: the files as supplied (others than PNG: as libpng writes them at its default level);\n"
      "         encode: libpng at its default level; decode: the supplied file.\n"
      "l3-fast  bytes, encode and decode: libl3 with the method fast, checks and metadata included;\n"
      "         l3-dense1, l3-dense5, l3-dense9: with the method dense at these efforts.\n"
      "l3-paper the scheme of the paper arXiv 2208.08711, implemented anew, to compare with: images of 8 bits\n"
      "         without a palette.\n\n"
      "ratio is to the bytes of all files as supplied: less is better. MP/s are million pixels per second of the "
      "clock\n"
      "on the wall, from file in memory to samples in memory and back, the median over rounds in which the codecs "
      "take\n"
      "turns. Every codec's images are compared with the source, chunks included; a difference is a failure (exit code "
      "1).\n\n"
      "Examples:\n"
      "  l3 bench photos/\n"
      "  l3 bench photos/ --codecs png,l3-fast --threads 1 --rounds 5 --json\n");
  sub->callback(
      [options, &chosen] { chosen = [options](Context& context) { return bench_folder(*options, context); }; });
}

}  // namespace tools
