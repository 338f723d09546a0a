// Runs work on several threads for the duration of a call.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

namespace l3_python {

// 0 means one thread per processor.
inline uint64_t threads_for(uint64_t wanted, uint64_t count) {
  if (wanted == 0) wanted = std::max(1u, std::thread::hardware_concurrency());
  return std::min(wanted, count);
}

// Calls body(i) once for each i below `count`, in any order, on at most `threads` threads including the caller's.
template <class Body>
void for_each_of(uint64_t count, uint64_t threads, const Body& body) {
  std::atomic<uint64_t> next{0};
  const auto work = [&] {
    for (uint64_t i = next++; i < count; i = next++) body(i);
  };
  const uint64_t wanted = threads_for(threads, count);
  std::vector<std::thread> others;
  others.reserve(wanted);
  try {
    for (uint64_t i = 1; i < wanted; ++i) others.emplace_back(work);
  } catch (const std::exception&) {
    // Out of threads or memory: continue with the threads that did start.
  }
  work();
  for (std::thread& other : others) other.join();
}

}  // namespace l3_python
