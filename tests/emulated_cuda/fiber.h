// A fiber: a separate stack, and the code that runs on it. Each thread of an emulated block is one.
#pragma once

#include <cstddef>

namespace emulated {

class Fiber {
 public:
  Fiber() = default;
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // When it is switched to, it calls `entry`, which begins with arrive() and never returns.
  void prepare(void (*entry)());

  // Continues `to`. Returns when something switches back to `from`; never, if `from` is done.
  static void switch_to(Fiber& from, Fiber& to, bool done = false);
  static void arrive();

 private:
  // Null for the program's own stack, whose place is learnt when it is left.
  char* memory_ = nullptr;
  const void* lowest_ = nullptr;
  size_t size_ = 0;
  void* stack_pointer_ = nullptr;
};

}  // namespace emulated
