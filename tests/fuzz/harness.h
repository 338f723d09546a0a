// What the fuzz targets share: how they fail, and how they ask every processor target the same question.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "l3/l3.h"

namespace fuzz {

using Bytes = std::vector<uint8_t>;

// Says which line of a target does not hold, and ends the run: libFuzzer keeps the input.
inline void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}
#define FUZZ_EXPECT(condition) ::fuzz::expect((condition), #condition)

// Calls `ask` under each processor target of this machine; all answers must be equal. Gives the answer.
template <class Ask>
auto same_on_all_targets(const Ask& ask) {
  static const std::vector<const char*> targets = [] {
    std::vector<const char*> found;
    // vnni is made of parts of avx2 and avx512: it stands for the latter where VBMI is lacking.
    for (const char* name : {"portable", "neon", "sse4", "avx2", "avx512", "vnni"}) {
      l3_force_cpu_target(name);
      if (l3_cpu_target() == nullptr || (std::string(name) == "vnni" && found.back() == std::string("avx512")))
        continue;
      found.push_back(name);
    }
    return found;
  }();
  l3_force_cpu_target(targets[0]);
  auto first = ask();
  for (size_t i = 1; i < targets.size(); ++i) {
    l3_force_cpu_target(targets[i]);
    FUZZ_EXPECT(ask() == first);
  }
  return first;
}

// What a call said.
struct Said {
  l3_status status = L3_OK;
  uint64_t offset = 0, tile = 0;
  std::string reason;

  bool operator==(const Said&) const = default;
  bool ok() const { return status == L3_OK; }
};

inline Said said(l3_status status, const l3_error& error) {
  FUZZ_EXPECT(status == error.status);
  FUZZ_EXPECT(error.reason != nullptr);
  return {status, error.offset, error.tile, error.reason};
}

// Memory of exactly that size, so that a sanitizer sees every byte read or written beyond it.
inline Bytes exactly(const uint8_t* data, size_t size) {
  Bytes copy(data, data + size);
  copy.shrink_to_fit();
  return copy;
}

// A parallel-for that takes its indices in an order of its own: results never depend on it.
inline l3_parallel backwards() {
  const auto run = [](void*, uint64_t count, void (*body)(void*, uint64_t), void* argument) {
    for (uint64_t i = count; i-- > 0;) body(argument, i);
  };
  return {run, nullptr};
}

}  // namespace fuzz
