#include "shard_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace loader {
namespace {

constexpr uint64_t kMaxPerCall = uint64_t{1} << 30;  // Linux moves at most 2^31 - 4096 bytes at a time

// Opening a file that is not regular, such as a pipe, must not block.
constexpr int kHowToOpen = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

FileFault read_at(int descriptor, uint64_t offset, uint8_t* to, uint64_t size) {
  while (size > 0) {
    const ssize_t count =
        pread(descriptor, to, static_cast<size_t>(std::min(size, kMaxPerCall)), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return {{}, errno};
    if (count == 0) return {{"the file ends too early", offset, L3_ERROR_TRUNCATED}, 0};
    to += count;
    offset += static_cast<uint64_t>(count);
    size -= static_cast<uint64_t>(count);
  }
  return {};
}

}  // namespace

bool OpenFiles::acquire() {
  uint32_t open = open_.load();
  while (open < most_) {
    if (open_.compare_exchange_weak(open, open + 1)) return true;
  }
  return false;
}

// The first thread that opens a file may leave it open for all. The others close theirs.
ShardFile::Use::Use(const ShardFile& file) : descriptor_(file.kept_.load()) {
  if (descriptor_ >= 0) return;
  descriptor_ = file.open_file(error_);
  owned_ = descriptor_ >= 0;
  if (!owned_ || !file.open_files_.acquire()) return;
  int none = -1;
  if (file.kept_.compare_exchange_strong(none, descriptor_)) {
    owned_ = false;
  } else {
    file.open_files_.release();
  }
}

ShardFile::Use::~Use() {
  if (owned_) close(descriptor_);
}

ShardFile::~ShardFile() {
  if (const int kept = kept_.load(); kept >= 0) {
    close(kept);
    open_files_.release();
  }
}

int ShardFile::open_file(int& error) const {
  const int descriptor = open(path_.c_str(), kHowToOpen);
  if (descriptor < 0) error = errno;
  return descriptor;
}

FileFault ShardFile::measure() {
  const Use use(*this);
  struct stat status {};
  if (use.descriptor() < 0) return {{}, use.error()};
  if (fstat(use.descriptor(), &status) != 0) return {{}, errno};
  if (S_ISDIR(status.st_mode)) return {{}, EISDIR};
  if (!S_ISREG(status.st_mode)) return {{"not a regular file", 0, L3_ERROR_FILE}, 0};
  size_ = static_cast<uint64_t>(status.st_size);
  return {};
}

FileFault ShardFile::read(uint64_t offset, void* to, uint64_t size) const {
  const Use use(*this);
  if (use.descriptor() < 0) return {{}, use.error()};
  return read_at(use.descriptor(), offset, static_cast<uint8_t*>(to), size);
}

FileFault read_whole(const std::string& path, uint64_t maximum, std::vector<uint8_t>& bytes) {
  OpenFiles none(0);
  ShardFile file(path, none);
  if (const FileFault fault = file.measure()) return fault;
  if (file.size() > maximum) return {{"larger than the limit allows", maximum, L3_ERROR_LIMIT}, 0};
  bytes.resize(static_cast<size_t>(file.size()));
  return file.read(0, bytes.data(), bytes.size());
}

}  // namespace loader
