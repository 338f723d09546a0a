// The hot loops of libl3, by its public functions: what l3_micro times and what l3_loops runs for the gate.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace micro {

// A loop that is ready to run. What it works on was made before: a turn is the call that is measured and nothing else.
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
