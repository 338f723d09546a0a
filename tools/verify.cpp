// l3 verify: checks that L3 files and data sets are intact, and compares them with the images that they were made from.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/parallel.h"
#include "bridge/image_bridge.h"
#include "command_tree.h"
#include "data_sets.h"
#include "file_io.h"
#include "formats/formats.h"
#include "image_tree.h"
#include "model_files.h"
#include "options.h"
#include "progress.h"
#include "reshape.h"
#include "verify_set.h"

namespace tools {
namespace {

struct VerifyOptions {
  std::vector<std::string> paths;
  std::string against;
  bool subset = false;
  bool ignore_unsupported = false;
  std::vector<std::string> models;
  l3_limits limits{};
  uint32_t threads = 0;
  bool verbose = false;
  bool quiet = false;
};

struct Work {
  std::string file;
  std::string source;  // empty: do not compare
};

// Everything to verify, and what has failed already.
struct Plan {
  std::vector<Work> works;
  std::vector<std::string> sets;  // data sets
  std::vector<Failure> failures;
  std::vector<std::string> skipped;

  void take_troubles(const Tree& tree) {
    failures.insert(failures.end(), tree.failures.begin(), tree.failures.end());
    skipped.insert(skipped.end(), tree.skipped.begin(), tree.skipped.end());
  }
};

void plan_folder(const std::string& folder, Plan& plan) {
  const Tree tree = list_tree(folder, Kind::l3);
  plan.take_troubles(tree);
  for (const std::string& file : tree.files) plan.works.push_back({join(folder, file), ""});
  // Without this a mistyped folder would pass as verified.
  if (tree.files.empty() && tree.failures.empty())
    plan.failures.push_back({folder, std::nullopt, "this folder has no .l3 files"});
}

// Pairs the L3 files of one tree with the images of another by their names.
void plan_mirror(const VerifyOptions& options, Plan& plan) {
  const std::string &folder = options.paths.front(), &source_folder = options.against;
  const Tree files = list_tree(folder, Kind::l3);
  const Tree sources = list_tree(source_folder, Kind::foreign);
  plan.take_troubles(files);
  plan.take_troubles(sources);
  if (!plan.failures.empty()) return;

  std::map<std::string, std::string> source_of;
  for (const std::string& source : sources.files) {
    const auto [other, is_new] = source_of.emplace(l3_name(source), source);
    if (!is_new) {
      plan.failures.push_back(
          {join(source_folder, source), std::nullopt, "has the same L3 file as " + join(source_folder, other->second)});
    }
  }
  for (const std::string& file : files.files) {
    const auto source = source_of.find(l3_name(file));
    if (source == source_of.end()) {
      plan.failures.push_back(
          {join(folder, file), std::nullopt, "the image of this name is missing in " + source_folder});
      continue;
    }
    plan.works.push_back({join(folder, file), join(source_folder, source->second)});
    source_of.erase(source);
  }
  if (auto failure = sources.ignored.failure(source_folder); failure && !options.ignore_unsupported) {
    plan.failures.push_back(*std::move(failure));
  }
  for (const auto& [expected, source] : source_of) {
    plan.failures.push_back(
        {join(source_folder, source), std::nullopt, "its L3 file " + join(folder, expected) + " is missing"});
  }
  if (plan.works.empty() && plan.failures.empty()) {
    plan.failures.push_back({folder, std::nullopt, "this folder has no .l3 files"});
  }
}

Plan make_plan(const VerifyOptions& options) {
  Plan plan;
  if (!options.against.empty() && options.paths.front() != "-" && is_data_set(options.paths.front())) {
    plan.sets.push_back(options.paths.front());
    return plan;
  }
  if (!options.against.empty() && is_folder(options.against)) {
    plan_mirror(options, plan);
    return plan;
  }
  for (const std::string& path : options.paths) {
    if (path != "-" && is_data_set(path)) {
      plan.sets.push_back(path);
    } else if (path != "-" && is_folder(path)) {
      plan_folder(path, plan);
    } else {
      plan.works.push_back({path, options.against});
    }
  }
  return plan;
}

std::optional<Failure> compare(const l3::File& file, const Work& work, const VerifyOptions& options) {
  const Outcome<bridge::Buffer> source_file = read_file(work.source);
  if (!source_file) return source_file.failure();
  formats::Result<formats::Image> source = formats::read(source_file->bytes(), read_options(options.limits));
  if (!source) return failure_in(display_name(work.source, "stdin"), source.error());

  formats::Image image;
  const std::string name = display_name(work.file, "stdin");
  if (const auto error = bridge::decode_l3(file, image)) return failure_in(name, *error);
  const std::string difference = difference_from_source(image, std::move(*source), options.limits);
  if (difference.empty()) return std::nullopt;
  return Failure{name, std::nullopt, "differs from " + display_name(work.source, "stdin") + ": " + difference};
}

Outcome<Totals> verify_file(const Work& work, const VerifyOptions& options, const ModelFiles& models,
                            l3_parallel parallel) try {
  const std::string name = display_name(work.file, "stdin");
  const Outcome<bridge::Buffer> file = read_file(work.file);
  if (!file) return file.failure();
  const l3_decode_options decode = decode_options(options.limits, models.all(), parallel);
  const l3::Result<l3::File> opened = l3::File::open(file->bytes(), decode);
  if (!opened) return failure_in(name, bridge::to_error(opened.error()));
  l3_error error{};
  if (opened->verify(&error) != L3_OK) return failure_in(name, bridge::to_error(error, *opened));
  if (!work.source.empty()) {
    if (auto failure = compare(*opened, work, options)) return *failure;
  }
  Totals totals;
  totals.files = 1;
  totals.pixels = uint64_t{opened->info().width} * opened->info().height;
  return totals;
} catch (...) {
  return caught(display_name(work.file, "stdin"));
}

int verify(const VerifyOptions& options, Context& context) {
  Console& console = context.console;
  console.set_quiet(options.quiet);
  if (std::count(options.paths.begin(), options.paths.end(), "-") > 1) {
    return wrong_usage(context, "verify: stdin (-) can be read only once");
  }
  if (!options.against.empty()) {
    if (options.paths.size() != 1) return wrong_usage(context, "verify: with --against only one PATH is allowed");
    if (options.against == "-" && options.paths.front() == "-") {
      return wrong_usage(context, "verify: PATH and --against cannot both be stdin");
    }
    if (options.against == "-" && is_data_set(options.paths.front())) {
      return wrong_usage(context, "verify: a data set can be compared with a folder or a tar, not with stdin");
    }
    if (!is_data_set(options.paths.front()) && is_folder(options.against) != is_folder(options.paths.front())) {
      return wrong_usage(context, "verify: PATH and --against must both be files or both be folders");
    }
  }
  ModelFiles models;
  if (const auto failure = models.open(options.models)) {
    console.fail(*failure);
    return kExitFailed;
  }
  const Plan plan = make_plan(options);
  for (const std::string& skipped : plan.skipped) console.note(skipped, kSkipped);
  for (const Failure& failure : plan.failures) console.fail(failure);

  uint64_t bytes = 0;
  for (const Work& work : plan.works) bytes += listed_size(work.file);
  base::Parallel parallel(reading_threads(options.paths.front(), options.threads));
  Progress progress(console, plan.works.size(), bytes);
  const bool say_result = options.verbose || !options.quiet;
  // Several files are verified in parallel. If there is only one, its tiles are.
  const bool single = plan.works.size() == 1;
  const bool say_each = options.verbose || (say_result && (single || console.stdout_is_terminal()));
  const auto verify_one = [&](uint64_t index) {
    const Work& work = plan.works[index];
    const uint64_t bytes_of_file = listed_size(work.file);
    progress.begin(bytes_of_file);
    const Outcome<Totals> verified = verify_file(work, options, models, single ? parallel.for_l3() : l3_parallel{});
    if (!verified) console.fail(verified.failure());
    if (verified && say_each) console.print("OK " + one_line(display_name(work.file, "stdin")));
    Totals failed;
    failed.failed = 1;
    progress.add(verified ? *verified : failed, bytes_of_file);
  };
  if (single) {
    verify_one(0);
  } else {
    parallel.for_each(plan.works.size(), verify_one);
  }
  uint64_t failed = progress.totals().failed + plan.failures.size();
  console.clear_status();
  if (say_result && plan.works.size() > 1) {
    console.print(std::to_string(progress.totals().files) + " files OK" +
                  (failed > 0 ? ", " + std::to_string(failed) + " failed" : std::string()));
  }
  for (const std::string& set : plan.sets) {
    failed +=
        verify_data_set({set, options.against, options.subset, options.ignore_unsupported, say_result, options.limits},
                        parallel, context);
  }
  return failed == 0 ? kExitDone : kExitFailed;
}

}  // namespace

void add_verify(CommandLine& line) {
  Subcommand sub =
      line.command("verify", "Check data sets and L3 files for damage, and compare them with the original images");
  auto options = std::make_shared<VerifyOptions>();
  sub.option("PATH", options->paths, "Data sets, shards, L3 files, or folders of L3 files; - is stdin")
      .required()
      .type("");
  sub.option("--against", options->against,
             "Compare with this original: an image, or the folder or tar that PATH was made from")
      .type(kPathType)
      .local()
      .details("Every sample, palette and chunk is compared. An image that is missing on either side is an error");
  sub.flag("--subset", options->subset, "With --against: the data set need not have all images of the original")
      .needs("--against")
      .details("Data sets made with --list, --pair or --on-error skip can lack images");
  sub.flag("--ignore-unsupported", options->ignore_unsupported,
           "With --against: ignore compressed tars and unsupported images, such as .dcm")
      .needs("--against")
      .details("Without this option they are errors");
  add_models(sub, options->models, "A model from l3 train that files need")
      .details("Give the option again for another model");
  add_threads(sub, options->threads, "-j,--threads", "Number of threads");
  sub.flag("-v,--verbose", options->verbose, "Print OK for each file, even if stdout is not a terminal");
  add_quiet(sub, options->quiet);
  add_limits(sub, options->limits, true);
  sub.examples(
      "  l3 verify photo.l3                       is this file intact?\n"
      "  l3 verify set/                           is this data set intact?\n"
      "  l3 verify --against pngs/ set/           does it hold exactly the images of pngs/?\n"
      "  l3 verify --against photo.png photo.l3\n");
  sub.footer(
      "Every byte is checked: header, sections, index, pixels and metadata. Each failure is a line on stderr with\n"
      "the file, the offset and the reason. The last line on stdout is the result.\n\n"
      "Exit status: 0 if everything is intact and equal, 1 if anything failed.\n");
  sub.run([options](Context& context) { return verify(*options, context); });
}

}  // namespace tools
