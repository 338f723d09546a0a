// l3 merge: joins the parts of a data set. Only the indexes change.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data_sets.h"
#include "file_io.h"
#include "image_tree.h"
#include "options.h"
#include "set_writer.h"

namespace tools {
namespace {

namespace fs = std::filesystem;

struct MergeOptions {
  std::string folder;
  bool quiet = false;
};

struct FoundPart {
  std::string path;
  PartIndex index;
};

// Finds all parts in a folder and sorts them by number.
Outcome<std::vector<FoundPart>> find_parts(const std::string& folder) {
  std::vector<FoundPart> parts;
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with("part-") || !name.ends_with(".json")) continue;
    Outcome<PartIndex> index = read_part_index(join(folder, name));
    if (!index) return index.failure();
    if (name != part_index_name(index->part, index->parts)) {
      return Failure{join(folder, name), std::nullopt, "its contents are those of another part"};
    }
    parts.push_back({join(folder, name), std::move(*index)});
  }
  if (error) return Failure{folder, std::nullopt, "cannot read this folder: " + error.message()};
  std::sort(parts.begin(), parts.end(),
            [](const FoundPart& a, const FoundPart& b) { return a.index.part < b.index.part; });
  return parts;
}

// Returns why these are not all parts of one data set.
std::optional<Failure> problem_of(const std::string& folder, const std::vector<FoundPart>& parts) {
  if (parts.empty()) {
    return Failure{
        folder, std::nullopt,
        "this folder has no finished parts of a data set (l3 convert --part writes part-IofN.json at its end)"};
  }
  const PartIndex& first = parts.front().index;
  for (const FoundPart& part : parts) {
    if (part.index.parts != first.parts) {
      return Failure{part.path, std::nullopt,
                     "is one of " + std::to_string(part.index.parts) + " parts, but " + parts.front().path +
                         " is one of " + std::to_string(first.parts)};
    }
    if (part.index.settings != first.settings || part.index.index.classes != first.index.classes) {
      return Failure{part.path, std::nullopt,
                     "was made from other sources or with other options than " + parts.front().path};
    }
  }
  std::string missing;
  constexpr size_t kEnough = 60;
  size_t at = 0;
  for (uint64_t number = 1; number <= first.parts && missing.size() < kEnough; ++number) {
    if (at < parts.size() && parts[at].index.part == number) {
      ++at;
    } else {
      missing += (missing.empty() ? "" : ", ") + std::to_string(number);
    }
  }
  if (missing.size() >= kEnough) missing += " ...";
  if (missing.empty()) return std::nullopt;
  return Failure{folder, std::nullopt,
                 "these of the " + std::to_string(first.parts) + " parts are missing: " + missing};
}

int merge(const MergeOptions& options, Context& context) {
  Console& console = context.console;
  console.set_quiet(options.quiet);
  const auto failed = [&](const Failure& failure) {
    console.fail(failure);
    return kExitFailed;
  };
  const std::string path = join(options.folder, loader::kIndexFile);
  std::error_code error;
  Outcome<std::vector<FoundPart>> parts = find_parts(options.folder);
  if (!parts) return failed(parts.failure());
  if (parts->empty() && fs::exists(path, error)) {
    if (!options.quiet) console.print("this is a complete data set already; nothing to do");
    return kExitDone;
  }
  if (const auto failure = problem_of(options.folder, *parts)) return failed(*failure);
  loader::DataSetIndex whole;
  whole.classes = parts->front().index.index.classes;
  for (FoundPart& part : *parts) {
    for (loader::ShardSummary& shard : part.index.index.shards) whole.shards.push_back(std::move(shard));
  }
  const std::string json = loader::to_json(whole);
  if (const auto failure = write_file(path, {reinterpret_cast<const uint8_t*>(json.data()), json.size()},
                                      Flush::to_disk, context.unfinished)) {
    return failed(*failure);
  }
  // If shards are missing or do not match the indexes, everything stays as it was.
  const Outcome<l3::DataSet> set = open_data_set(options.folder);
  if (!set) {
    fs::remove(path, error);
    return failed(set.failure());
  }
  for (const FoundPart& part : *parts) fs::remove(part.path, error);
  if (!options.quiet) {
    console.print(std::to_string(parts->size()) + " parts merged: " + std::to_string(set->info().samples) +
                  " samples in " + std::to_string(set->info().shards) + " shards");
  }
  return kExitDone;
}

}  // namespace

void add_merge(CommandLine& line) {
  Subcommand sub = line.command("merge", "Join the parts that l3 convert --part made");
  auto options = std::make_shared<MergeOptions>();
  sub.option("SET", options->folder, "The folder that all parts were written to").required().type("").local();
  add_quiet(sub, options->quiet);
  sub.examples("  for i in 1 2 3 4; do l3 convert --part $i/4 pngs/ set/ & done; wait; l3 merge set/\n");
  sub.footer(
      "All parts must be in the folder, and they must have the same sources and options. Merging is fast: it reads\n"
      "and writes only indexes, and the shards stay where they are.\n");
  sub.run([options](Context& context) { return merge(*options, context); });
}

}  // namespace tools
