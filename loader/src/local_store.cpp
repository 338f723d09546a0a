// The store of local files.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "read_engine.h"

namespace loader {
namespace {

constexpr uint64_t kMaxPerCall = uint64_t{1} << 30;  // Linux moves at most 2^31 - 4096 bytes at a time

// Opening a file that is not regular, such as a pipe, must not block.
constexpr int kHowToOpen = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

uint32_t default_open_files() {
  struct rlimit limit {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 256;
  return static_cast<uint32_t>(std::min<rlim_t>(limit.rlim_cur / 2, 1u << 16));
}

StoreFault system_fault(int error) {
  return {L3_ERROR_FILE, error, L3_DATA_NONE, std::string("cannot read: ") + std::strerror(error)};
}

StoreFault end_fault(uint64_t offset) { return {L3_ERROR_TRUNCATED, 0, offset, "the file ends too early"}; }

StoreFault read_at(int descriptor, uint64_t offset, uint8_t* to, uint64_t size) {
  while (size > 0) {
    const ssize_t count =
        pread(descriptor, to, static_cast<size_t>(std::min(size, kMaxPerCall)), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_fault(errno);
    if (count == 0) return end_fault(offset);
    to += count;
    offset += static_cast<uint64_t>(count);
    size -= static_cast<uint64_t>(count);
  }
  return {};
}

// Counts the files that stay open for all objects of a store.
class OpenFiles {
 public:
  explicit OpenFiles(uint32_t maximum) : most_(maximum) {}
  // Returns whether one more file may stay open, and if so counts it.
  bool acquire() {
    uint32_t open = open_.load();
    while (open < most_) {
      if (open_.compare_exchange_weak(open, open + 1)) return true;
    }
    return false;
  }
  void release() { --open_; }

 private:
  uint32_t most_;
  std::atomic<uint32_t> open_{0};
};

class LocalFile final : public Object {
 public:
  LocalFile(std::string path, OpenFiles& open_files) : Object(std::move(path)), open_files_(open_files) {}
  ~LocalFile() override {
    if (const int kept = kept_.load(); kept >= 0) {
      close(kept);
      open_files_.release();
    }
  }

  // Opens the file, or returns the descriptor that stays open. The first thread that opens a file may leave it open for
  // all; `owned` tells the others to close theirs. Below 0: an errno, negated.
  int descriptor(bool& owned) const {
    owned = false;
    if (const int kept = kept_.load(); kept >= 0) return kept;
    const int opened = open(name().c_str(), kHowToOpen);
    if (opened < 0) return -errno;
    owned = true;
    if (!open_files_.acquire()) return opened;
    int none = -1;
    if (kept_.compare_exchange_strong(none, opened)) {
      owned = false;
    } else {
      open_files_.release();
    }
    return opened;
  }

 private:
  OpenFiles& open_files_;
  mutable std::atomic<int> kept_{-1};
};

// A descriptor of a file. The destructor closes it unless it stays open.
class Use {
 public:
  explicit Use(const Object* file) : descriptor_(static_cast<const LocalFile*>(file)->descriptor(owned_)) {}
  ~Use() {
    if (owned_) close(descriptor_);
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  int descriptor() const { return descriptor_; }  // below 0: an errno, negated
  bool release() { return std::exchange(owned_, false); }

 private:
  bool owned_ = false;
  int descriptor_;
};

StoreFault measure(int descriptor, uint64_t& size) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0) return system_fault(errno);
  if (S_ISDIR(status.st_mode)) return system_fault(EISDIR);
  if (!S_ISREG(status.st_mode)) return {L3_ERROR_FILE, 0, 0, "not a regular file"};
  size = static_cast<uint64_t>(status.st_size);
  return {};
}

StoreFault read_now(Read& read) {
  const Use use(read.object);
  if (use.descriptor() < 0) return system_fault(-use.descriptor());
  if (!read.from_end) return read_at(use.descriptor(), read.offset, read.to, read.size);
  if (const StoreFault fault = measure(use.descriptor(), read.object_size)) return fault;
  read.size = std::min(read.size, read.object_size);
  return read_at(use.descriptor(), read.object_size - read.size, read.to, read.size);
}

class LocalChannel final : public Channel {
 public:
  explicit LocalChannel(std::unique_ptr<ReadEngine> engine) : engine_(std::move(engine)) {}
  void submit(std::span<Read* const> reads) override {
    for (Read* read : reads) submit(*read);
  }

 private:
  void submit(Read& read) {
    if (read.from_end) return read.finish(read, read_now(read));
    Use use(read.object);
    if (use.descriptor() < 0) return read.finish(read, system_fault(-use.descriptor()));
    read.descriptor = use.descriptor();
    read.owns_descriptor = use.release();
    engine_->submit(read);
  }

  std::unique_ptr<ReadEngine> engine_;
};

class LocalStore final : public Store {
 public:
  LocalStore(std::string root, uint32_t max_open_files)
      : root_(std::move(root)), open_files_(max_open_files != 0 ? max_open_files : default_open_files()) {}

  const std::string& name() const override { return root_; }
  bool is_far() const override { return false; }
  std::unique_ptr<Object> open(std::string_view key) const override {
    return std::make_unique<LocalFile>(root_.empty() ? std::string(key) : root_ + "/" + std::string(key), open_files_);
  }
  std::unique_ptr<Channel> make_channel(l3_reading reading) override {
    std::unique_ptr<ReadEngine> engine;
    if (reading != L3_READING_THREADS) engine = make_uring_engine();
    if (engine == nullptr) engine = make_thread_engine();
    return std::make_unique<LocalChannel>(std::move(engine));
  }
  void read(std::span<Read> reads, std::span<StoreFault> faults) override {
    for (size_t i = 0; i < reads.size(); ++i) faults[i] = read_now(reads[i]);
  }
  bool has_cached_reads() const override { return cached_reads_.load(std::memory_order_relaxed) != CachedReads::none; }
  uint64_t read_cached(const Read& read) override {
    const CachedReads before = cached_reads_.load(std::memory_order_relaxed);
    if (before == CachedReads::none) return 0;
    const Use use(read.object);
    CachedReads how = before;
    const uint64_t got =
        use.descriptor() < 0 ? 0 : loader::read_cached(use.descriptor(), read.offset, read.to, read.size, how);
    if (how != before) cached_reads_.store(how, std::memory_order_relaxed);
    return got;
  }
  StoreFault put(const Upload&) override { return {L3_ERROR_UNSUPPORTED, 0, L3_DATA_NONE, "this is a local folder"}; }

 private:
  std::string root_;
  mutable OpenFiles open_files_;
  std::atomic<CachedReads> cached_reads_{CachedReads::no_wait};
};

}  // namespace

void finish_local_read(Read& read, int error) {
  if (read.owns_descriptor) close(read.descriptor);
  read.owns_descriptor = false;
  StoreFault fault;
  if (error != 0) fault = error == kFileEnds ? end_fault(read.offset) : system_fault(error);
  read.finish(read, fault);
}

std::unique_ptr<Store> make_local_store(std::string root, uint32_t max_open_files) {
  return std::make_unique<LocalStore>(std::move(root), max_open_files);
}

}  // namespace loader
