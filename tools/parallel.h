// The threads of the command. libl3 and bench/ get them as an l3_parallel and never start any themselves.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "l3/l3.h"

namespace tools {

// Threads that wait for work. One caller at a time, which works along; a body must not run another loop of the same
// pool.
class Parallel {
 public:
  // `threads` in all, the caller among them; 0 stands for one for each processor that the process may use.
  explicit Parallel(uint32_t threads);
  ~Parallel();
  Parallel(const Parallel&) = delete;
  Parallel& operator=(const Parallel&) = delete;

  uint32_t threads() const { return static_cast<uint32_t>(workers_.size()) + 1; }

  // body(argument, i) once for each i < count; returns when all have returned. Where one throws, no more begin, and
  // what it threw first is thrown here once all have returned.
  void run(uint64_t count, void (*body)(void* argument, uint64_t index), void* argument);

  template <typename Body>
  void for_each(uint64_t count, Body body) {
    run(
        count, [](void* argument, uint64_t index) { (*static_cast<Body*>(argument))(index); }, &body);
  }

  // Valid as long as this object is.
  l3_parallel for_l3();

 private:
  struct Loop;
  void work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  Loop* loop_ = nullptr;  // that workers should join
  uint64_t loops_ = 0;    // run so far, so that a worker joins each at most once
  uint32_t joined_ = 0;   // workers that are in it
  bool stop_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace tools
