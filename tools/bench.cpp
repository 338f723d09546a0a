// l3 bench: compares codecs on a folder of images.
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
#include "model_files.h"
#include "options.h"

namespace tools {
namespace {

constexpr const char* kAll = "all";
const std::vector<std::string> kDefaultCodecs = {"png", "spng", "jpeg90",   "webp",    "jxl3",      "jpegls",
                                                 "qoi", "zstd", "l3-paper", "l3-fast", "l3-dense1", "l3-dense5"};

// The chosen codecs, each once, in the order of bench::codec_names().
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
  ModelFiles models;
  if (const auto failure = models.open_for_encoding(options.models)) {
    console.fail(*failure);
    return kExitFailed;
  }
  bench::use_l3_models(models.all());
  if (!options.out.empty()) {
    if (const auto failure = make_folder_of(join(options.out, "report.html"))) {
      console.fail(*failure);
      return kExitFailed;
    }
  }
  const bench::Results results = run_bench(options, context);
  if (results.whole.files == 0) return kExitFailed;  // every failure was printed, and there is nothing to report

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
    if (written)
      console.note(join(options.out, "report.html"), "report written, with its tables and plots in the same folder");
  }
  return written && results.failed == 0 ? kExitDone : kExitFailed;
}

}  // namespace

void add_bench(CommandLine& line) {
  Subcommand sub = line.command("bench", "Compare the size and speed of image codecs on your images");
  auto options = std::make_shared<BenchOptions>();
  options->codecs = kDefaultCodecs;
  sub.option("DIR", options->folder, "A folder of images, with all folders below it, or a single image")
      .required()
      .type("")
      .local();
  std::vector<std::string> names = bench::codec_names();
  names.emplace_back(kAll);
  sub.option("--codecs", options->codecs,
             "Codecs to measure (default: the faster ones: " + joined(kDefaultCodecs, ", ") + ")")
      .list_of(names);
  add_models(sub, options->models, "A model from l3 train for l3-dense1 to l3-dense9")
      .details("The size of the model is not counted");
  sub.option("--out", options->out, "Write a report to this folder: report.html, results.csv, results.json, SVG")
      .type(kFolderType);
  add_threads(sub, options->threads, "-j,--threads", "Also measure with N threads");
  sub.option("--rounds", options->rounds, "Measure N times and print the median, 1 to 1000 (default: 3)")
      .type("N")
      .whole_between(1, 1000);
  sub.option("--seconds", options->seconds,
             "Measure a sample of the images in about N seconds; 0: all images (default: 60)")
      .type("N")
      .whole_between(0, 1000000)
      .details(
          "No image is begun after this time, and none that would take more than twice the time left. Categories share "
          "the time");
  sub.option("--by", options->by, "Figures by folder, if there are at most 24 (default), or only totals (none)")
      .one_of({"folder", "none"});
  sub.flag("--no-memory", options->no_memory, "Do not measure memory");
  sub.flag("--training", options->training,
           "Also measure how fast PNG, JPEG, WebP and L3 files and L3 shards feed a training")
      .group("Training")
      .details("The images of the most frequent shape are written in each of these ways and read again");
  sub.option("--step-ms", options->step_ms,
             "Milliseconds of a training step (default: half the time to load a batch of PNGs)")
      .type("MS")
      .above_0()
      .group("Training");
  sub.option("--scratch", options->scratch,
             "Folder for the temporary files of --training (default: that of the system)")
      .type(kFolderType)
      .group("Training");
  sub.flag("--json", options->json, "Print one line of JSON").details("Its keys keep their meaning in later versions");
  add_quiet(sub, options->quiet);
  add_limits(sub, options->limits, false);
  sub.examples(
      "  l3 bench photos/                                              takes about a minute\n"
      "  l3 bench photos/ --codecs all --seconds 0 --out report/       all codecs and images, with a report\n"
      "  l3 bench photos/ --codecs png,l3-fast --threads 1 --json\n");
  sub.footer(
      "Codecs:\n"
      "  png, png9          libpng: PNG files as they are, and all images at level 9\n"
      "  spng, stb          libspng, and stb_image (decodes only)\n"
      "  jpeg90, jpeg100    libjpeg-turbo at quality 90 and 100: lossy\n"
      "  webp, webp90       libwebp: lossless, and lossy at quality 90\n"
      "  jxl1, jxl3, jxl7   libjxl, lossless, at effort 1, 3 and 7\n"
      "  jpegls, qoi, zstd  CharLS, QOI, and Zstandard on raw samples\n"
      "  l3-fast, l3-dense1 ... l3-dense9    this library: method fast, and dense at efforts 1 to 9\n"
      "  l3-paper           the scheme of the paper arXiv 2208.08711\n\n"
      "Columns: ratio is the size compared with the files as they are (lower is better). MP/s is million pixels per\n"
      "second (higher is better). A star marks a codec that cannot hold all of the images.\n\n"
      "Exit status: 1 if a file cannot be read or a lossless codec changes an image.\n");
  sub.manual(
      "More about the codecs:\n"
      "  png                  images that are not PNG files are written at the default level\n"
      "  spng                 decodes the files of png; so does stb\n"
      "  webp                 lossless as in `cwebp -z 6`\n"
      "  zstd                 level 3\n"
      "\n"
      "PNG and L3 keep palettes, transparency and all chunks. The other codecs hold only samples; of palette images\n"
      "they hold the indices. If a codec cannot hold an image, its figures do not include the image; nothing is\n"
      "reduced to make it fit. Every decoded image is compared with its source.\n\n"
      "The speed is measured from a file in memory to samples in memory, and back. With one thread, the time is the\n"
      "processor time of the thread, which other programs hardly change. With more threads, it is wall-clock time, "
      "and\n"
      "each thread works on its own files. Codecs take turns in each round. The figures are the median of the rounds,\n"
      "and half the distance between the slowest and the fastest. An encoder that takes more than 10 seconds for a\n"
      "batch, or a fiftieth of --seconds if that is less, is timed only once.\n\n"
      "Memory is the growth of the process while it encodes or decodes one image. If l3 can use a GPU, the GPU "
      "decodes\n"
      "whole batches of L3 files from pinned memory to its own memory.\n");
  sub.run([options](Context& context) { return bench_folder(*options, context); });
}

}  // namespace tools
