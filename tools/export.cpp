// l3 export: writes a data set, or a folder of L3 files, back as PNG files, or with --tar a data set as a tar. Bit
// depths that PNG does not have become PNM or PAM files.
#include "export.h"

#include <atomic>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/parallel.h"
#include "bridge/image_bridge.h"
#include "command_tree.h"
#include "convert.h"
#include "data_sets.h"
#include "file_io.h"
#include "formats/formats.h"
#include "image_tree.h"
#include "loader/names.h"
#include "model_files.h"
#include "options.h"
#include "progress.h"
#include "sources.h"

namespace tools {
namespace {

namespace fs = std::filesystem;

enum class What : uint8_t { image, bytes, metadata };

struct Job {
  What what;
  uint64_t sample;   // of a data set
  std::string file;  // of a folder
  std::string out;   // below the destination
  uint64_t bytes;
};

// Everything to export, and what has failed already.
struct Plan {
  std::optional<l3::DataSet> set;
  std::vector<Job> jobs;
  std::vector<Failure> failures;
  std::vector<std::string> skipped;
  uint64_t bytes = 0;
};

// Gives a/b.jpg the name a/b.png, or a/b.jpg.png if another file has that name.
class OutputNames {
 public:
  // Keeps the name of an image that needs no other extension, and the names of its folders.
  void reserve(const std::string& name, const std::string& extension) {
    if (has(name, extension)) taken_.insert(name);
    for (size_t slash = name.rfind('/'); slash != name.npos;
         slash = slash > 0 ? name.rfind('/', slash - 1) : name.npos) {
      if (!taken_.insert(name.substr(0, slash)).second) break;
    }
  }
  std::string name_for(const std::string& name, const std::string& extension) {
    if (has(name, extension)) return name;
    std::string changed = fs::path(name).replace_extension(extension).string();
    while (!taken_.insert(changed).second) changed = (changed.size() < name.size() + 4 ? name : changed) + extension;
    return changed;
  }
  // Returns false if another file has this name.
  bool take(const std::string& name) { return taken_.insert(name).second; }

 private:
  static bool has(const std::string& name, const std::string& extension) {
    const auto format = formats::format_of(name);
    return format && format == formats::format_of(extension);
  }
  std::unordered_set<std::string> taken_;
};

void plan_set(const std::string& path, Plan& plan) {
  Outcome<l3::DataSet> set = open_data_set(path);
  if (!set) {
    plan.failures.push_back(set.failure());
    return;
  }
  plan.set.emplace(std::move(*set));
  OutputNames names;
  const uint64_t count = plan.set->count();
  for (uint64_t i = 0; i < count; ++i) {
    const l3::Sample sample = plan.set->sample(i);
    const std::string name(sample.name_text());
    names.reserve(name, exported_extension(sample.colour, sample.bits));
    if (!sample.is_image()) names.take(name);
  }
  for (uint64_t i = 0; i < count; ++i) {
    const l3::Sample sample = plan.set->sample(i);
    const std::string name(sample.name_text());
    const What what = sample.is_image() ? What::image : What::bytes;
    plan.jobs.push_back(
        {what, i, "", what == What::image ? names.name_for(name, exported_extension(sample.colour, sample.bits)) : name,
         sample.size});
    if (sample.metadata_size == 0) continue;
    const std::string json = metadata_name(name);
    if (names.take(json)) {
      plan.jobs.push_back({What::metadata, i, "", json, sample.metadata_size});
    } else {
      plan.failures.push_back({display_name(*plan.set, sample), std::nullopt,
                               "its metadata would become " + json + ", which another sample is"});
    }
  }
}

// Returns .png for a file whose header cannot be read. It fails later, when it is exported.
std::string extension_in(const std::string& path) {
  const Outcome<bridge::Buffer> start = read_start(path, L3_HEAD_MAX_BYTES);
  constexpr l3_limits kUnlimited = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
  l3_info info = l3_info_init();
  if (!start || l3_read_info(start->bytes().data(), start->size(), &kUnlimited, &info, nullptr) != L3_OK) return ".png";
  return exported_extension(info.colour, info.bits);
}

void plan_folder(const std::string& folder, Plan& plan) {
  Tree tree = list_tree(folder, Kind::l3);
  plan.skipped = std::move(tree.skipped);
  plan.failures = std::move(tree.failures);
  OutputNames names;
  for (const std::string& file : tree.files) names.reserve(file, ".png");
  for (const std::string& file : tree.files) {
    const std::string path = join(folder, file);
    plan.jobs.push_back({What::image, 0, path, names.name_for(file, extension_in(path)), listed_size(path)});
  }
  if (tree.files.empty() && plan.failures.empty()) {
    plan.failures.push_back({folder, std::nullopt, "neither a data set nor a folder of .l3 files"});
  }
}

struct Exported {
  uint64_t pixels = 0, bytes_in = 0, bytes_out = 0;
};

class Exporter {
 public:
  Exporter(const ExportOptions& options, const Plan& plan, const ModelFiles& models, Context& context)
      : options_(options), plan_(plan), models_(models.all().begin(), models.all().end()), context_(context) {
    if (!plan.set) return;
    size_t count = 0;
    const l3_model* const* of_set = l3_data_models(plan.set->get(), &count);
    models_.insert(models_.end(), of_set, of_set + count);
  }

