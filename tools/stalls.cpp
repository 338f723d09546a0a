// l3 stalls: finds out what a training waits for.
#include <charconv>
#include <cmath>
#include <memory>
#include <thread>

#include "command_tree.h"
#include "data_sets.h"
#include "file_io.h"
#include "image_tree.h"
#include "layouts.h"
#include "options.h"
#include "progress.h"
#include "stalls_runs.h"
#include "stalls_text.h"

namespace tools {
namespace {

std::string check_crop(const std::string& text, uint32_t* height = nullptr, uint32_t* width = nullptr) {
  uint32_t numbers[2] = {};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (size_t i = 0; i < 2; ++i) {
    const auto [after, error] = std::from_chars(at, end, numbers[i]);
    if (error != std::errc() || numbers[i] == 0 || (i == 0 && (after == end || *after != 'x')) ||
        (i == 1 && after != end)) {
      return "a crop is written HEIGHTxWIDTH, such as 224x224";
    }
    at = after + 1;
  }
  if (height != nullptr) *height = numbers[0];
  if (width != nullptr) *width = numbers[1];
  return "";
}

std::string quoted(const std::string& word) {
  return word.find_first_of(" '\"$&()*;<>?[]`|") == word.npos ? word : "'" + word + "'";
}

// The command that measures this again.
std::string command_of(const StallOptions& options, const std::string& crop, bool layouts) {
  std::string command = "l3 stalls";
  const auto add = [&](const char* name, const std::string& value) {
    command += " " + std::string(name) + " " + value;
  };
  if (layouts) command += " --layouts";
  if (!layouts) add("--batch-size", std::to_string(options.batch));
  add("--threads", std::to_string(options.threads));
  if (!crop.empty()) add("--crop", crop);
  if (options.type != "stored") add("--dtype", options.type);
  if (options.step_ms > 0) add("--step-ms", format_number(options.step_ms, 3));
  if (!options.link_words.empty()) add("--link", options.link_words);
  if (options.check != "auto") add("--check", options.check);
  if (options.device != "cpu") add("--device", options.device);
  if (options.seconds != StallOptions().seconds) add("--seconds", format_number(options.seconds, 1));
  return command + " " + quoted(path_text(options.path));
}

bool write_report(const std::string& folder, const std::string& page, const std::string& json, Context& context) {
  const std::pair<const char*, std::string> files[] = {{"stalls.html", page}, {"stalls.json", json + "\n"}};
  for (const auto& [name, text] : files) {
    const std::string path = join(folder, name);
    std::optional<Failure> failure = make_folder_of(path);
    const auto* const bytes = reinterpret_cast<const uint8_t*>(text.data());
    if (!failure) failure = write_file(path, {bytes, text.size()}, Flush::none, context.unfinished);
    if (failure) {
      context.console.fail(*failure);
      return false;
    }
  }
  context.console.note(join(folder, "stalls.html"), "report written");
  return true;
}

int run_stalls(StallOptions options, const std::string& crop, bool layouts, Context& context) {
  context.console.set_quiet(options.quiet);
  if (!crop.empty()) (void)check_crop(crop, &options.crop_height, &options.crop_width);
  if (options.threads == 0) options.threads = std::max(std::thread::hardware_concurrency(), 1u);
  const bool is_set = is_data_set(options.path);
  if (layouts && is_set) return wrong_usage(context, "--layouts takes a folder of images, and not a data set");
  if (options.link && loader::is_url(options.path)) {
    return wrong_usage(context, "--link takes a local data set: this one is behind a link already");
  }
  // A run takes a sixth of the time, and some steps of it do not count.
  if (const double least = options.step_ms / 1000 * 24; is_set && least > options.seconds) {
    return wrong_usage(context,
                       "with steps that long, --seconds must be at least " + format_number(std::ceil(least), 0));
  }
  const std::string command = command_of(options, crop, layouts || !is_set);
  std::vector<std::string> lines;
  std::string json, page;
  if (layouts || !is_set) {
    std::optional<bench::LayoutFigures> figures = measure_layouts(options, context);
    if (!figures) return kExitFailed;
    figures->command = command;
    lines = layout_lines(*figures);
    json = layouts_json(*figures);
    page = bench::layouts_page(*figures);
  } else {
    std::optional<bench::StallFigures> figures = measure_stalls(options, context);
    if (!figures) return kExitFailed;
    figures->command = command;
    lines = stalls_lines(*figures);
    json = stalls_json(*figures);
    page = bench::stalls_page(*figures);
  }
  if (options.json) lines = {json};
  for (const std::string& line : lines) context.console.print(line);
  return options.out.empty() || write_report(options.out, page, json, context) ? kExitDone : kExitFailed;
}

}  // namespace

void add_stalls(CommandLine& line) {
  Subcommand sub = line.command("stalls", "Find out what a training waits for, and what would help");
  auto options = std::make_shared<StallOptions>();
  auto crop = std::make_shared<std::string>(), link = std::make_shared<std::string>();
  auto layouts = std::make_shared<bool>(false);
  sub.option("SET", options->path, "A data set, or a folder of images for --layouts").required().type("");
  sub.option("--batch-size", options->batch, "Images of a batch, 1 to 65535 (default: 32)")
      .type("N")
      .whole_between(1, 65535);
  add_threads(sub, options->threads, "-j,--threads", "Load with N threads");
  sub.option("--crop", *crop, "Load random crops of this size").type("HEIGHTxWIDTH").check([](const std::string& text) {
    return check_crop(text);
  });
  sub.option("--dtype", options->type, "Type of the values (default: stored)").one_of({"stored", "float16", "float32"});
  sub.option("--step-ms", options->step_ms, "Milliseconds of a training step (default: none, it only takes batches)")
      .type("MS")
      .above_0();
  sub.option("--link", *link, "Measure as if the data set were behind this link, such as 100MB/s,20ms")
      .type("RATE,DELAY")
      .check([](const std::string& text) {
        Link ignored;
        return parse_link(text, ignored);
      });
  sub.option("--check", options->check, "The prediction to check by running it (default: auto)")
      .type("auto|none|cache:PERCENT|threads:N|link:RATE|step:MS")
      .check(check_of_check);
  sub.option("--seconds", options->seconds, "Measure for about N seconds (default: 30)").type("N").above_0();
  sub.option("--device", options->device, "Where to decode (default: cpu)").one_of({"cpu", "cuda"});
  sub.flag("--layouts", *layouts,
           "Compare ways to keep the images: PNG and JPEG files, l3 files and shards, a WebDataset tar");
  sub.option("--out", options->out, "Write a page and its figures to this folder: stalls.html, stalls.json")
      .type(kFolderType);
  sub.option("--scratch", options->scratch,
             "Folder for temporary files (default: /dev/shm; for --layouts that of the system)")
      .type(kFolderType);
  sub.flag("--json", options->json, "Print one line of JSON").details("Its keys keep their meaning in later versions");
  add_quiet(sub, options->quiet);
  sub.examples(
      "  l3 stalls set/                                    takes about half a minute\n"
      "  l3 stalls set/ --step-ms 120 --batch-size 64      a training of which a step takes 120 ms\n"
      "  l3 stalls set/ --link 100MB/s,20ms --out report/  as if the set were on a far store\n"
      "  l3 stalls s3://bucket/set --crop 224x224 -j 16\n"
      "  l3 stalls --layouts pngs/                         PNG tree, shards and others beside each other\n");
  sub.footer(
      "Loads the data set from memory and from its store, and measures what images cost. From that it predicts the\n"
      "speed with other caches, links, processors and steps, runs one of the predictions, and prints its error.\n"
      "The last line says what to change first.\n\n"
      "Columns: cpu is processor time, decode and values are times of threads, all per image. waits is the share of\n"
      "the time for which the training waited.\n");
  sub.manual(
      "At most 1 GiB of the data set is used, chosen at random. --link and the checks simulate a link in this process, "
      "with\n"
      "any number of requests in progress. docs/stalls.md describes the model and its limits.\n");
  sub.run([options, crop, link, layouts](Context& context) {
    options->link_words = *link;
    if (!link->empty()) (void)parse_link(*link, options->link);
    return run_stalls(*options, *crop, *layouts, context);
  });
}

}  // namespace tools
