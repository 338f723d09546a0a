#include "shard_download.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <span>
#include <utility>

#include "data_sets.h"
#include "file_io.h"
#include "loader/data_writer.h"
#include "piece_reader.h"

namespace tools {
namespace {

Failure not_written(const std::string& path, int error) {
  return {path, std::nullopt, std::string("cannot write: ") + std::strerror(error)};
}

// Whether a local file has the size of the shard, and its index and footer.
bool is_shard(const std::string& path, const loader::ShardSummary& summary, const ShardPlace& place) {
  RandomFile file;
  if (file.open(path) || file.size() != summary.bytes) return false;
  std::vector<uint8_t> end(static_cast<size_t>(summary.bytes - place.index_offset));
  return !file.read(place.index_offset, end) && is_end_of(summary, end);
}

}  // namespace

// The unfinished file.
class ShardDownload::File {
 public:
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  std::optional<Failure> open(const std::string& path) {
    path_ = path;
    descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    return descriptor_ < 0 ? std::optional(not_written(path, errno)) : std::nullopt;
  }
  // Makes it a file of zero bytes. A full disk shows here, unless the file system cannot reserve room.
  std::optional<Failure> reserve(uint64_t size) {
    const auto end = static_cast<off_t>(size);
    int error = ftruncate(descriptor_, 0) == 0 && ftruncate(descriptor_, end) == 0 ? 0 : errno;
    if (error == 0 && fallocate(descriptor_, 0, 0, end) != 0 && errno != EOPNOTSUPP && errno != ENOSYS) error = errno;
    if (error == 0) return std::nullopt;
    ::unlink(path_.c_str());  // it has nothing yet
    return not_written(path_, error);
  }
  std::optional<Failure> write(uint64_t offset, std::span<const uint8_t> bytes) {
    while (!bytes.empty()) {
      const ssize_t count = pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return not_written(path_, errno);
      offset += static_cast<uint64_t>(count);
      bytes = bytes.subspan(static_cast<size_t>(count));
    }
    return std::nullopt;
  }
  std::optional<Failure> finish(const std::string& path) {
    if (fsync(descriptor_) != 0) return not_written(path_, errno);
    if (::close(std::exchange(descriptor_, -1)) != 0) return not_written(path_, errno);
    if (std::rename(path_.c_str(), path.c_str()) != 0) return not_written(path, errno);
    flush_folder_of(path);
    return std::nullopt;
  }

 private:
  std::string path_;
  int descriptor_ = -1;
};

std::optional<TransferFailure> ShardDownload::run() {
  if (is_shard(shard_.path, shard_.summary, shard_.place)) {
    transfer_.keep_shard(shard_.summary.bytes);
    return std::nullopt;
  }
  struct stat status {};
  if (!shard_.replace && lstat(shard_.path.c_str(), &status) == 0) {
    return TransferFailure{{shard_.path, std::nullopt, "exists already and is not this shard; --force replaces it"},
                           true};
  }
  File file;
  bool is_new = false;
  if (auto failed = begin(file, is_new)) return failed;
  const Outcome<l3::DataSet> local = open_data_set(shard_.work_path);
  if (!local) return TransferFailure{local.failure()};
  if (auto failure = find_missing(*local, is_new)) return TransferFailure{*std::move(failure)};
  if (auto failed = fetch(file)) return failed;
  if (auto failed = check(*local)) return failed;
  if (auto failure = file.finish(shard_.path)) return TransferFailure{*std::move(failure), true};
  return std::nullopt;
}

// Opens the file of an earlier run, or makes one that has all but the samples. Such a file opens as a shard, and its
// samples verify once they are there.
std::optional<TransferFailure> ShardDownload::begin(File& file, bool& is_new) {
  const loader::ShardSummary& summary = shard_.summary;
  is_new = !is_shard(shard_.work_path, summary, shard_.place);
  if (auto failure = file.open(shard_.work_path)) return TransferFailure{*std::move(failure), true};
  if (!is_new) return std::nullopt;
  const std::string name = shard_.store.open(summary.file)->name();
  const Outcome<std::optional<FarEnd>> end =
      read_end(shard_.store, summary.file, summary.bytes - shard_.place.index_offset);
  if (!end) return TransferFailure{end.failure(), true};
  if (!*end) return TransferFailure{{name, std::nullopt, "there is no such object"}};
  if ((*end)->object_size != summary.bytes) {
    return TransferFailure{{name, std::nullopt, "its size differs from the one in index.json"}};
  }
  if (!is_end_of(summary, (*end)->bytes)) {
    return TransferFailure{
        {name, shard_.place.index_offset, "the digest of its index differs from the one in index.json"}};
  }
  std::optional<Failure> failure = file.reserve(summary.bytes);
  if (!failure) failure = file.write(0, loader::ShardBuilder::head());
  if (!failure) failure = file.write(shard_.place.index_offset, (*end)->bytes);
  if (failure) return TransferFailure{*std::move(failure), true};
  transfer_.count_moved((*end)->bytes.size());
  return std::nullopt;
}

std::optional<Failure> ShardDownload::find_missing(const l3::DataSet& local, bool is_new) {
  if (local.count() != shard_.place.samples) return Failure{shard_.work_path, std::nullopt, "has other samples"};
  uint64_t kept = 0;
  for (uint64_t i = 0; i < shard_.place.samples; ++i) {
    if (is_new || !read_sample(local, i)) {
      missing_.push_back(i);
    } else {
      kept += local.sample(i).size;
    }
  }
  transfer_.count_kept(kept);
  return std::nullopt;
}

std::optional<TransferFailure> ShardDownload::fetch(File& file) {
  auto next = missing_.begin();
  Pieces pieces([&]() -> std::optional<SamplePart> {
    while (next != missing_.end()) {
      const uint64_t number = *next++;
      const l3::Sample sample = shard_.set.sample(shard_.place.first_sample + number);
      if (sample.size > 0) return SamplePart{number, sample.offset, sample.size, sample.offset, sample.size};
    }
    return std::nullopt;
  });
  const std::unique_ptr<loader::Object> object = shard_.store.open(shard_.summary.file);
  return read_pieces(shard_.store, *object, shard_.summary.bytes, pieces,
                     [&](uint64_t offset, std::span<const uint8_t> bytes) {
                       transfer_.count_moved(bytes.size());
                       return file.write(offset, bytes);
                     });
}

std::optional<TransferFailure> ShardDownload::check(const l3::DataSet& local) const {
  const std::string name = shard_.store.open(shard_.summary.file)->name();
  for (const uint64_t number : missing_) {
    const l3::Sample sample = local.sample(number);
    const Outcome<bridge::Buffer> bytes = read_sample(local, number);
    if (bytes) continue;
    const std::string of_far = name + ": " + std::string(sample.name_text());
    return TransferFailure{{of_far, bytes.failure().offset, bytes.failure().reason}};
  }
  l3_data_error error{};
  if (l3_data_verify_shard(local.get(), 0, &error) != L3_OK) {
    return TransferFailure{{name, failure_of(error).offset, error.reason}};
  }
  return std::nullopt;
}

}  // namespace tools
