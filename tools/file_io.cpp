#include "file_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace tools {
namespace {

constexpr size_t kMostPerCall = size_t{1} << 30;  // Linux moves at most 2^31 - 4096 bytes at a time

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
  // 0 or an errno. A full disk may show itself only here.
  int close() { return ::close(std::exchange(number_, -1)) == 0 ? 0 : errno; }

 private:
  int number_;
};

// Fills `to`, or stops at the end of the file. 0 or an errno.
int read_up_to(int descriptor, uint8_t* to, size_t size, size_t& got) {
  for (got = 0; got < size;) {
    const ssize_t count = read(descriptor, to + got, std::min(size - got, kMostPerCall));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) return 0;
    got += static_cast<size_t>(count);
  }
  return 0;
}

int write_all(int descriptor, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(descriptor, bytes.data(), std::min(bytes.size(), kMostPerCall));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return 0;
}

Outcome<bridge::Buffer> read_open(int descriptor, const std::string& name, size_t expected) {
  bridge::Buffer whole;
  size_t size = 0;
  // One byte more than expected shows the end of the file without growing.
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
  }
  whole.truncate(size);
  return whole;
}

Failure not_written(const std::string& file, int error) { return system_failure(file, "cannot write", error); }

std::optional<Failure> write_directly(int descriptor, const std::string& name, std::span<const uint8_t> bytes) {
  if (const int error = write_all(descriptor, bytes); error != 0) return not_written(name, error);
  return std::nullopt;
}

std::string temporary_beside(const std::string& path) {
  // Threads of one process must not meet either.
  static std::atomic<uint64_t> count{0};
  const std::filesystem::path final_path(path);
  // A name has at most 255 bytes on the usual file systems, and the suffix needs some of them.
  const std::string name = final_path.filename().string().substr(0, 200);
  const std::string temporary =
      "." + name + ".l3tmp-" + std::to_string(getpid()) + "-" + std::to_string(count.fetch_add(1));
  return (final_path.parent_path() / temporary).string();
}

std::optional<Failure> write_and_rename(const std::string& path, std::span<const uint8_t> bytes, Flush flush,
                                        const struct stat* replaced, Unfinished& unfinished) {
  const std::string temporary = temporary_beside(path);
  int number = -1;
  if (const int error = unfinished.create(temporary, number); error != 0) {
    return system_failure(path, "cannot create", error);
  }
  Descriptor descriptor(number);
  int error = write_all(number, bytes);
  if (error == 0 && replaced != nullptr && fchmod(number, replaced->st_mode & 07777) != 0) error = errno;
  if (error == 0 && flush == Flush::to_disk && fsync(number) != 0) error = errno;
  if (const int closing = descriptor.close(); error == 0) error = closing;
  if (error == 0) error = unfinished.commit(temporary, path);
  if (error == 0) return std::nullopt;
  unfinished.discard(temporary);
  return not_written(path, error);
}

}  // namespace

Outcome<bridge::Buffer> read_file(const std::string& path) {
  if (path == "-") return read_open(STDIN_FILENO, "stdin", 0);
  const Descriptor descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (descriptor.number() < 0) return system_failure(path, "cannot open", errno);
  struct stat status {};
  if (fstat(descriptor.number(), &status) != 0) return system_failure(path, "cannot read", errno);
  if (S_ISDIR(status.st_mode)) return system_failure(path, "cannot read", EISDIR);
  return read_open(descriptor.number(), path, status.st_size > 0 ? static_cast<size_t>(status.st_size) : 0);
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

std::optional<Failure> write_file(const std::string& path, std::span<const uint8_t> bytes, Flush flush,
                                  Unfinished& unfinished) {
  if (path == "-") return write_directly(STDOUT_FILENO, "stdout", bytes);

  struct stat existing {};
  const bool exists = stat(path.c_str(), &existing) == 0;
  if (!exists) return write_and_rename(path, bytes, flush, nullptr, unfinished);
  if (S_ISDIR(existing.st_mode)) return not_written(path, EISDIR);
  if (!S_ISREG(existing.st_mode)) {
    Descriptor descriptor(open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (descriptor.number() < 0) return system_failure(path, "cannot open", errno);
    if (std::optional<Failure> failure = write_directly(descriptor.number(), path, bytes)) return failure;
    if (const int error = descriptor.close(); error != 0) return not_written(path, error);
    return std::nullopt;
  }
  std::error_code error;
  const std::filesystem::path target = std::filesystem::canonical(path, error);
  if (error) return not_written(path, error.value());
  std::optional<Failure> failure = write_and_rename(target.string(), bytes, flush, &existing, unfinished);
  if (failure) failure->file = path;
  return failure;
}

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  return std::filesystem::equivalent(a, b, error) && !error;
}

}  // namespace tools
