// l3 convert --files: converts a folder of images to a folder of L3 files with the same structure.
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "base/parallel.h"
#include "conversion.h"
#include "convert.h"
#include "file_io.h"
#include "image_tree.h"
#include "model_files.h"
#include "progress.h"

namespace tools {
namespace {

namespace fs = std::filesystem;

struct Job {
  std::string in, out;
  uint64_t bytes;
};

struct Plan {
  std::vector<Job> jobs;
  uint64_t bytes = 0;
  Ignored ignored;
  uint64_t kept = 0;  // done by an earlier run (--resume)
  std::vector<std::string> skipped;
  std::vector<Failure> left_out;  // folders that cannot be read, images of unsupported types
};

// Whether an earlier run has converted `in`, as it is now, to `out`. It is enough to look at the head, because outputs
// get their name only when they are complete.
bool is_finished(const std::string& in, const std::string& out) {
  std::error_code error;
  const fs::file_time_type in_time = fs::last_write_time(in, error);
  if (error) return false;
  const fs::file_time_type out_time = fs::last_write_time(out, error);
  if (error || out_time <= in_time) return false;
  const Outcome<bridge::Buffer> head = read_start(out, L3_HEAD_MAX_BYTES);
  constexpr l3_limits kUnlimited = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
  l3_info info = l3_info_init();
  return head && l3_read_info(head->bytes().data(), head->size(), &kUnlimited, &info, nullptr) == L3_OK &&
         listed_size(out) >= info.payload_start;
}

// Lists the files to convert, and adds every reason against beginning to `failures`.
Plan plan_jobs(const ConvertOptions& options, std::vector<Failure>& failures) {
  Plan plan;
  std::error_code error;
  if (!is_folder(options.source.source)) {
    if (!fs::exists(options.source.source, error)) {
      failures.push_back({options.source.source, std::nullopt, "no such file or folder"});
      return plan;
    }
    const std::string name = l3_name(fs::path(options.source.source).filename().string());
    const bool names_file = has_extension_of(Kind::l3, options.destination) && !is_folder(options.destination);
    plan.jobs.push_back({options.source.source, names_file ? options.destination : join(options.destination, name), 0});
  } else {
    Tree tree = list_tree(options.source.source, Kind::foreign);
    plan.ignored = std::move(tree.ignored);
    plan.skipped = std::move(tree.skipped);
    plan.left_out = std::move(tree.failures);
    if (auto failure = plan.ignored.failure(options.source.source); failure && !options.source.ignore_unsupported) {
      plan.left_out.push_back(*std::move(failure));
    }
    std::map<std::string, std::string> source_of;
    for (const std::string& file : tree.files) {
      const std::string in = join(options.source.source, file);
      const std::string out = join(options.destination, l3_name(file));
      const auto [other, is_new] = source_of.emplace(out, in);
      if (is_new) {
        plan.jobs.push_back({in, out, 0});
      } else {
        failures.push_back({in, std::nullopt, "has the same output as " + other->second + ": " + out});
      }
    }
    if (tree.files.empty()) {
      failures.push_back({options.source.source, std::nullopt, "this folder has no images" + plan.ignored.summary()});
    }
  }
  return plan;
}

// An output must not be one of the sources, by its name or by a link: it would destroy the source.
void refuse_overwritten_sources(const Plan& plan, std::vector<Failure>& failures) {
  std::map<std::pair<dev_t, ino_t>, std::string> sources;
  struct stat status {};
  for (const Job& job : plan.jobs) {
    if (stat(job.in.c_str(), &status) == 0) sources.emplace(std::pair(status.st_dev, status.st_ino), job.in);
  }
  for (const Job& job : plan.jobs) {
    if (stat(job.out.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    const auto source = sources.find(std::pair(status.st_dev, status.st_ino));
    if (source == sources.end()) continue;
    failures.push_back(
        {job.in, std::nullopt, "its output " + job.out + " is the same file as the source " + source->second});
  }
}

// Handles outputs that exist already, as --resume and --force say.
void look_at_outputs(const ConvertOptions& options, Plan& plan, std::vector<Failure>& failures) {
  std::vector<Job> jobs;
  uint64_t in_the_way = 0;
  std::string first_in_the_way;
  for (Job& job : plan.jobs) {
    std::error_code error;
    if (options.resume && is_finished(job.in, job.out)) {
      ++plan.kept;
      continue;
    }
    if (!options.resume && !options.force && fs::exists(job.out, error) && in_the_way++ == 0) {
      first_in_the_way = job.out;
    }
    job.bytes = listed_size(job.in);
    plan.bytes += job.bytes;
    jobs.push_back(std::move(job));
  }
  plan.jobs = std::move(jobs);
  if (in_the_way == 0) return;
  failures.push_back({first_in_the_way, std::nullopt,
                      "exists already" +
                          (in_the_way > 1 ? ", and so do " + std::to_string(in_the_way - 1) + " more" : std::string()) +
                          "; --resume keeps finished files, --force replaces all"});
}

// Prints "3 files converted ..." on stdout.
void print_summary(const Plan& plan, const Progress& progress, uint64_t not_begun, Console& console) {
  const Totals totals = progress.totals();
  const double seconds = progress.seconds();
  std::string line = std::to_string(totals.files) + (totals.files == 1 ? " file" : " files") + " converted";
  if (totals.files > 0) {
    line += ": " + format_bytes(totals.bytes_in) + " -> " + format_bytes(totals.bytes_out) + ", ratio " +
            format_number(static_cast<double>(totals.bytes_out) / static_cast<double>(totals.bytes_in), 4) + ", " +
            format_number(static_cast<double>(totals.pixels) / 1e6 / seconds, 1) + " MP/s";
  }
  if (plan.kept > 0) line += "; " + std::to_string(plan.kept) + " already done";
  line += plan.ignored.summary();
  if (!plan.skipped.empty()) line += "; " + std::to_string(plan.skipped.size()) + " skipped";
  const uint64_t failed = totals.failed + plan.left_out.size();
  if (failed > 0) line += "; " + std::to_string(failed) + " failed";
  if (not_begun > 0) line += "; " + std::to_string(not_begun) + " not started";
  console.print(line);
}

// The same as JSON.
void print_end(const Plan& plan, const Progress& progress, uint64_t not_begun, Console& console) {
  const Totals totals = progress.totals();
  base::Json json;
  json.open_object()
      .member("event", "end")
      .member("files", totals.files)
      .member("failed", totals.failed + plan.left_out.size());
  json.member("kept", plan.kept).member("ignored", Ignored::count_of(plan.ignored.others));
  json.member("unsupported", Ignored::count_of(plan.ignored.unread)).member("not_begun", not_begun);
  json.member("pixels", totals.pixels).member("bytes_in", totals.bytes_in).member("bytes_out", totals.bytes_out);
  console.print(json.key("seconds").number(progress.seconds(), 3).close_object().line());
}

Outcome<Converted> do_job(const Job& job, const ConversionSettings& settings, Context& context) try {
  if (std::optional<Failure> failure = make_folder_of(job.out)) return *std::move(failure);
  return convert_file(job.in, job.out, settings, context);
} catch (...) {
  return caught(job.in);
}

int run_jobs(const Plan& plan, const ConvertOptions& options, const ModelFiles& models, Context& context) {
  Console& console = context.console;
  ConversionSettings settings;
  settings.encode = encode_options(options.method);
  settings.reshaping = reshaping_of(options.orient, options.resize, options.interpolations);
  settings.models = models.all();
  settings.limits = options.limits;
  settings.verify = !options.no_verify;
  base::Parallel parallel(options.jobs);
  // Several files are converted in parallel. If there is only one, its tiles are.
  const bool single = plan.jobs.size() == 1;
  if (single) settings.encode.parallel = parallel.for_l3();

  Progress progress(console, plan.jobs.size(), plan.bytes,
                    options.json ? Progress::Style::json : Progress::Style::person);
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::vector<Failure> failures = plan.left_out;
  const auto convert_one = [&](uint64_t index) {
    if (stop) return;
    const Job& job = plan.jobs[index];
    progress.begin(job.bytes);
    const Outcome<Converted> converted = do_job(job, settings, context);
    if (converted) {
      progress.add({1, 0, converted->pixels, converted->bytes_in, converted->bytes_out}, job.bytes);
      return;
    }
    progress.fail(converted.failure(), job.bytes);
    const std::lock_guard lock(mutex);
    failures.push_back(converted.failure());
    if (options.on_error == "fail") stop = true;
  };
  explain_interruption(options.quiet, options.force, context);
  if (single) {
    convert_one(0);
  } else {
    parallel.for_each(plan.jobs.size(), convert_one);
  }
  context.unfinished.set_last_words("");
  const Totals totals = progress.totals();
  console.clear_status();
  const uint64_t not_begun = plan.jobs.size() - totals.files - totals.failed;
  if (options.json) {
    print_end(plan, progress, not_begun, console);
  } else if (!options.quiet) {
    print_summary(plan, progress, not_begun, console);
  }
  if (not_begun > 0) console.inform(kStopped);
  if (!options.report.empty()) {
    if (const auto failure = write_report(options.report, failures, context)) {
      console.fail(*failure);
      return kExitFailed;
    }
  }
  return totals.failed == 0 && plan.left_out.empty() ? kExitDone : kExitFailed;
}

}  // namespace

int convert_to_files(const ConvertOptions& options, Context& context) {
  ModelFiles models;
  if (const auto failure = models.open_for_encoding(options.models)) {
    context.console.fail(*failure);
    return kExitFailed;
  }
  std::vector<Failure> failures;
  Plan plan = plan_jobs(options, failures);
  refuse_overwritten_sources(plan, failures);
  look_at_outputs(options, plan, failures);
  for (const std::string& skipped : plan.skipped) context.console.note(skipped, kSkipped);
  for (const Failure& failure : plan.left_out) context.console.fail(failure);
  for (const Failure& failure : failures) context.console.fail(failure);
  if (!failures.empty()) return kExitFailed;
  if (!plan.left_out.empty() && options.on_error == "fail") {
    context.console.inform("l3: nothing was converted; --on-error skip converts the rest without these");
    return kExitFailed;
  }
  std::vector<std::string> outputs;
  for (const Job& job : plan.jobs) outputs.push_back(job.out);
  if (options.resume || options.force) remove_abandoned_of(outputs);
  return run_jobs(plan, options, models, context);
}

}  // namespace tools
