// l3 cache: fills, shows and removes caches of samples.
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "base/parallel.h"
#include "data_sets.h"
#include "loader/cache_sets.h"
#include "loader/store.h"
#include "options.h"
#include "progress.h"

namespace tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGoOn = "l3: repeat the command to continue";

struct CacheOptions {
  std::string action;
  std::vector<std::string> words;
  std::string only;  // the data set to remove
  uint32_t jobs = 0;
  bool json = false;
  bool quiet = false;
};

std::string counted(uint64_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// ------------------------------------------------------------------------------------------------------------ fill

// Threads that read mostly wait for the store.
uint32_t filling_threads(const std::string& set, uint32_t chosen) {
  constexpr uint32_t kFar = 128, kNear = 16;
  return chosen != 0 ? chosen : loader::is_url(set) ? kFar : kNear;
}

bool is_full(int error) { return error == ENOSPC || error == EDQUOT || error == EFBIG; }

// Reads the samples that are to be in the cache and are not there, which puts them there.
class Filling {
 public:
  Filling(const l3::DataSet& set, Context& context) : set_(set), context_(context) {}

  // Returns false if the folders have no room. An empty cache that was made for nothing is removed.
  bool has_room() {
    std::map<dev_t, uint64_t> wanted;
    bool found = true;
    for (const loader::CachePart& part : loader::cache_parts(*set_.get())) {
      struct stat status {};
      struct statvfs system {};
      if (part.folder.empty() || stat(part.place.c_str(), &status) != 0 || statvfs(part.place.c_str(), &system) != 0) {
        continue;
      }
      const uint64_t room = uint64_t{system.f_bavail} * system.f_frsize;
      uint64_t& all = wanted[status.st_dev];
      all += part.missing_bytes;
      if (all <= room) continue;
      context_.console.fail({part.place, std::nullopt,
                             "needs " + format_bytes(part.missing_bytes) + ", but only " + format_bytes(room) +
                                 (all > part.missing_bytes ? " are free for all places there" : " are free there") +
                                 "; choose a smaller size"});
      found = false;
    }
    return found;
  }

  int run(uint32_t jobs) {
    std::vector<uint64_t> missing;
    uint64_t bytes = 0;
    const uint64_t samples = set_.count();
    for (uint64_t i = 0; i < samples; ++i) {
      if (l3_data_is_cached(set_.get(), i) != L3_CACHED_NOT_YET) continue;
      missing.push_back(i);
      bytes += set_.sample(i).size;
    }
    Progress progress(context_.console, missing.size(), bytes);
    base::for_each_of(missing.size(), jobs, [&](uint64_t number) { fill(missing[number], progress); });
    context_.console.clear_status();
    return report(progress, missing.size());
  }

 private:
  void fill(uint64_t index, Progress& progress) {
    if (stopped_.load()) return;
    const uint64_t size = set_.sample(index).size;
    progress.begin(size);
    // Another process may have read it.
    if (l3_data_is_cached(set_.get(), index) == L3_CACHED) {
      found_.fetch_add(1);
    } else if (const Outcome<bridge::Buffer> read = read_sample(set_, index); !read) {
      return progress.fail(read.failure(), size);
    }
    progress.add({1, 0, 0, 0, size}, size);
    const l3_data_cache_info info = set_.cache();
    if (info.failures > 0 && is_full(info.last_failure.system_error)) stopped_.store(true);
  }

  int report(const Progress& progress, uint64_t wanted) {
    Console& console = context_.console;
    const l3_data_cache_info info = set_.cache();
    const Totals done = progress.totals();
    // Folders know what they have. Of other places, a sample is there if it was found or written.
    uint64_t left = 0;
    bool all_known = true;
    for (const loader::CachePart& part : loader::cache_parts(*set_.get())) {
      all_known = all_known && !part.folder.empty();
      if (!part.folder.empty()) left += part.missing;
    }
    if (!all_known) {
      const uint64_t good = info.hits + info.kept - std::min(info.hits + info.kept, info.damaged) + found_.load();
      left = std::max(left, wanted - std::min(wanted, good));
    }
    if (info.failures > 0) console.fail(failure_of(info.last_failure));
    const uint64_t there = info.samples - std::min(left, info.samples);
    if (!console.quiet()) {
      console.print(
          std::to_string(there) + " of " + counted(info.samples, "sample") + " are cached (" +
          format_number(100.0 * static_cast<double>(there) / static_cast<double>(std::max<uint64_t>(set_.count(), 1)),
                        1) +
          " % of the data set), " + std::to_string(info.kept) + " of them new: " + format_bytes(done.bytes_out) +
          " read, " + format_bytes(static_cast<uint64_t>(static_cast<double>(done.bytes_out) / progress.seconds())) +
          "/s");
    }
    if (left == 0 && done.failed == 0) return kExitDone;
    if (left > 0)
      console.fail(
          {"", std::nullopt,
           counted(left, "sample") + (left == 1 ? " is" : " are") + " not cached; repeat the command to continue"});
    return kExitFailed;
  }

  const l3::DataSet& set_;
  Context& context_;
  std::atomic<uint64_t> found_{0};
  std::atomic<bool> stopped_{false};
};

// Removes caches of this data set in which nothing is, so that a smaller size is not refused.
void remove_empty(const l3::DataSet& set) {
  for (const loader::CachePart& part : loader::cache_parts(*set.get())) {
    std::vector<loader::CachedSet> sets;
    if (part.folder.empty() || part.missing < part.samples || loader::list_cached_sets(part.place, sets) != 0) continue;
    for (const loader::CachedSet& one : sets) {
      if (one.folder == part.folder) (void)loader::remove_cached_set(one);
    }
  }
}

int fill(const CacheOptions& options, Context& context) {
  if (options.words.size() < 2) return wrong_usage(context, "cache: fill needs a data set and PLACE=SIZE");
  std::string places;
  for (const std::string& word : std::span(options.words).subspan(1)) {
    if (word.find('=') == word.npos) return wrong_usage(context, "cache: " + word + " is not PLACE=SIZE");
    places += (places.empty() ? "" : ",") + word;
  }
  l3_data_options opening = l3_data_options_init();
  opening.cache = places.c_str();
  const std::string& path = options.words.front();
  const Outcome<l3::DataSet> set = open_data_set(path, opening);
  if (!set && set.failure().file.empty()) return wrong_usage(context, "cache: " + set.failure().reason);
  if (!set) {
    context.console.fail(set.failure());
    return kExitFailed;
  }
  if (set->cache().samples == 0) {
    context.console.fail({"", std::nullopt, "these sizes are too small: not even the first samples fit"});
    remove_empty(*set);
    return kExitFailed;
  }
  Filling filling(*set, context);
  if (!filling.has_room()) {
    remove_empty(*set);
    return kExitFailed;
  }
  if (!options.quiet) context.unfinished.set_last_words(kGoOn);
  const int code = filling.run(filling_threads(path, options.jobs));
  context.unfinished.set_last_words("");
  return code;
}

// ---------------------------------------------------------------------------------------------------- status, clear

// The folder that a word names, which may end in =SIZE.
std::string place_of(const std::string& word) {
  std::error_code error;
  const size_t equals = word.rfind('=');
  return equals == word.npos || fs::exists(word, error) ? word : word.substr(0, equals);
}

// Lists the data sets in a place.
std::optional<Failure> list_place(const std::string& place, std::vector<loader::CachedSet>& sets) {
  if (loader::is_url(place)) {
    return Failure{path_text(place), std::nullopt,
                   "only folders can be listed; docs/cache.md tells which keys a store has"};
  }
  if (const int error = loader::list_cached_sets(place, sets); error != 0) {
    return Failure{place, std::nullopt, std::strerror(error)};
  }
  return std::nullopt;
}

std::string as_json(const std::string& place, const loader::CachedSet& set) {
  base::Json json;
  json.open_object().member("place", place).member("folder", set.folder).member("data_set", set.data_set);
  json.member("size", set.size).member("samples", set.samples).member("bytes", set.bytes);
  json.member("present", set.present).member("of_samples", set.of_samples).member("of_bytes", set.of_bytes);
  json.member("disk_bytes", set.disk_bytes);
  if (!set.problem.empty()) json.member("problem", set.problem);
  return json.close_object().line();
}

using Row = std::vector<std::string>;

Row row_of(const std::string& place, const loader::CachedSet& set) {
  const double share = set.of_samples == 0 ? 0 : static_cast<double>(set.samples) / static_cast<double>(set.of_samples);
  return {one_line(place),
          one_line(set.data_set.empty() ? set.folder : set.data_set),
          format_bytes(set.size),
          std::to_string(set.present) + " of " + std::to_string(set.samples),
          format_number(100 * share, 1) + " %",
          format_bytes(set.disk_bytes)};
}

void print_table(const std::vector<Row>& rows, Console& console) {
  std::vector<size_t> widths(rows.front().size());
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line += std::string(widths[i] - row[i].size() + 2, ' ');
    }
    console.print(line);
  }
}

