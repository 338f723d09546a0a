#include "loader/shard_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

namespace loader {

namespace fs = std::filesystem;

namespace {

// Whether a name is "PREFIX00012.l3s".
bool is_shard_of(const std::string& name, const std::string& prefix) {
  constexpr std::string_view kSuffix = ".l3s";
  if (!name.starts_with(prefix) || !name.ends_with(kSuffix) || name.size() < prefix.size() + kSuffix.size() + 5) {
    return false;
  }
  const std::string digits = name.substr(prefix.size(), name.size() - prefix.size() - kSuffix.size());
  return digits.find_first_not_of("0123456789") == digits.npos;
}

}  // namespace

GrowingFile::~GrowingFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

int GrowingFile::open(const std::string& path, bool keep_contents) {
  path_ = path;
  const int how = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | (keep_contents ? 0 : O_TRUNC);
  descriptor_ = ::open(path.c_str(), how, 0666);
  return descriptor_ < 0 ? errno : 0;
}

int GrowingFile::put() {
  const std::vector<uint8_t> all = std::move(waiting_);
  waiting_.clear();
  std::span<const uint8_t> bytes = all;
  while (!bytes.empty()) {
    const ssize_t count =
        pwrite(descriptor_, bytes.data(), std::min<size_t>(bytes.size(), size_t{1} << 30), static_cast<off_t>(size_));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    size_ += static_cast<uint64_t>(count);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return 0;
}

int GrowingFile::cut(uint64_t size) {
  size_ = size;
  return ftruncate(descriptor_, static_cast<off_t>(size)) != 0 ? errno : 0;
}

int GrowingFile::flush() { return fsync(descriptor_) != 0 ? errno : 0; }

void GroupSize::add(const NewSample& sample, size_t model_bytes) {
  constexpr uint64_t kAround = 64 + 80;  // the padding of the sample and its entry in the index
  ++samples;
  bytes += sample.size + sample.name.size() + sample.metadata.size() + kAround;
  texts += sample.name.size() + sample.role.size() + sample.metadata.size() + model_bytes;
}

bool takes(const ShardBuilder& shard, const GroupSize& group, uint64_t shard_bytes) {
  if (group.samples == 0 || shard.samples() == 0) return true;
  return shard.finished_size() + group.bytes <= shard_bytes && shard.has_room(group.samples, group.texts);
}

void append_sample(ShardBuilder& shard, GrowingFile& file, const NewSample& sample, std::span<const uint8_t> bytes,
                   std::span<const uint8_t> model) {
  file.append(std::vector<uint8_t>(shard.next() - file.size()));
  file.append(bytes);
  shard.add(sample, model);
}

std::string shard_file_name(std::string_view prefix, uint64_t number) {
  char digits[24];
  std::snprintf(digits, sizeof digits, "%05llu", static_cast<unsigned long long>(number));
  return std::string(prefix) + digits + ".l3s";
}

std::vector<std::string> shards_in(const std::string& folder, const std::string& prefix) {
  std::vector<std::string> names;
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    if (const std::string name = entry->path().filename().string(); is_shard_of(name, prefix)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string file_of_others(const std::string& folder) {
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    std::string name = entry->path().filename().string();
    const bool is_own = name.starts_with('.') || name == kIndexFile || name.ends_with(".l3s") ||
                        name.starts_with("part-") || name.ends_with("errors.tsv") || name == "lost+found";
    if (!is_own) return name;
  }
  return "";
}

bool path_exists(const std::string& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

FileLock::~FileLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

int FileLock::take(const std::string& path) {
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) return errno;
  if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return EWOULDBLOCK;
  // Another process may have finished and removed the lock file that was just opened.
  struct stat ours {
  }, there{};
  const bool is_there = fstat(descriptor_, &ours) == 0 && stat(path.c_str(), &there) == 0;
  return is_there && ours.st_ino == there.st_ino ? 0 : EWOULDBLOCK;
}

}  // namespace loader
