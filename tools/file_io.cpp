#include "file_io.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace tools {
namespace {

// Reading stops here, because some files, such as /dev/zero, have no end.
constexpr size_t kMaxOfStream = size_t{1} << 36;
constexpr size_t kMaxPerCall = size_t{1} << 30;  // Linux moves at most 2^31 - 4096 bytes at a time

Failure system_failure(const std::string& file, const char* doing, int error) {
  return {file, std::nullopt, std::string(doing) + ": " + std::strerror(error), error == EPIPE};
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

// Fills `to`, or stops at the end of the file. Returns 0 or an errno.
int read_up_to(int descriptor, uint8_t* to, size_t size, size_t& got) {
  for (got = 0; got < size;) {
    const ssize_t count = read(descriptor, to + got, std::min(size - got, kMaxPerCall));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) return 0;
    got += static_cast<size_t>(count);
  }
  return 0;
}

int write_all(int descriptor, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(descriptor, bytes.data(), std::min(bytes.size(), kMaxPerCall));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return 0;
}

Outcome<bridge::Buffer> read_open(int descriptor, const std::string& name, size_t expected, bool is_regular) {
  bridge::Buffer whole;
  size_t size = 0;
  // With room for one more byte than expected, the end of the file shows without another allocation.
  for (size_t room = std::max<size_t>(expected + 1, size_t{1} << 16);; room *= 2) {
    bridge::Buffer larger;
    uint8_t* to = larger.reset(room);
    if (size > 0) std::memcpy(to, whole.bytes().data(), size);
    size_t got = 0;
    if (const int error = read_up_to(descriptor, to + size, room - size, got); error != 0) {
      return system_failure(name, "cannot read", error);
    }
    size += got;
    whole = std::move(larger);
    if (size < room) break;
    if (!is_regular && size > kMaxOfStream) return system_failure(name, "cannot read", EFBIG);
  }
  whole.truncate(size);
  return whole;
}

Failure not_written(const std::string& file, int error) { return system_failure(file, "cannot write", error); }

constexpr std::string_view kTemporaryMark = ".l3tmp-";

// The beginning of the names of all temporary files for `path`: ".NAME.l3tmp-".
std::string temporary_prefix(const std::filesystem::path& path) {
  std::string name = path.filename().string();
  // On most file systems a name has at most 255 bytes, and the suffix needs some of them. Some file systems accept only
  // whole UTF-8 characters.
  if (size_t length = 200; name.size() > length) {
    while (length > 196 && (static_cast<unsigned char>(name[length]) & 0xC0) == 0x80) --length;
    name.resize(length);
  }
  return "." + name + std::string(kTemporaryMark);
}

// A name that no other thread or process uses, not even one on another machine that shares the folder.
std::string temporary_beside(const std::filesystem::path& path) {
  static std::atomic<uint64_t> count{0};
  uint64_t random = 0;
  if (getrandom(&random, sizeof random, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof random)) {
    random = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(random));
  const std::string name =
      temporary_prefix(path) + std::to_string(getpid()) + "-" + std::to_string(count.fetch_add(1)) + "-" + digits;
  return (path.parent_path() / name).string();
}

// Removes a temporary file unless a running process holds its lock (see Unfinished::create).
void remove_abandoned(const std::string& temporary) {
  const Descriptor descriptor(open(temporary.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (descriptor.number() < 0 || fstat(descriptor.number(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  if (flock(descriptor.number(), LOCK_EX | LOCK_NB) == 0) unlink(temporary.c_str());
}

}  // namespace

void flush_folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const Descriptor descriptor(open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor.number() >= 0) fsync(descriptor.number());
}

Outcome<bridge::Buffer> read_file(const std::string& path) {
  if (path == "-") return read_open(STDIN_FILENO, "stdin", 0, false);
  const Descriptor descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (descriptor.number() < 0) return system_failure(path, "cannot open", errno);
  struct stat status {};
  if (fstat(descriptor.number(), &status) != 0) return system_failure(path, "cannot read", errno);
  if (S_ISDIR(status.st_mode)) return system_failure(path, "cannot read", EISDIR);
  return read_open(descriptor.number(), path, status.st_size > 0 ? static_cast<size_t>(status.st_size) : 0,
                   S_ISREG(status.st_mode));
}

Outcome<bridge::Buffer> read_start(const std::string& path, size_t size) {
  const Descriptor descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (descriptor.number() < 0) return system_failure(path, "cannot open", errno);
  bridge::Buffer start;
  size_t got = 0;
  if (const int error = read_up_to(descriptor.number(), start.reset(size), size, got); error != 0) {
    return system_failure(path, "cannot read", error);
  }
  start.truncate(got);
  return start;
}

Outcome<bridge::Buffer> read_part(const std::string& path, uint64_t offset, uint64_t size) {
  RandomFile file;
  if (auto failure = file.open(path)) return *failure;
  if (offset > file.size() || size > file.size() - offset) {
    return Failure{path, file.size(), "the file ends too early"};
  }
  bridge::Buffer bytes;
  uint8_t* const to = bytes.reset(static_cast<size_t>(size));
  if (auto failure = file.read(offset, {to, static_cast<size_t>(size)})) return *failure;
  return bytes;
}

RandomFile::~RandomFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::optional<Failure> RandomFile::open(const std::string& path) {
  path_ = path;
  // O_NONBLOCK: opening a pipe must not block.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status {};
  if (descriptor_ < 0) return system_failure(path, "cannot open", errno);
  if (fstat(descriptor_, &status) != 0) return system_failure(path, "cannot read", errno);
  if (S_ISDIR(status.st_mode)) return system_failure(path, "cannot read", EISDIR);
  if (!S_ISREG(status.st_mode)) return Failure{path, std::nullopt, "cannot read: not a regular file"};
  size_ = static_cast<uint64_t>(status.st_size);
  return std::nullopt;
}

std::optional<Failure> RandomFile::read(uint64_t offset, std::span<uint8_t> to) const {
  while (!to.empty()) {
    const ssize_t count = pread(descriptor_, to.data(), std::min(to.size(), kMaxPerCall), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_failure(path_, "cannot read", errno);
    if (count == 0) return Failure{path_, offset, "the file ends too early"};
    offset += static_cast<uint64_t>(count);
    to = to.subspan(static_cast<size_t>(count));
  }
  return std::nullopt;
}

OutputFile::~OutputFile() { abandon(); }

void OutputFile::abandon() {
  if (descriptor_ >= 0 && descriptor_ != STDOUT_FILENO) ::close(descriptor_);
  descriptor_ = -1;
  if (!temporary_.empty()) unfinished_.discard(temporary_);
  temporary_.clear();
}

std::optional<Failure> OutputFile::open() {
  if (path_ == "-") {
    descriptor_ = STDOUT_FILENO;
    return std::nullopt;
  }
  target_ = path_;
  struct stat existing {};
  if (stat(path_.c_str(), &existing) == 0) {
    if (S_ISDIR(existing.st_mode)) return not_written(path_, EISDIR);
    if (!S_ISREG(existing.st_mode)) {
      descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
      return descriptor_ < 0 ? std::optional(system_failure(path_, "cannot open", errno)) : std::nullopt;
    }
    std::error_code error;
    target_ = std::filesystem::canonical(path_, error).string();
    if (error) return not_written(path_, error.value());
    permissions_ = existing.st_mode & 0777;
  }
  constexpr int kTries = 100;
  std::string temporary;
  int creating = EEXIST;
  for (int i = 0; i < kTries && creating == EEXIST; ++i) {
    temporary = temporary_beside(target_);
    creating = unfinished_.create(temporary, descriptor_);
  }
  if (creating != 0) {
    descriptor_ = -1;
    return system_failure(path_, "cannot create", creating);
  }
  temporary_ = std::move(temporary);
  return std::nullopt;
}

std::optional<Failure> OutputFile::write(std::span<const uint8_t> bytes) {
  const int error = write_all(descriptor_, bytes);
  return error != 0 ? std::optional(not_written(path_ == "-" ? "stdout" : path_, error)) : std::nullopt;
}

std::optional<Failure> OutputFile::finish(Flush flush) {
  if (path_ == "-") return std::nullopt;
  int error = 0;
  if (permissions_ && fchmod(descriptor_, *permissions_) != 0) error = errno;
  if (error == 0 && !temporary_.empty() && flush == Flush::to_disk && fsync(descriptor_) != 0) error = errno;
  // Some file systems report a full disk only here.
  if (::close(std::exchange(descriptor_, -1)) != 0 && error == 0) error = errno;
  if (!temporary_.empty()) {
    if (error == 0) error = unfinished_.commit(temporary_, target_);
    if (error != 0) unfinished_.discard(temporary_);
    temporary_.clear();
    if (error == 0 && flush == Flush::to_disk) flush_folder_of(target_);
  }
  return error != 0 ? std::optional(not_written(path_, error)) : std::nullopt;
}

std::optional<Failure> write_file(const std::string& path, std::span<const uint8_t> bytes, Flush flush,
                                  Unfinished& unfinished) {
  OutputFile file(path, unfinished);
  if (auto failure = file.open()) return failure;
  if (auto failure = file.write(bytes)) return failure;
  return file.finish(flush);
}

std::optional<Failure> make_folder_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) return std::nullopt;
  std::error_code error, ignored;
  std::filesystem::create_directories(folder, error);
  if (error && !std::filesystem::is_directory(folder, ignored)) {
    return Failure{folder.string(), std::nullopt, "cannot create: " + error.message()};
  }
  return std::nullopt;
}

void remove_abandoned_of(const std::vector<std::string>& outputs) {
  std::map<std::string, std::set<std::string>> prefixes;  // of each folder
  for (const std::string& output : outputs) {
    const std::filesystem::path path(output);
    prefixes[path.parent_path().string()].insert(temporary_prefix(path));
  }
  for (const auto& [folder, wanted] : prefixes) {
    std::error_code error;
    std::filesystem::directory_iterator entry(folder.empty() ? "." : folder, error);
    for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      const size_t mark = name.rfind(kTemporaryMark);
      if (mark == name.npos || !wanted.contains(name.substr(0, mark + kTemporaryMark.size()))) continue;
      if (name.find_first_not_of("0123456789abcdef-", mark + kTemporaryMark.size()) != name.npos) continue;
      remove_abandoned(entry->path().string());
    }
  }
}

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  return std::filesystem::equivalent(a, b, error) && !error;
}

}  // namespace tools
