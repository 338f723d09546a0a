#include "base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <utility>

namespace base {

struct Parallel::Loop {
  uint64_t count;
  void (*body)(void* argument, uint64_t index);
  void* argument;
  std::atomic<uint64_t> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr first{};  // the first exception of a body; read after all have returned

  void take_part() noexcept {
    for (uint64_t index = next.fetch_add(1); index < count && !failed; index = next.fetch_add(1)) {
      try {
        body(argument, index);
      } catch (...) {
        if (!failed.exchange(true)) first = std::current_exception();
      }
    }
  }
};

Parallel::Parallel(uint32_t threads) {
  if (threads == 0) threads = std::max(1U, std::thread::hardware_concurrency());
  workers_.reserve(threads - 1);
  for (uint32_t i = 1; i < threads; ++i) {
    try {
      workers_.emplace_back([this] { work(); });
    } catch (const std::exception&) {
      break;  // no more threads are possible, so fewer do the work
    }
  }
}

Parallel::~Parallel() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void Parallel::run(uint64_t count, void (*body)(void* argument, uint64_t index), void* argument) {
  Loop loop{count, body, argument};
  if (count < 2 || workers_.empty()) {
    loop.take_part();
    if (loop.first) std::rethrow_exception(std::move(loop.first));
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    loop_ = &loop;
    ++loops_;
  }
  wake_.notify_all();
  loop.take_part();
  {
    std::unique_lock lock(mutex_);
    loop_ = nullptr;  // a worker that wakes up from now on cannot join any more
    done_.wait(lock, [this] { return joined_ == 0; });
  }
  if (loop.first) std::rethrow_exception(std::move(loop.first));
}

void Parallel::work() {
  uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return stop_ || (loop_ != nullptr && loops_ != seen); });
    if (stop_) return;
    seen = loops_;
    Loop& loop = *loop_;
    ++joined_;
    lock.unlock();
    loop.take_part();
    lock.lock();
    if (--joined_ == 0) done_.notify_one();
  }
}

}  // namespace base
