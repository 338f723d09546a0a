// l3 bench: codecs against each other on a folder of images.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "bench/report.h"
#include "bench/timing.h"
#include "bench_run.h"
#include "command_tree.h"
#include "file_io.h"
#include "image_tree.h"
#include "options.h"

namespace tools {
namespace {

constexpr const char* kAll = "all";
const std::vector<std::string> kDefaultCodecs = {"png", "spng", "jpeg90",   "webp",    "jxl3",      "jpegls",
                                                 "qoi", "zstd", "l3-paper", "l3-fast", "l3-dense1", "l3-dense5"};

// In the order of all codecs, each once.
std::vector<std::string> chosen_codecs(const std::vector<std::string>& names) {
  const bool all = std::find(names.begin(), names.end(), kAll) != names.end();
  std::vector<std::string> result;
  for (const std::string& name : bench::codec_names()) {
    if (all || std::find(names.begin(), names.end(), name) != names.end()) result.push_back(name);
  }
  return result;
}

int bench_folder(BenchOptions options, Context& context) {
  Console& console = context.console;
  console.set_quiet(options.quiet);
  options.codecs = chosen_codecs(options.codecs);
  if (!options.out.empty()) {
    if (const auto failure = make_folder_of(join(options.out, "report.html"))) {
      console.fail(*failure);
      return kExitFailed;
    }
  }
  const bench::Results results = run_bench(options, context);
  if (results.whole.files == 0) return kExitFailed;  // every failure is named; there is nothing to report

  const std::string json = bench_json(results);
  if (options.json) {
    console.print(json);
  } else {
    for (const std::string& line : bench_table(results)) console.print(line);
  }
  bool written = true;
  if (!options.out.empty()) {
    std::vector<bench::ReportFile> files = bench::make_report(results);
    files.push_back({"results.json", json + "\n"});
    for (const bench::ReportFile& file : files) {
      const std::string path = join(options.out, file.name);
      const auto* bytes = reinterpret_cast<const uint8_t*>(file.contents.data());
      if (const auto failure = write_file(path, {bytes, file.contents.size()}, Flush::none, context.unfinished)) {
        console.fail(*failure);
        written = false;
      }
    }
    if (written) console.note(join(options.out, "report.html"), "written, with its tables and plots beside it");
  }
  return written && results.failed == 0 ? kExitDone : kExitFailed;
}

}  // namespace

void add_bench(CommandLine& line) {
  Subcommand sub = line.command("bench", "Measure size and speed of codecs on a folder of images");
  auto options = std::make_shared<BenchOptions>();
  options->codecs = kDefaultCodecs;
  sub.option("DIR", options->folder, "A folder of images, with all folders below it, or one file").required().type("");
  std::vector<std::string> names = bench::codec_names();
  names.emplace_back(kAll);
  sub.option("--codecs", options->codecs,
             "Codecs to measure; all: all of them (default: the quicker ones: " + joined(kDefaultCodecs, ", ") + ")")
      .list_of(names);
  sub.option("--out", options->out, "Write a report to this folder: report.html, results.csv, results.json, SVG")
      .type(kFolderType);
  add_threads(sub, options->threads, "-j,--threads",
              "Also measure with so many threads, each on files of its own, after one thread alone");
  sub.option("--rounds", options->rounds, "Rounds to take the median of, 1 to 1000 (default: 3)")
      .type("N")
      .whole_between(1, 1000);
  sub.option("--seconds", options->seconds,
             "Begin no image after so many seconds, and none that would take more than twice the time left. The "
             "categories share the time; of each, a sample is measured. 0: measure all images (default: 60)")
      .type("N")
      .whole_between(0, 1000000);
  sub.option("--by", options->by,
             "folder: each folder in DIR is a category, unless there are more than 24 (default). none: no categories")
      .one_of({"folder", "none"});
  sub.flag("--no-memory", options->no_memory, "Do not measure the memory that codecs take");
  sub.flag("--training", options->training,
           "Also write images of one shape as PNG, JPEG, WebP and L3 files and as L3 shards, and measure how fast "
           "each of them feeds a training")
      .group("Training");
  sub.option("--step-ms", options->step_ms,
             "Time that a step of that training takes, in milliseconds (default: half the time of a batch of PNG "
             "files)")
      .type("MS")
      .above_0()
      .group("Training");
  sub.option("--scratch", options->scratch,
             "Folder to write those files to; they are removed again (default: the one for temporary files)")
      .type(kFolderType)
      .group("Training");
  sub.flag("--json", options->json, "Print one line of JSON; keys keep their meaning in later versions");
  add_quiet(sub, options->quiet);
  add_limits(sub, options->limits, false);
  sub.footer(
      "Codecs:\n"
      "  png, png9          libpng. png: PNG files as supplied, others written at the default level. png9: all at "
      "level 9\n"
      "  spng, stb          libspng and stb_image, which decode the same files; stb_image encodes nothing\n"
      "  jpeg90, jpeg100    libjpeg-turbo at these qualities: lossy\n"
      "  webp, webp90       libwebp: lossless as `cwebp -z 6` is, and at quality 90: lossy\n"
      "  jxl1, jxl3, jxl7   libjxl, lossless, at these efforts\n"
      "  jpegls, qoi        CharLS, and the reference implementation of QOI\n"
      "  zstd               libzstd at level 3 on the bare samples\n"
      "  l3-paper           the scheme of the paper arXiv 2208.08711, implemented anew\n"
      "  l3-fast            libl3 with the method fast; l3-dense1, l3-dense5, l3-dense9: dense at these efforts\n\n"
      "PNG and L3 keep palettes, transparency and all chunks; the others hold samples alone, palettes as indices. An\n"
      "image that a codec cannot hold is left out of that codec's figures, which are marked with a star: nothing is\n"
      "reduced to make it fit. Every decoded image is compared with its source; a difference is a failure (exit code "
      "1).\n"
      "\n"
      "ratio is to the bytes of the same files as supplied: less is better. MP/s are million pixels per second, from "
      "file\n"
      "in memory to samples in memory and back: on one thread of its processor time, which other programs do not "
      "change,\n"
      "on more threads of the clock on the wall. Each is the median over rounds in which the codecs take turns, with "
      "half\n"
      "the distance between the slowest and the quickest. An encoder that takes more than 10 seconds for a batch (a\n"
      "fiftieth of --seconds) is timed once. Memory is what the process grows by while one image is encoded or "
      "decoded.\n"
      "A GPU that this l3 can use decodes whole batches of l3 files, from pinned memory to its own.\n\n"
      "Examples:\n"
      "  l3 bench photos/\n"
      "  l3 bench photos/ --codecs all --seconds 0 --out report/\n"
      "  l3 bench photos/ --codecs png,l3-fast --threads 1 --rounds 5 --json\n");
  sub.run([options](Context& context) { return bench_folder(*options, context); });
}

}  // namespace tools
