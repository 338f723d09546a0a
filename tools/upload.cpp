// l3 upload: copies a data set to a far store. index.json comes last, as it makes the data set complete.
#include "upload.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "base/parallel.h"
#include "command_tree.h"
#include "data_sets.h"
#include "far_set.h"
#include "file_io.h"
#include "image_tree.h"
#include "options.h"
#include "progress.h"
#include "transfer.h"
#include "verify_set.h"

namespace tools {
namespace {

// A data set in a folder.
struct LocalSet {
  std::vector<uint8_t> json;
  loader::DataSetIndex index;
  std::optional<l3::DataSet> set;
  std::vector<ShardPlace> places;
};

std::optional<Failure> open_local(const std::string& path, LocalSet& local) {
  if (!is_folder(path)) return Failure{path_text(path), std::nullopt, "is not the folder of a data set"};
  Outcome<l3::DataSet> set = open_data_set(path);
  if (!set) return set.failure();
  const std::string json_path = join(path, loader::kIndexFile);
  const Outcome<bridge::Buffer> json = read_file(json_path);
  if (!json) return json.failure();
  local.json.assign(json->bytes().begin(), json->bytes().end());
  if (const auto fault =
          loader::read_json({reinterpret_cast<const char*>(local.json.data()), local.json.size()}, local.index)) {
    return Failure{json_path, fault->offset, fault->reason};
  }
  Outcome<std::vector<ShardPlace>> places = find_places(*set, local.index, path);
  if (!places) return places.failure();
  local.places = std::move(*places);
  local.set.emplace(std::move(*set));
  return std::nullopt;
}

class Uploader {
 public:
  Uploader(const LocalSet& local, loader::Store& store, bool force, Transfer& transfer)
      : local_(local), store_(store), force_(force), transfer_(transfer) {}

  std::optional<TransferFailure> upload_shard(uint64_t number) {
    const loader::ShardSummary& shard = local_.index.shards[number];
    if (!force_) {
      const Outcome<bool> there = has_shard(store_, shard, local_.places[number]);
      if (!there) return TransferFailure{there.failure(), true};
      if (*there) {
        transfer_.keep_shard(shard.bytes);
        return std::nullopt;
      }
    }
    if (auto failure = check_source(number)) return TransferFailure{*std::move(failure)};
    return put_shard(number);
  }

  // Writes index.json and compares it. Must be called last.
  std::optional<Failure> upload_index() {
    loader::Upload upload;
    upload.key = loader::kIndexFile;
    upload.size = local_.json.size();
    upload.read = [this](uint64_t offset, std::span<uint8_t> to) {
      std::copy_n(local_.json.begin() + static_cast<std::ptrdiff_t>(offset), to.size(), to.begin());
      return loader::StoreFault();
    };
    const std::string name = store_.open(loader::kIndexFile)->name();
    if (const loader::StoreFault fault = store_.put(upload)) return failure_of(name, fault);
    const Outcome<std::optional<FarEnd>> end = read_end(store_, loader::kIndexFile, local_.json.size() + 1);
    if (!end) return end.failure();
    if (*end && (*end)->bytes == local_.json) return std::nullopt;
    return Failure{name, std::nullopt, "the store has other bytes than those that were written"};
  }

 private:
  // Verifies everything in a local shard that can be verified without decoding pixels.
  std::optional<Failure> check_source(uint64_t number) const {
    l3_data_error error{};
    if (l3_data_verify_shard(local_.set->get(), number, &error) != L3_OK) return failure_of(error);
    const ShardPlace& place = local_.places[number];
    for (uint64_t i = 0; i < place.samples; ++i) {
      if (const Outcome<bridge::Buffer> bytes = read_sample(*local_.set, place.first_sample + i); !bytes) {
        return bytes.failure();
      }
    }
    return std::nullopt;
  }

  std::optional<TransferFailure> put_shard(uint64_t number) {
    const loader::ShardSummary& shard = local_.index.shards[number];
    const ShardPlace& place = local_.places[number];
    RandomFile file;
    if (auto failure = file.open(l3_data_shard_name(local_.set->get(), number))) {
      return TransferFailure{*std::move(failure)};
    }
    std::vector<l3_range> ranges;
    for (uint64_t i = 0; i < place.samples; ++i) {
      const l3::Sample sample = local_.set->sample(place.first_sample + i);
      ranges.push_back({sample.offset, sample.size});
    }
    std::mutex mutex;
    std::optional<Failure> not_read;  // of the local file
    loader::Upload upload;
    upload.key = shard.file;
    upload.size = shard.bytes;
    upload.samples = ranges;
    upload.sent = [&](uint64_t bytes) { transfer_.count_moved(bytes); };
    upload.read = [&](uint64_t offset, std::span<uint8_t> to) {
      const auto failure = file.read(offset, to);
      if (!failure) return loader::StoreFault();
      const std::lock_guard lock(mutex);
      not_read = failure;
      return loader::StoreFault{L3_ERROR_FILE, 0, offset, failure->reason};
    };
    const loader::StoreFault fault = store_.put(upload);
    if (not_read) return TransferFailure{*std::move(not_read)};
    const std::string name = store_.open(shard.file)->name();
    if (fault) return TransferFailure{failure_of(name, fault), true};
    const Outcome<bool> there = has_shard(store_, shard, place);
    if (!there) return TransferFailure{there.failure(), true};
    if (*there) return std::nullopt;
    return TransferFailure{{name, std::nullopt, "the store has another shard than the one that was written"}, true};
  }

