// l3 download: copies a data set from a far store to a folder. index.json comes last, as it makes the data set
// complete.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "data_sets.h"
#include "far_set.h"
#include "file_io.h"
#include "image_tree.h"
#include "options.h"
#include "shard_download.h"
#include "transfer.h"

namespace tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWorkFolder = ".l3-download";
constexpr const char* kGoOn = "l3: what is downloaded already stays; to continue, repeat the command";

struct DownloadOptions {
  std::string url, folder;
  uint32_t jobs = 4;
  bool force = false;
  bool quiet = false;
};

// A data set in a far store.
struct FarSet {
  std::unique_ptr<loader::Store> store;
  std::vector<uint8_t> json;
  loader::DataSetIndex index;
  std::optional<l3::DataSet> set;
  std::vector<ShardPlace> places;
};

// The names of files come from the other side.
std::optional<std::string> problem_of(const loader::DataSetIndex& index) {
  std::set<std::string_view> names;
  for (const loader::ShardSummary& shard : index.shards) {
    if (shard.file == loader::kIndexFile || shard.file.starts_with('.')) {
      return "a shard has the file name " + shard.file;
    }
    if (!names.insert(shard.file).second) return "two shards have the file name " + shard.file;
  }
  return std::nullopt;
}

std::optional<Failure> open_far(const std::string& url, FarSet& far) {
  Outcome<std::unique_ptr<loader::Store>> store = open_far_store(url);
  if (!store) return store.failure();
  far.store = std::move(*store);
  Outcome<std::optional<std::vector<uint8_t>>> json = read_far_index(*far.store);
  if (!json) return json.failure();
  if (!*json) {
    return Failure{far.store->name(), std::nullopt, "not a data set, or an unfinished one: index.json is missing"};
  }
  far.json = *std::move(*json);
  const std::string name = far.store->open(loader::kIndexFile)->name();
  if (const auto fault =
          loader::read_json({reinterpret_cast<const char*>(far.json.data()), far.json.size()}, far.index)) {
    return Failure{name, fault->offset, fault->reason};
  }
  if (auto problem = problem_of(far.index)) return Failure{name, std::nullopt, *std::move(problem)};
  Outcome<l3::DataSet> set = open_data_set(url);
  if (!set) return set.failure();
  Outcome<std::vector<ShardPlace>> places = find_places(*set, far.index, far.store->name());
  if (!places) return places.failure();
  far.places = std::move(*places);
  far.set.emplace(std::move(*set));
  return std::nullopt;
}

// The folder of unfinished shards. Only one run at a time may use it.
class WorkFolder {
 public:
  ~WorkFolder() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  std::optional<Failure> open(const std::string& path) {
    path_ = path;
    if (auto failure = make_folder_of(join(path, "x"))) return failure;
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (descriptor_ < 0) return Failure{path, std::nullopt, std::string("cannot open: ") + std::strerror(errno)};
    // A file system may have no locks.
    if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return std::nullopt;
    return Failure{path, std::nullopt, "another l3 download uses this folder"};
  }
  std::string file(const std::string& name) const { return join(path_, name); }
  // Removes it, with the files of an earlier data set.
  void remove(const loader::DataSetIndex& index) const {
    std::error_code ignored;
    for (const loader::ShardSummary& shard : index.shards) fs::remove(file(shard.file), ignored);
    fs::remove(path_, ignored);
  }

 private:
  std::string path_;
  int descriptor_ = -1;
};

// What is in the way of the data set. Removes the index of another one if it is to be replaced.
std::optional<Failure> make_way(const DownloadOptions& options, const FarSet& far, bool& is_complete) {
  const std::string path = join(options.folder, loader::kIndexFile);
  std::error_code error;
  is_complete = false;
  if (fs::exists(options.folder, error) && !is_folder(options.folder)) {
    return Failure{options.folder, std::nullopt, "is not a folder"};
  }
  if (!fs::exists(fs::symlink_status(path, error))) return std::nullopt;
  const Outcome<bridge::Buffer> json = read_file(path);
  if (!json) return json.failure();
  is_complete = std::equal(json->bytes().begin(), json->bytes().end(), far.json.begin(), far.json.end());
  if (is_complete) return std::nullopt;
  if (!options.force) return Failure{options.folder, std::nullopt, "has another data set; --force replaces it"};
  fs::remove(path, error);
  return error ? std::optional(Failure{path, std::nullopt, "cannot remove: " + error.message()}) : std::nullopt;
}

std::optional<Failure> download(const DownloadOptions& options, Context& context) {
  Console& console = context.console;
  FarSet far;
  if (auto failure = open_far(options.url, far)) return failure;
  bool has_index = false;
  if (auto failure = make_way(options, far, has_index)) return failure;
  WorkFolder work;
  if (auto failure = work.open(join(options.folder, kWorkFolder))) return failure;
  if (!options.quiet) context.unfinished.set_last_words(kGoOn);
  Transfer transfer(console, far.index.shards.size(), far.set->info().bytes);
  const uint64_t left = transfer.run(options.jobs, [&](uint64_t number) {
    const loader::ShardSummary& summary = far.index.shards[number];
    const ShardToFetch shard{*far.store,
                             *far.set,
                             summary,
                             far.places[number],
                             join(options.folder, summary.file),
                             work.file(summary.file),
                             options.force};
    return ShardDownload(shard, transfer).run();
  });
  std::optional<Failure> failure;
  if (left == 0 && !has_index) {
    const std::string path = join(options.folder, loader::kIndexFile);
    remove_abandoned_of({path});
    failure = write_file(path, far.json, Flush::to_disk, context.unfinished);
  }
  context.unfinished.set_last_words("");
  if (!options.quiet) console.print(transfer.summary("downloaded"));
  if (failure) return failure;
  if (left == 0) {
    work.remove(far.index);
    return std::nullopt;
  }
  console.inform(kGoOn);
  return Failure{options.folder, std::nullopt, "the data set is not complete, so index.json was not written"};
}

int download_set(const DownloadOptions& options, Context& context) try {
  context.console.set_quiet(options.quiet);
  const auto failure = download(options, context);
  if (!failure) return kExitDone;
  context.console.fail(*failure);
  return kExitFailed;
} catch (...) {
  context.console.fail(caught(path_text(options.url)));
  return kExitFailed;
}

}  // namespace

void add_download(CommandLine& line) {
  Subcommand sub = line.command("download", "Copy a data set from HTTP, S3 or Redis to a folder");
  auto options = std::make_shared<DownloadOptions>();
  sub.option("URL", options->url, "The data set: http, https, s3, redis or rediss").required().type("").far();
  sub.option("FOLDER", options->folder, "The folder to write to; it is created if it does not exist")
      .required()
      .type("")
      .local();
  add_transfer_jobs(sub, options->jobs, "download");
  sub.flag("--force", options->force, "Replace another data set, and files that differ");
  add_quiet(sub, options->quiet);
  sub.examples(
      "  l3 download s3://bucket/set set/\n"
      "  l3 download https://example.org/set set/\n");
  sub.footer(
      "A download is safe to interrupt: repeat the command to continue. The files equal the original ones in every\n"
      "byte. Each shard gets its name when all of its samples are verified. index.json is written last.\n");
  sub.manual(
      "Unfinished shards are in FOLDER/.l3-download. Of these, samples that verify are not read again. Shards that\n"
      "have their names already are skipped if size, index and footer are right.\n");
  sub.run([options](Context& context) { return download_set(*options, context); });
}

}  // namespace tools