  Outcome<Exported> run(const Job& job, l3_parallel parallel) const try {
    if (job.what == What::metadata) {
      const l3::Sample sample = plan_.set->sample(job.sample);
      return write(job, {sample.metadata, sample.metadata_size}, {0, sample.metadata_size, 0});
    }
    const std::string name = name_of(job);
    const Outcome<bridge::Buffer> file = plan_.set ? read_sample(*plan_.set, job.sample) : read_file(job.file);
    if (!file) return file.failure();
    if (job.what == What::bytes) return write(job, file->bytes(), {0, file->size(), 0});
    return write_image(job, name, file->bytes(), parallel);
  } catch (...) {
    return caught(name_of(job));
  }

 private:
  std::string name_of(const Job& job) const {
    return plan_.set ? display_name(*plan_.set, plan_.set->sample(job.sample)) : job.file;
  }

  Outcome<Exported> write_image(const Job& job, const std::string& name, std::span<const uint8_t> file,
                                l3_parallel parallel) const {
    const formats::Format format = formats::format_of(job.out).value_or(formats::Format::png);
    uint64_t pixels = 0;
    const Outcome<std::vector<uint8_t>> written = exported_image(
        name, file, format, decode_options(options_.limits, models_, parallel), context_.console, pixels);
    if (!written) return written.failure();
    return write(job, *written, {pixels, file.size(), 0});
  }

  Outcome<Exported> write(const Job& job, std::span<const uint8_t> bytes, Exported done) const {
    const std::string path = join(options_.destination, job.out);
    if (auto failure = make_folder_of(path)) return *std::move(failure);
    if (auto failure = write_file(path, bytes, Flush::none, context_.unfinished)) return *std::move(failure);
    done.bytes_out = bytes.size();
    return done;
  }

