// Runs a callable over an index range, through the caller's parallel-for where there is one.
#pragma once

#include <cstdint>

#include "l3/l3.h"

namespace l3 {

template <class Body>
void run_parallel(const l3_parallel& parallel, uint64_t count, Body& body) {
  if (parallel.run == nullptr || count < 2) {
    for (uint64_t i = 0; i < count; ++i) body(i);
    return;
  }
  const auto call = [](void* argument, uint64_t index) { (*static_cast<Body*>(argument))(index); };
  parallel.run(parallel.context, count, call, &body);
}

}  // namespace l3
