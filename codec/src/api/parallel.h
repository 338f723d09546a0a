// Runs a callable over an index range, with the caller's parallel loop if there is one.
#pragma once

#include <atomic>
#include <cstdint>
#include <new>

#include "l3/l3.h"

namespace l3 {

// A body may throw std::bad_alloc on any thread. Exceptions must not pass through the caller's C functions, so the
// body's exception is caught there, and a new one is thrown after the loop has returned.
template <class Body>
void run_parallel(const l3_parallel& parallel, uint64_t count, Body& body) {
  if (parallel.run == nullptr || count < 2) {
    for (uint64_t i = 0; i < count; ++i) body(i);
    return;
  }
  struct Call {
    Body& body;
    std::atomic<bool> in_memory{true};
  } call{body};
  const auto run_one = [](void* argument, uint64_t index) {
    Call& own = *static_cast<Call*>(argument);
    if (!own.in_memory.load(std::memory_order_relaxed)) return;
    try {
      own.body(index);
    } catch (const std::bad_alloc&) {
      own.in_memory.store(false, std::memory_order_relaxed);
    }
  };
  parallel.run(parallel.context, count, run_one, &call);
  if (!call.in_memory.load()) throw std::bad_alloc{};
}

}  // namespace l3