int status(const CacheOptions& options, Context& context) {
  int code = kExitDone;
  const auto fail = [&](const Failure& failure) {
    context.console.fail(failure);
    code = kExitFailed;
  };
  std::vector<Row> rows = {{"PLACE", "DATA SET", "SIZE", "PRESENT", "SHARE", "ON DISK"}};
  for (const std::string& word : options.words) {
    const std::string place = place_of(word);
    std::vector<loader::CachedSet> sets;
    if (const auto failure = list_place(place, sets)) fail(*failure);
    for (const loader::CachedSet& set : sets) {
      if (!set.problem.empty()) fail({set.folder, std::nullopt, set.problem});
      if (options.json) {
        context.console.print(as_json(place, set));
      } else {
        rows.push_back(row_of(place, set));
      }
    }
  }
  if (rows.size() > 1) print_table(rows, context.console);
  if (rows.size() == 1 && !options.json && code == kExitDone) context.console.print("nothing is cached there");
  return code;
}

bool is_called(const loader::CachedSet& set, const std::string& name) {
  const auto plain = [](const std::string& path) {
    std::string text = loader::is_url(path) ? path_text(path) : fs::absolute(path).lexically_normal().string();
    while (text.size() > 1 && text.ends_with('/')) text.pop_back();
    return text;
  };
  return !set.data_set.empty() && plain(set.data_set) == plain(name);
}

