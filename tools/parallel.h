// The threads of the command. libl3 and bench/ use them through an l3_parallel and start no threads themselves.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "l3/l3.h"

namespace tools {

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
  l3_parallel for_l3();

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

}  // namespace tools
