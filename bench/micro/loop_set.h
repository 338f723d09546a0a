// The hot loops of libl3, through its public functions. l3_micro times them, and l3_loops runs them for the gate.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace micro {

// A loop that is ready to run. Its input was made before, so a turn contains only the call to measure.
struct Prepared {
  uint64_t pixels = 0;         // that a turn takes or gives, where it is about pixels
  uint64_t bytes = 0;          // that a turn reads, where it is not
  std::function<bool()> turn;  // false where libl3 failed
  std::string failure;         // why there is no turn; else empty
};

struct Loop {
  std::string_view name;
  Prepared (*prepare)();
};

std::span<const Loop> all_loops();

}  // namespace micro
