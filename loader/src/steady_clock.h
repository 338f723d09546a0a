// The time of the clock that never goes back.
#pragma once

#include <chrono>
#include <cstdint>

namespace loader {

// In nanoseconds. Processes of one machine share it.
inline uint64_t steady_ns() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

}  // namespace loader