int clear(const CacheOptions& options, Context& context) {
  int code = kExitDone;
  uint64_t removed = 0, freed = 0;
  const auto fail = [&](const Failure& failure) {
    context.console.fail(failure);
    code = kExitFailed;
  };
  for (const std::string& word : options.words) {
    const std::string place = place_of(word);
    std::vector<loader::CachedSet> sets;
    if (const auto failure = list_place(place, sets)) fail(*failure);
    for (const loader::CachedSet& set : sets) {
      if (!options.only.empty() && !is_called(set, options.only)) continue;
      if (const int error = loader::remove_cached_set(set); error != 0) {
        fail({set.folder, std::nullopt, std::string("cannot remove: ") + std::strerror(error)});
        continue;
      }
      ++removed;
      freed += set.disk_bytes;
    }
  }
  if (removed == 0 && !options.only.empty() && code == kExitDone) {
    fail({path_text(options.only), std::nullopt, "this data set is not cached there; l3 cache status lists what is"});
  } else if (!options.quiet) {
    context.console.print("removed " + counted(removed, "data set") + ", " + format_bytes(freed));
  }
  return code;
}

int run_cache(const CacheOptions& options, Context& context) try {
  context.console.set_quiet(options.quiet);
  if (options.action == "fill") return fill(options, context);
  return options.action == "status" ? status(options, context) : clear(options, context);
} catch (...) {
  context.console.fail(caught(path_text(options.words.front())));
  return kExitFailed;
}

}  // namespace

void add_cache(CommandLine& line) {
  Subcommand sub = line.command("cache", "Fill, show and remove caches of samples");
  auto options = std::make_shared<CacheOptions>();
  sub.option("ACTION", options->action, "What to do: status, fill or clear")
      .required()
      .one_of({"status", "fill", "clear"});
  sub.option("WORD", options->words, "For fill: a data set, and PLACE=SIZE for each place. Otherwise: places")
      .required()
      .type("");
  sub.option("-j,--jobs", options->jobs, "Samples to read at the same time, 1 to 1024 (default: 16; from a URL 128)")
      .type("N")
      .whole_between(1, 1024);
  sub.option("--set", options->only, "Clear only this data set, by the path or URL that status shows").type("SET");
  sub.flag("--json", options->json, "Status prints a line of JSON for each data set");
  add_quiet(sub, options->quiet);
  sub.examples(
      "  l3 cache fill s3://bucket/set /nvme/l3=500GB    read samples, up to 500 GB, and keep them\n"
      "  l3 cache fill set/ /dev/shm/l3=8GB /nvme/l3=65%\n"
      "  l3 cache status /dev/shm/l3 /nvme/l3            show what is there\n"
      "  l3 cache clear /nvme/l3                         remove everything that is cached there\n");
  sub.footer(
      "A place is a folder, also one in memory, or for fill the URL of a store such as Redis. A size is written as\n"
      "500GB, or as 65%, which is a share of the data set. Filling is safe to interrupt: repeat the command to\n"
      "continue. Loaders that are given the same places and sizes find the samples there, and fill what is missing.\n");
  sub.manual(
      "Fill checks first that the folders have room. The exit status is 0 only if all samples that the places have\n"
      "room for are there. Clear may run while loaders use a place: they read the samples from the store again.\n"
      "docs/cache.md tells more.\n");
  sub.run([options](Context& context) { return run_cache(*options, context); });
}

}  // namespace tools
