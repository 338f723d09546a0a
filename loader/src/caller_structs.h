// Structures of callers, which may be of another version than ours.
#pragma once

#include <algorithm>
#include <cstring>

#include "l3/l3_data.h"

namespace loader {

// Fills a caller's structure as far as it reaches.
template <typename T>
l3_status copy_out(T own, T* to) {
  if (to->struct_size == 0) return L3_ERROR_ARGUMENT;
  own.struct_size = to->struct_size;
  std::memcpy(to, &own, std::min<size_t>(to->struct_size, sizeof own));
  return L3_OK;
}

}  // namespace loader