  const LocalSet& local_;
  loader::Store& store_;
  const bool force_;
  Transfer& transfer_;
};

enum class Found : uint8_t { nothing, same, other };

// Compares the index.json of the store.
Outcome<Found> find_index(loader::Store& store, const std::vector<uint8_t>& json) {
  const Outcome<std::optional<FarEnd>> end = read_end(store, loader::kIndexFile, json.size() + 1);
  if (!end) return end.failure();
  return !*end ? Found::nothing : (*end)->bytes == json ? Found::same : Found::other;
}

void print_result(const Transfer& transfer, const UploadOptions& options, bool finished, Console& console) {
  if (options.json) {
    base::Json json;
    json.open_object().member("event", "upload").member("finished", finished);
    json.member("shards", transfer.shards_moved()).member("bytes", transfer.bytes_moved());
    console.print(json.key("seconds").number(transfer.seconds(), 3).close_object().line());
  } else if (!options.quiet) {
    console.print(transfer.summary("uploaded"));
  }
}

std::optional<Failure> upload(const UploadOptions& options, Context& context) {
  Console& console = context.console;
  LocalSet local;
  if (auto failure = open_local(options.set, local)) return failure;
  const Outcome<std::unique_ptr<loader::Store>> store = open_far_store(options.url);
  if (!store) return store.failure();
  const Outcome<Found> found = find_index(**store, local.json);
  if (!found) return found.failure();
  if (*found == Found::other && !options.force && !options.replace) {
    return Failure{(*store)->name(), std::nullopt, "has another data set; --force replaces it"};
  }
  const std::string go_on = "l3: what is uploaded already stays; to continue, " + options.how_to_go_on;
  if (!options.quiet) context.unfinished.set_last_words(go_on);
  Transfer transfer(console, local.index.shards.size(), local.set->info().bytes);
  Uploader uploader(local, **store, options.force, transfer);
  const uint64_t left = transfer.run(options.jobs, [&](uint64_t number) { return uploader.upload_shard(number); });
  std::optional<Failure> failure;
  const bool all_there = *found == Found::same && transfer.shards_moved() == 0;
  if (left == 0 && !all_there) failure = uploader.upload_index();
  context.unfinished.set_last_words("");
  print_result(transfer, options, left == 0 && !failure, console);
  if (failure || left == 0) return failure;
  console.inform(go_on);
  return Failure{(*store)->name(), std::nullopt, "the data set is not complete, so index.json was not written"};
}

}  // namespace

int upload_set(const UploadOptions& options, Context& context) try {
  if (const auto failure = upload(options, context)) {
    context.console.fail(*failure);
    return kExitFailed;
  }
  if (!options.verify) return kExitDone;
  base::Parallel parallel(reading_threads(options.url, 0));
  SetVerification verification;
  verification.set = options.url;
  verification.say_result = !options.quiet && !options.json;
  return verify_data_set(verification, parallel, context) == 0 ? kExitDone : kExitFailed;
} catch (...) {
  context.console.fail(caught(path_text(options.url)));
  return kExitFailed;
}

void add_upload(CommandLine& line) {
  Subcommand sub = line.command("upload", "Copy a data set to HTTP, S3 or Redis");
  auto options = std::make_shared<UploadOptions>();
  sub.option("SET", options->set, "The folder of a data set").required().type("").local();
  sub.option("URL", options->url, "Where to put it: http, https, s3, redis or rediss").required().type("").far();
  add_transfer_jobs(sub, options->jobs, "upload");
  sub.flag("--force", options->force, "Upload everything again, and replace another data set");
  sub.flag("--verify", options->verify, "Read everything back and decode it, as l3 verify does");
  add_quiet(sub, options->quiet);
  sub.examples(
      "  l3 upload set/ s3://bucket/set\n"
      "  l3 upload --verify set/ https://example.org/set      a server that accepts PUT\n"
      "  l3 upload set/ redis://localhost/set                 samples in memory\n");
  sub.footer(
      "Shards that are there already are skipped, so that an upload is safe to interrupt: repeat the command to\n"
      "continue. Each shard is verified before it is sent. Its size, index and footer are read back and compared.\n"
      "index.json is written last, and only if all shards are there.\n");
  sub.manual(
      "A shard is there already if its object has the right size and ends with the right index and footer. --verify\n"
      "finds damage elsewhere. While --force replaces another data set, readers of that one fail.\n");
  sub.run([options](Context& context) {
    context.console.set_quiet(options->quiet);
    return upload_set(*options, context);
  });
}

}  // namespace tools
