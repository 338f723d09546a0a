// Runs loops on several threads. libl3 starts no threads itself: its callers hand in a loop.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

struct l3_parallel;  // of l3.h, which callers of for_l3 include

namespace base {

// Threads that wait for work. Only one caller at a time may use them, and it works along. A body must not run another
// loop of the same object.
class Parallel {
 public:
  // `threads` includes the caller. 0 means one for each processor.
  explicit Parallel(uint32_t threads);
  ~Parallel();
  Parallel(const Parallel&) = delete;
  Parallel& operator=(const Parallel&) = delete;

  uint32_t threads() const { return static_cast<uint32_t>(workers_.size()) + 1; }

  // Calls body(argument, i) once for each i < count, and returns when all calls have returned. If one throws, no more
  // calls begin, and the first exception is thrown again at the end.
  void run(uint64_t count, void (*body)(void* argument, uint64_t index), void* argument);

  template <typename Body>
  void for_each(uint64_t count, Body body) {
    run(
        count, [](void* argument, uint64_t index) { (*static_cast<Body*>(argument))(index); }, &body);
  }

  // Valid during the life of this object.
  template <typename Structure = l3_parallel>
  Structure for_l3() {
    return {[](void* context, uint64_t count, void (*body)(void* argument, uint64_t index), void* argument) {
              static_cast<Parallel*>(context)->run(count, body, argument);
            },
            this};
  }

 private:
  struct Loop;
  void work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  Loop* loop_ = nullptr;  // the loop that workers should join
  uint64_t loops_ = 0;    // number of loops so far; a worker joins each at most once
  uint32_t joined_ = 0;   // workers in the current loop
  bool stop_ = false;
  std::vector<std::thread> workers_;
};

// Calls body(i) once for each i < count, on threads that end with this call: at most `threads`, including the caller's.
// 0 means one for each processor.
template <typename Body>
void for_each_of(uint64_t count, uint64_t threads, const Body& body) {
  if (threads == 0) threads = std::max(1U, std::thread::hardware_concurrency());
  Parallel(static_cast<uint32_t>(std::clamp<uint64_t>(count, 1, threads))).for_each(count, std::cref(body));
}

}  // namespace base
