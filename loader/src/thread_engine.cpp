// Reads with blocking threads, for systems without io_uring.
#include <sys/uio.h>
#include <unistd.h>
#ifdef RWF_NOWAIT
#include <linux/magic.h>
#include <sys/vfs.h>
#endif

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "read_engine.h"

namespace loader {
namespace {

// Blocked threads cost little, and network file systems need many reads at once.
constexpr size_t kThreads = 32;
constexpr uint64_t kMaxPerCall = uint64_t{1} << 30;  // Linux moves at most 2^31 - 4096 bytes at a time

#ifdef RWF_NOWAIT
bool is_in_memory(int descriptor) {
  struct statfs status {};
  return fstatfs(descriptor, &status) == 0 && status.f_type == TMPFS_MAGIC;
}
#endif

int read_all(const Read& read) {
  uint64_t done = 0;
  while (done < read.size) {
    const ssize_t count =
        pread(read.descriptor, read.to + done, static_cast<size_t>(std::min(read.size - done, kMaxPerCall)),
              static_cast<off_t>(read.offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) return kFileEnds;
    done += static_cast<uint64_t>(count);
  }
  return 0;
}

class ThreadEngine final : public ReadEngine {
 public:
  ThreadEngine() {
    threads_.reserve(kThreads);
    try {
      for (size_t i = 0; i < kThreads; ++i) threads_.emplace_back([this] { run(); });
    } catch (const std::exception&) {  // out of threads or memory
      if (threads_.empty()) throw;     // continue with fewer threads
    }
  }
  ~ThreadEngine() override {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  ThreadEngine(const ThreadEngine&) = delete;
  ThreadEngine& operator=(const ThreadEngine&) = delete;

  void submit(Read& read) override {
    read.next = nullptr;
    {
      const std::lock_guard lock(mutex_);
      (first_ == nullptr ? first_ : last_->next) = &read;
      last_ = &read;
    }
    wake_.notify_one();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return ends_ || first_ != nullptr; });
      if (first_ == nullptr) return;
      Read& read = *first_;
      first_ = read.next;
      lock.unlock();
      finish_local_read(read, read_all(read));
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  Read* first_ = nullptr;
  Read* last_ = nullptr;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<ReadEngine> make_thread_engine() { return std::make_unique<ThreadEngine>(); }

uint64_t read_cached(int descriptor, uint64_t offset, uint8_t* to, uint64_t size, CachedReads& how) {
  uint64_t done = 0;
#ifdef RWF_NOWAIT
  while (done < size && how != CachedReads::none) {
    const iovec part{to + done, static_cast<size_t>(std::min(size - done, kMaxPerCall))};
    const ssize_t count =
        preadv2(descriptor, &part, 1, static_cast<off_t>(offset + done), how == CachedReads::no_wait ? RWF_NOWAIT : 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno != EAGAIN) {
      const bool is_new = how == CachedReads::no_wait && is_in_memory(descriptor);
      how = is_new ? CachedReads::memory : CachedReads::none;
      if (is_new) continue;
    }
    if (count <= 0) break;
    done += static_cast<uint64_t>(count);
  }
#else
  (void)descriptor, (void)offset, (void)to, (void)size;
  how = CachedReads::none;
#endif
  return done;
}

}  // namespace loader
