// l3 convert: converts a folder, a list or a tar to a data set.
#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/hex.h"
#include "base/json_writer.h"
#include "base/parallel.h"
#include "base/utf8.h"
#include "convert.h"
#include "data_sets.h"
#include "file_io.h"
#include "image_tree.h"
#include "progress.h"
#include "set_conversion.h"
#include "set_writer.h"
#include "shared_models.h"

namespace tools {
namespace {

constexpr const char* kReport = "errors.tsv";

struct Part {
  uint32_t number = 1, of = 1;
};

Part part_of(const ConvertOptions& options) {
  if (options.part.empty()) return {};
  const size_t slash = options.part.find('/');
  return {static_cast<uint32_t>(std::stoul(options.part.substr(0, slash))),
          static_cast<uint32_t>(std::stoul(options.part.substr(slash + 1)))};
}

// Each part has its own report.
std::string report_name(const Part& part) {
  const std::string of_part = "part-" + std::to_string(part.number) + "of" + std::to_string(part.of) + "-";
  return (part.of > 1 ? of_part : "") + kReport;
}

// Any bytes as one line of UTF-8.
std::string as_text(const std::string& bytes) {
  if (base::is_utf8(bytes)) return one_line(bytes);
  std::string text;
  for (const char byte : bytes) text += std::to_string(static_cast<unsigned char>(byte)) + " ";
  return text;
}

// All settings that the bytes of the data set depend on, except for the contents of the sources. They must be equal for
// all parts of a data set.
std::string settings_text(const ConvertOptions& options, const Sources& all, const ModelFiles& models) {
  const auto line = [](const char* name, const std::string& value) { return std::string(name) + "=" + value + "\n"; };
  std::string text = line("version", l3_version_text());
  const auto or_default = [](uint64_t number) { return number != 0 ? std::to_string(number) : "default"; };
  text += line("method", options.method.method) + line("effort", or_default(options.method.effort)) +
          line("tile", or_default(options.method.tile)) + line("shard-size", or_default(options.shard_bytes)) +
          line("shared-model", options.shared_model.empty() ? "auto" : options.shared_model);
  for (const l3_model* model : models.all()) text += line("model", base::hexadecimal(describe(model).name));
  for (const std::string& pair : options.source.pairs) text += line("pair", as_text(pair));
  if (options.source.pages) text += line("pages", "on");
  text += line("group", options.source.group) + line("labels", options.source.labels);
  text += line("resize", options.resize.empty() ? "none" : options.resize);
  for (const std::string& word : options.interpolations) text += line("interpolation", as_text(word));
  text += line("orient", options.orient ? "on" : "off");
  if (options.part.empty()) return text;
  // The boundaries of parts and the numbers of classes depend on all sources. Times are not included, because they can
  // differ between machines.
  std::string names;
  for (const std::string& name : all.classes) names += name + '\0';
  for (const SourceItem& item : all.items) names += item.name + '\0' + std::to_string(item.size) + '\0';
  loader::Digest digest{};
  l3_digest(names.data(), names.size(), digest.data());
  return text + line("sources", base::hexadecimal(digest));
}

Reshaping reshaping_for(const ConvertOptions& options) {
  Reshaping result = reshaping_of(options.orient, options.resize, options.interpolations);
  if (!options.source.pairs.empty()) {
    const std::string& first = options.source.pairs.front();
    result.first_role = first.substr(0, first.find('='));
  }
  return result;
}

// Mixing the numbers of a label map would destroy them, so the user must say which images of a group are maps.
std::optional<Failure> check_interpolations(const ConvertOptions& options, const Sources& sources) {
  const Reshaping reshaping = reshaping_for(options);
  for (const auto& [role, filter] : reshaping.of_role) {
    if (std::ranges::find(sources.roles, role) != sources.roles.end()) continue;
    return Failure{options.source.source, std::nullopt, "no file has the role " + role + " of --interpolation"};
  }
  if (!reshaping.resize || reshaping.filter || !reshaping.first_role.empty()) return std::nullopt;
  for (const SourceGroup& group : sources.groups) {
    const SourceItem* first = nullptr;
    const SourceItem* unknown = nullptr;
    for (uint64_t i = group.first; i < group.first + group.count; ++i) {
      const SourceItem& item = sources.items[i];
      if (item.use != Use::image) continue;
      if (!reshaping.of_role.contains(sources.role_of(item)) && unknown == nullptr) unknown = &item;
      if (first != nullptr && unknown != nullptr) {
        const std::string role = sources.role_of(*unknown);
        return Failure{sources.display_name(*first), std::nullopt,
                       "has other images in its group: say how each is resized, such as --interpolation " + role +
                           "=bilinear for pictures or --interpolation " + role + "=nearest-exact for label maps"};
      }
      first = &item;
    }
  }
  return std::nullopt;
}

struct Report {
  const Sources& sources;
  const SetWriter& writer;
  const SetOutcome& outcome;
  double seconds;
  uint64_t failed;
};

std::string counted(uint64_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

double ratio(const SetTotals& totals) {
  return totals.bytes_in > 0 ? static_cast<double>(totals.bytes_out) / static_cast<double>(totals.bytes_in) : 0;
}

std::string shares(const StageTimes& times) {
  const std::array<std::pair<const char*, double>, 6> stages = {{{"reading", times.read},
                                                                 {"decoding", times.unpack},
                                                                 {"resizing", times.reshape},
                                                                 {"encoding", times.encode},
                                                                 {"verifying", times.verify},
                                                                 {"writing", times.write}}};
  double sum = 0;
  for (const auto& stage : stages) sum += stage.second;
  std::string text;
  for (const auto& [name, seconds] : stages) {
    if (seconds == 0) continue;
    text += (text.empty() ? "" : ", ") + std::string(name) + " " + format_number(sum > 0 ? 100 * seconds / sum : 0, 1) +
            " %";
  }
  return text;
}

void print_summary(const Report& report, bool finished, Console& console) {
  const SetTotals& now = report.outcome.totals;
  SetTotals all = report.writer.kept();
  all.add(now);
  std::string line = counted(now.files, "file", "files") + " converted";
  if (now.files > 0 && report.seconds > 0) {
    line += ": " + format_bytes(now.bytes_in) + " -> " + format_bytes(now.bytes_out) + ", ratio " +
            format_number(ratio(now), 4) + ", " +
            format_number(static_cast<double>(now.pixels) / 1e6 / report.seconds, 1) + " MP/s";
  }
  if (report.writer.kept().files > 0) line += "; " + std::to_string(report.writer.kept().files) + " already done";
  line += report.sources.ignored.summary();
  if (!report.sources.skipped.empty()) line += "; " + std::to_string(report.sources.skipped.size()) + " skipped";
  if (report.failed > 0) line += "; " + std::to_string(report.failed) + " failed";
  if (report.outcome.not_begun > 0) line += "; " + std::to_string(report.outcome.not_begun) + " not started";
  console.print(line);
  if (finished) {
    console.print("the data set contains " + counted(all.groups, "sample", "samples") +
                  (all.files != all.groups ? " of " + counted(all.files, "file", "files") : std::string()) + " in " +
                  counted(report.writer.shards(), "shard", "shards") + ": " + format_bytes(report.writer.bytes()));
  }
  const StageTimes& times = report.outcome.times;
  if (now.files == 0) return;
  console.print("time spent: " + shares(times));
  const auto seconds = [](double time) {
    return time < 1 ? format_number(1000 * time, time < 0.01 ? 1 : 0) + " ms"
                    : format_number(time, time < 10 ? 2 : 0) + " s";
  };
  // Verifying decodes and compares, so decoding takes less.
  std::string cost = "decoding the sources took " + seconds(times.unpack) + " of one core";
  if (times.verify > 0) cost += ", decoding the L3 files less than " + seconds(times.verify);
  console.print(cost);
}

void print_end(const Report& report, bool finished, Console& console) {
  const SetTotals& now = report.outcome.totals;
  const SetTotals& kept = report.writer.kept();
  base::Json json;
  json.open_object().member("event", "end").member("finished", finished);
  json.member("groups", now.groups).member("files", now.files).member("kept_groups", kept.groups);
  json.member("kept_files", kept.files);
  json.member("failed", report.failed);
  const Ignored& ignored = report.sources.ignored;
  json.member("ignored", Ignored::count_of(ignored.others)).member("unsupported", Ignored::count_of(ignored.unread));
  json.member("not_begun", report.outcome.not_begun);
  json.member("pixels", now.pixels).member("bytes_in", now.bytes_in).member("bytes_out", now.bytes_out);
  json.member("shards", report.writer.shards()).member("bytes", report.writer.bytes());
  json.key("seconds").number(report.seconds, 3);
  const StageTimes& times = report.outcome.times;
  json.key("thread_seconds").open_object();
  json.key("read").number(times.read, 3).key("unpack").number(times.unpack, 3);
  json.key("reshape").number(times.reshape, 3);
  json.key("encode").number(times.encode, 3).key("verify").number(times.verify, 3);
  json.key("write").number(times.write, 3).close_object();
  console.print(json.close_object().line());
}

// A source that a complete data set does not have.
std::optional<Failure> find_missing(const std::string& folder, const Sources& sources) {
  const Outcome<l3::DataSet> set = open_data_set(folder);
  if (!set) return set.failure();
  for (const SourceItem& item : sources.items) {
    if (item.use != Use::image || set->find(item.name) || set->find(page_name(item.name, 1))) continue;
    return Failure{folder, std::nullopt,
                   "is complete, but was made without " + item.name + "; to convert all files again, use --force"};
  }
  return std::nullopt;
}

// Reports that --resume has found a complete data set. It still fails if an earlier run left out files, or if sources
// were added since.
int say_whole(const ConvertOptions& options, const Sources& sources, const std::string& report, Context& context) {
  std::error_code error;
  const bool has_failures = std::filesystem::exists(report, error);
  if (!has_failures && options.part.empty()) {
    if (const auto missing = find_missing(options.destination, sources)) {
      context.console.fail(*missing);
      return kExitFailed;
    }
  }
  if (options.json) {
    base::Json json;
    json.open_object().member("event", "end").member("finished", true).member("nothing_to_do", true);
    context.console.print(json.close_object().line());
  } else if (!options.quiet) {
    context.console.print(
        "the data set is complete already; nothing to do (l3 verify --against compares it with the sources)");
  }
  if (!has_failures) return kExitDone;
  context.console.fail({report, std::nullopt, "lists files that failed and are not in the data set"});
  return kExitFailed;
}

// Does everything that comes before the first group is converted.
std::optional<Failure> prepare(const ConvertOptions& options, const Sources& sources,
                               const ConversionSettings& settings, const ModelFiles& models, base::Parallel& parallel,
                               SetWriter& writer, Context& context) {
  if (auto failure = writer.begin()) return failure;
  explain_interruption(options.quiet, options.force, context);
  if (writer.was_complete() || writer.trained()) return std::nullopt;
  const SharedModels which = options.shared_model == "on"    ? SharedModels::always
                             : options.shared_model == "off" ? SharedModels::never
                                                             : SharedModels::where_they_pay;
  auto shared = train_models(sources, settings, which, parallel, context);
  if (!shared) return shared.failure();
  for (const l3_model* model : models.all()) {
    const l3_model_info info = describe(model);
    shared->emplace_back(info.bytes, info.bytes + info.size);
  }
  return writer.set_models(std::move(*shared));
}

int convert(const ConvertOptions& options, Sources& sources, const ModelFiles& models, Context& context,
            bool& is_complete) {
  Console& console = context.console;
  const Part part = part_of(options);
  SetTarget target;
  target.folder = options.destination;
  target.part = part.number;
  target.parts = part.of;
  target.shard_bytes = options.shard_bytes != 0 ? options.shard_bytes : loader::kDefaultShardBytes;
  target.settings = settings_text(options, sources, models);
  target.existing = options.resume ? Existing::resume : options.force ? Existing::replace : Existing::refuse;

  SetConversion conversion;
  conversion.settings.encode = encode_options(options.method);
  conversion.settings.reshaping = reshaping_for(options);
  conversion.settings.models = models.all();
  conversion.settings.limits = options.limits;
  conversion.settings.verify = !options.no_verify;
  conversion.stop_at_failure = options.on_error == "fail";
  base::Parallel parallel(options.jobs);
  conversion.threads = parallel.threads();

  const Sources all = part.of > 1 ? sources : Sources();  // models are made from all parts
  if (part.of > 1) keep_part(sources, part.number, part.of);
  SetWriter writer(target, sources, context);
  if (const auto failure =
          prepare(options, part.of > 1 ? all : sources, conversion.settings, models, parallel, writer, context)) {
    console.fail(*failure);
    return kExitFailed;
  }
  const std::string report_path =
      options.report.empty() ? join(options.destination, report_name(part)) : options.report;
  if (options.resume || options.force) remove_abandoned_of({report_path});
  is_complete = writer.was_complete();
  if (is_complete) return say_whole(options, sources, join(options.destination, report_name(part)), context);
  OpenModels shared;
  if (const auto failure = shared.open(writer.models())) {
    console.fail(*failure);
    return kExitFailed;
  }
  conversion.settings.models = shared.all();
  // Several groups are converted in parallel. If there is only one, its tiles are.
  const uint64_t groups = sources.groups.size();
  if (groups - writer.done() == 1) {
    conversion.settings.encode.parallel = parallel.for_l3();
    conversion.threads = 1;
  }

  uint64_t bytes = 0, files = 0;
  for (uint64_t i = writer.done(); i < groups; ++i) {
    bytes += sources.bytes_of(sources.groups[i]);
    files += sources.groups[i].count;
  }
  Progress progress(console, files, bytes, options.json ? Progress::Style::json : Progress::Style::person,
                    groups - writer.done());
  if (options.json) {
    base::Json json;
    json.open_object().member("event", "begin").member("groups", groups - writer.done()).member("files", files);
    console.print(json.member("bytes", bytes).member("kept_groups", writer.done()).close_object().line());
  }
  // The failures of earlier runs are part of the result.
  for (const Failure& failure : writer.failures()) console.fail(failure);
  const SetOutcome outcome = convert_set(sources, conversion, writer, progress, context);
  std::optional<Failure> broken = outcome.broken;
  std::vector<Failure> failures = sources.left_out;
  failures.insert(failures.end(), writer.failures().begin(), writer.failures().end());
  if (outcome.stopped_by) failures.push_back(*outcome.stopped_by);
  const bool all_done = !broken && writer.done() == groups;
  if (all_done) broken = writer.end_shard();
  // The report comes before the index, because the index makes the data set complete.
  if (!options.report.empty() || (all_done && !failures.empty())) {
    const auto failure = write_report(report_path, failures, context);
    if (!broken) broken = failure;
  }
  if (all_done && !broken) broken = writer.finish(sources.classes);
  context.unfinished.set_last_words("");
  const bool finished = all_done && !broken;
  is_complete = finished;
  if (finished && failures.empty() && options.report.empty()) {
    std::error_code ignored;  // the report of an earlier run
    std::filesystem::remove(report_path, ignored);
  }
  console.clear_status();
  if (broken) {
    console.fail(*broken);
    console.inform("l3: all work so far is kept; continue with --resume");
  } else if (!finished && outcome.failed > 0) {
    console.inform(kStopped);
  }

  const Report report{sources, writer, outcome, progress.seconds(), failures.size()};
  if (options.json) {
    print_end(report, finished, console);
  } else if (!options.quiet) {
    print_summary(report, finished, console);
  }
  return finished && failures.empty() ? kExitDone : kExitFailed;
}

}  // namespace

std::optional<Failure> write_report(const std::string& path, const std::vector<Failure>& failures, Context& context) {
  std::string text = "file\toffset\treason\n";
  for (const Failure& failure : failures) {
    text += one_line(failure.file) + "\t" + (failure.offset ? std::to_string(*failure.offset) : "") + "\t" +
            one_line(failure.reason) + "\n";
  }
  return write_file(path, {reinterpret_cast<const uint8_t*>(text.data()), text.size()}, Flush::none,
                    context.unfinished);
}

int convert_to_set(const ConvertOptions& options, Context& context, bool& is_complete) {
  is_complete = false;
  ModelFiles models;
  if (const auto failure = models.open_for_encoding(options.models)) {
    context.console.fail(*failure);
    return kExitFailed;
  }
  Sources sources = list_sources(options.source);
  for (const std::string& skipped : sources.skipped) context.console.note(skipped, kSkipped);
  for (const Failure& failure : sources.left_out) context.console.fail(failure);
  for (const Failure& failure : sources.refused) context.console.fail(failure);
  if (!sources.refused.empty()) return kExitFailed;
  if (const auto failure = check_interpolations(options, sources)) {
    context.console.fail(*failure);
    return kExitFailed;
  }
  if (!sources.left_out.empty() && options.on_error == "fail") {
    context.console.inform("l3: nothing was converted; --on-error skip converts the rest without these");
    return kExitFailed;
  }
  return convert(options, sources, models, context, is_complete);
}

}  // namespace tools
