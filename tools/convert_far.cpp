// l3 convert with a URL: converts to a local folder, the spool, and uploads it.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/hex.h"
#include "convert.h"
#include "far_set.h"
#include "file_io.h"
#include "image_tree.h"
#include "upload.h"

namespace tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMark = ".l3-spool";
constexpr const char* kReport = "errors.tsv";
constexpr std::string_view kReplace = "replace\n";

// The folder of a conversion to a URL. Its mark, a file, has the name of the URL, and whether to replace a data set
// there, so that --resume goes on with that.
class Spool {
 public:
  // `chosen` is the folder that the user chose; empty: none.
  Spool(const std::string& chosen, const std::string& url_name) : url_name_(url_name), is_chosen_(!chosen.empty()) {
    folder_ = chosen;
    if (is_chosen_) return;
    const char* const temporary = std::getenv("TMPDIR");
    loader::Digest digest{};
    l3_digest(url_name.data(), url_name.size(), digest.data());
    folder_ = join(temporary != nullptr && *temporary != 0 ? temporary : "/tmp",
                   "l3-spool-" + std::to_string(geteuid()) + "-" + base::hexadecimal(digest));
  }

  const std::string& folder() const { return folder_; }
  bool replaces() const { return replaces_; }
  std::string path_of(const std::string& name) const { return join(folder_, name); }

  // Whether an earlier run has left work here.
  bool has_work() const {
    std::error_code error;
    return fs::exists(path_of(kMark), error) &&
           (fs::exists(path_of(loader::kIndexFile), error) || fs::exists(path_of(".l3-convert"), error));
  }

  std::optional<Failure> begin(const ConvertOptions& options, Context& context) {
    if (auto failure = is_chosen_ ? make_folder_of(path_of(kMark)) : make_private()) return failure;
    replaces_ = options.force;
    std::error_code error;
    if (fs::exists(fs::symlink_status(path_of(kMark), error))) {
      const Outcome<bridge::Buffer> mark = read_file(path_of(kMark));
      if (!mark) return mark.failure();
      const std::string text(mark->bytes().begin(), mark->bytes().end());
      if (!text.starts_with(url_name_ + "\n")) return failure("is the spool of a conversion to another URL");
      if (has_work() && !options.force && !options.resume) {
        return failure(
            "has an unfinished conversion to this URL; continue it with --resume, or start over with --force");
      }
      replaces_ = replaces_ || text.ends_with("\n" + std::string(kReplace));
    } else if (auto failure = check_empty()) {
      return failure;
    }
    const std::string text = url_name_ + "\n" + std::string(replaces_ ? kReplace : "");
    return write_file(path_of(kMark), {reinterpret_cast<const uint8_t*>(text.data()), text.size()}, Flush::to_disk,
                      context.unfinished);
  }

  // Removes the uploaded data set. A list of files that failed stays.
  void remove() const {
    const Outcome<bridge::Buffer> json = read_file(path_of(loader::kIndexFile));
    loader::DataSetIndex index;
    if (!json || loader::read_json({reinterpret_cast<const char*>(json->bytes().data()), json->size()}, index)) return;
    std::error_code error;
    fs::remove(path_of(loader::kIndexFile), error);
    for (const loader::ShardSummary& shard : index.shards) fs::remove(path_of(shard.file), error);
    fs::remove(path_of(kMark), error);
    fs::remove(folder_, error);
  }

 private:
  Failure failure(const std::string& reason) const { return {folder_, std::nullopt, reason}; }

  // A list of files that failed may be left of another run.
  std::optional<Failure> check_empty() const {
    std::error_code error;
    for (auto entry = fs::directory_iterator(folder_, error); !error && entry != fs::directory_iterator();
         entry.increment(error)) {
      if (entry->path().filename() != kReport) return failure("is not empty; the spool must be a folder of its own");
    }
    return error ? std::optional(failure("cannot read this folder: " + error.message())) : std::nullopt;
  }

  // Other users can write to the folder of temporary files. They must not choose what is written where.
  std::optional<Failure> make_private() const {
    if (mkdir(folder_.c_str(), 0700) == 0) return std::nullopt;
    if (errno != EEXIST) return failure(std::string("cannot create: ") + std::strerror(errno));
    struct stat status {};
    if (lstat(folder_.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
        (status.st_mode & (S_IWGRP | S_IWOTH)) == 0) {
      return std::nullopt;
    }
    return failure("is not a folder that only this user can write to; choose another one with --spool");
  }

  std::string url_name_, folder_;
  bool is_chosen_;
  bool replaces_ = false;
};

// What to do where the store has an index.json already. Nothing if the conversion can begin.
std::optional<int> look_at_target(const ConvertOptions& options, loader::Store& store, const Spool& spool,
                                  Context& context) {
  if (options.force || (options.resume && spool.has_work())) return std::nullopt;
  const Outcome<std::optional<FarEnd>> index = read_end(store, loader::kIndexFile, 1);
  if (index && !*index) return std::nullopt;
  if (index && options.resume) {
    std::error_code error;
    if (fs::exists(spool.path_of(kReport), error)) {
      context.console.fail(
          {spool.path_of(kReport), std::nullopt, "lists files that failed and are not in the data set"});
      return kExitFailed;
    }
    if (!options.quiet && !options.json) {
      context.console.print(
          "the data set is complete already; nothing to do (l3 verify --against compares it with the sources)");
    }
    return kExitDone;
  }
  context.console.fail(index ? Failure{store.name(), std::nullopt, "has a data set already; --force replaces it"}
                             : index.failure());
  return kExitFailed;
}

}  // namespace

int convert_to_far(const ConvertOptions& options, Context& context) {
  Console& console = context.console;
  const auto failed = [&](const Failure& failure) {
    console.fail(failure);
    return kExitFailed;
  };
  const Outcome<std::unique_ptr<loader::Store>> store = open_far_store(options.destination);
  if (!store) return failed(store.failure());
  Spool spool(options.spool, (*store)->name());
  if (const auto code = look_at_target(options, **store, spool, context)) return *code;
  if (const auto failure = spool.begin(options, context)) return failed(*failure);
  if (is_same_file(options.source.source, spool.folder())) {
    return failed({spool.folder(), std::nullopt, "is both SRC and the spool"});
  }

  ConvertOptions local = options;
  local.destination = spool.folder();
  bool is_complete = false;
  const int code = convert_to_set(local, context, is_complete);
  if (!is_complete) {
    console.inform("l3: nothing is uploaded yet; the work so far is in " + one_line(spool.folder()));
    return code;
  }
  UploadOptions upload;
  upload.set = spool.folder();
  upload.url = options.destination;
  upload.replace = spool.replaces();
  upload.quiet = options.quiet;
  upload.json = options.json;
  upload.how_to_go_on = "repeat the command with --resume";
  if (upload_set(upload, context) != kExitDone) {
    console.inform("l3: the converted data set stays in " + one_line(spool.folder()));
    return kExitFailed;
  }
  spool.remove();
  std::error_code error;
  if (options.report.empty() && fs::exists(spool.path_of(kReport), error)) {
    console.inform("l3: " + one_line(spool.path_of(kReport)) + " lists the files that failed");
  }
  return code;
}

}  // namespace tools
