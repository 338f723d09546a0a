#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace l3_python {

// A lock that threads get in the order in which they asked for it. With a mutex, a thread that waits for batches could
// take the lock again and again while others wait for it.
class Turns {
 public:
  void lock() {
    std::unique_lock lock(mutex_);
    const uint64_t mine = given_++;
    next_.wait(lock, [&] { return mine == now_; });
  }
  void unlock() {
    {
      const std::lock_guard lock(mutex_);
      ++now_;
    }
    next_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable next_;
  uint64_t given_ = 0, now_ = 0;
};

}  // namespace l3_python