  const ExportOptions& options_;
  const Plan& plan_;
  std::vector<const l3_model*> models_;
  Context& context_;
};

// Handles outputs that exist already, as --resume and --force say.
void look_at_outputs(const ExportOptions& options, Plan& plan, uint64_t& kept) {
  std::vector<Job> jobs;
  std::string first;
  uint64_t in_the_way = 0;
  std::error_code error;
  for (Job& job : plan.jobs) {
    const std::string path = join(options.destination, job.out);
    const bool there = !options.force && fs::exists(fs::symlink_status(path, error));
    if (there && options.resume) {
      ++kept;
      continue;
    }
    if (there && in_the_way++ == 0) first = path;
    plan.bytes += job.bytes;
    jobs.push_back(std::move(job));
  }
  plan.jobs = std::move(jobs);
  if (in_the_way == 0) return;
  plan.failures.push_back({first, std::nullopt,
                           std::string("exists already") + (in_the_way > 1 ? ", and so do others" : "") +
                               "; --resume keeps existing files, --force replaces them"});
}

int export_files(const ExportOptions& options, Context& context) {
  Console& console = context.console;
  console.set_quiet(options.quiet);
  if (is_data_set(options.destination)) {
    console.fail({options.destination, std::nullopt, "is a data set; export to another folder"});
    return kExitFailed;
  }
  ModelFiles models;
  if (const auto failure = models.open(options.models)) {
    console.fail(*failure);
    return kExitFailed;
  }
  Plan plan;
  if (is_data_set(options.source)) {
    plan_set(options.source, plan);
  } else if (is_folder(options.source)) {
    plan_folder(options.source, plan);
  } else {
    plan.failures.push_back(
        {options.source, std::nullopt, "neither a data set nor a folder; for a single file use l3 decode"});
  }
  uint64_t kept = 0;
  if (plan.failures.empty()) look_at_outputs(options, plan, kept);
  for (const std::string& skipped : plan.skipped) console.note(skipped, kSkipped);
  for (const Failure& failure : plan.failures) console.fail(failure);
  if (!plan.failures.empty()) return kExitFailed;
  if (options.resume || options.force) {
    std::vector<std::string> outputs;
    for (const Job& job : plan.jobs) outputs.push_back(join(options.destination, job.out));
    remove_abandoned_of(outputs);
  }

  const Exporter exporter(options, plan, models, context);
  base::Parallel parallel(reading_threads(options.source, options.jobs));
  Progress progress(console, plan.jobs.size(), plan.bytes);
  std::atomic<bool> stop{false};
  // Several files are exported in parallel. If there is only one, its tiles are.
  const bool single = plan.jobs.size() == 1;
  const auto export_one = [&](uint64_t index) {
    if (stop) return;
    const Job& job = plan.jobs[index];
    const Outcome<Exported> done = exporter.run(job, single ? parallel.for_l3() : l3_parallel{});
    if (done) {
      progress.add({1, 0, done->pixels, done->bytes_in, done->bytes_out}, job.bytes);
      return;
    }
    progress.fail(done.failure(), job.bytes);
    if (options.on_error == "fail") stop = true;
  };
  explain_interruption(options.quiet, options.force, context);
  if (single) {
    export_one(0);
  } else {
    parallel.for_each(plan.jobs.size(), export_one);
  }
  context.unfinished.set_last_words("");
  console.clear_status();
  const Totals totals = progress.totals();
  const uint64_t not_begun = plan.jobs.size() - totals.files - totals.failed;
  if (!options.quiet) {
    std::string line = std::to_string(totals.files) + (totals.files == 1 ? " file" : " files") +
                       " exported: " + format_bytes(totals.bytes_in) + " -> " + format_bytes(totals.bytes_out);
    if (kept > 0) line += "; " + std::to_string(kept) + " already done";
    if (totals.failed > 0) line += "; " + std::to_string(totals.failed) + " failed";
    if (not_begun > 0) line += "; " + std::to_string(not_begun) + " not started";
    console.print(line);
  }
  if (not_begun > 0) console.inform(kStopped);
  return totals.failed == 0 ? kExitDone : kExitFailed;
}

int export_all(const ExportOptions& options, Context& context) {
  if (!options.tar && options.as != "png") return wrong_usage(context, "export: --as is for --tar");
  return options.tar ? export_tar(options, context) : export_files(options, context);
}

}  // namespace

std::string exported_extension(uint32_t colour, uint32_t bits) {
  const bool is_gray = colour == L3_COLOUR_GRAY, is_palette = colour == L3_COLOUR_PALETTE;
  const bool fits =
      bits == 8 || (bits == 16 && !is_palette) || ((is_gray || is_palette) && (bits == 1 || bits == 2 || bits == 4));
  if (fits) return ".png";
  return is_gray ? ".pgm" : is_palette || colour == L3_COLOUR_RGB ? ".ppm" : ".pam";
}

Outcome<std::vector<uint8_t>> exported_image(const std::string& name, std::span<const uint8_t> file,
                                             formats::Format format, const l3_decode_options& options, Console& console,
                                             uint64_t& pixels) {
  const l3::Result<l3::File> opened = l3::File::open(file, options);
  if (!opened) return failure_in(name, bridge::to_error(opened.error()));
  if (opened->info().alpha == L3_ALPHA_PREMULTIPLIED) {
    return Failure{name, std::nullopt, "a PNG cannot hold premultiplied alpha"};
  }
  formats::Image image;
  if (const auto error = bridge::decode_l3(*opened, image)) return failure_in(name, *error);
  formats::WriteOptions write_options;
  std::vector<std::string> notices;
  write_options.notices = &notices;
  formats::Result<std::vector<uint8_t>> written = formats::write(format, image, write_options);
  if (!written) return failure_in(name, written.error());
  for (const std::string& notice : notices) console.note(name, notice);
  pixels = uint64_t{image.width} * image.height;
  return std::move(*written);
}

void add_export(CommandLine& line) {
  Subcommand sub = line.command("export", "Convert a data set, or a folder of L3 files, back to PNG files or a tar");
  auto options = std::make_shared<ExportOptions>();
  sub.option("SRC", options->source, "A data set, a shard, or a folder of L3 files").required().type("");
  sub.option("DST", options->destination,
             "The folder to write to; it is created if it does not exist. With --tar a file, or - for stdout")
      .required()
      .type("")
      .local();
  const Option tar = sub.flag("--tar", options->tar, "Write a data set as one tar, whose members WebDataset groups");
  sub.option("--as", options->as, "The images in a tar: PNG files (png, the default), or L3 files (l3)")
      .one_of({"png", "l3"});
  add_models(sub, options->models, "A model from l3 train that L3 files need")
      .details("Give the option again for another model. Data sets contain their models");
  add_threads(sub, options->jobs, "-j,--jobs,--threads", "Files to export at the same time");
  sub.option("--on-error", options->on_error,
             "If an image fails: stop (fail, the default), or report it and continue (skip)")
      .one_of({"fail", "skip"});
  const Option resume = sub.flag("--resume", options->resume, "Keep files that exist already").excludes(tar);
  sub.flag("--force", options->force, "Replace files that exist already").excludes(resume);
  add_quiet(sub, options->quiet);
  add_limits(sub, options->limits, true);
  sub.examples(
      "  l3 export set/ pngs/                     a data set to PNG files\n"
      "  l3 export l3s/ pngs/                     a folder of L3 files to PNG files\n"
      "  l3 export --tar set/ set.tar             a data set to a tar for WebDataset\n"
      "  l3 export --resume set/ pngs/            continue after an interruption\n");
  sub.footer(
      "Images keep their names, but other extensions become .png. Depths that PNG does not have, such as 12 bits,\n"
      "become .pgm, .ppm or .pam. Metadata becomes a .json file. Other files come back as they were.\n"
      "In a tar a sample is KEY.png or KEY.l3, with the number of its label in KEY.cls and its metadata in KEY.json.\n"
      "The names of classes are in __classes__.\n");
  sub.manual(
      "If both a.jpg and a.png were converted, a.jpg becomes a.jpg.png. Samples, depth, palette, transparency and\n"
      "ancillary chunks are as they were. A .pgm, .ppm or .pam holds samples only, and a note names what is left out.\n"
      "A file gets its name only when it is complete.\n\n"
      "With --tar the key of a group is the name of its first sample without extension; other dots become underscores, "
      "because WebDataset ends a key at the first dot. If a group has several images, their roles come after the key: "
      "KEY.labels.png. If classes have names, the first member, __classes__, is a JSON list of them. WebDataset leaves "
      "it out, and l3 convert reads it. Equal data sets give equal tars. With --on-error skip a group that fails is "
      "left out as a whole.\n");
  sub.run([options](Context& context) { return export_all(*options, context); });
}

}  // namespace tools
