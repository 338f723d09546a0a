// Structures of callers, which may have been compiled for another version.
#pragma once

#include <algorithm>
#include <cstring>

#include "l3/l3_data.h"

namespace loader {

// Fills the members that the caller's version of a structure has.
template <typename T>
l3_status copy_out(T own, T* to) {
  if (to->struct_size == 0) return L3_ERROR_ARGUMENT;
  own.struct_size = to->struct_size;
  std::memcpy(to, &own, std::min<size_t>(to->struct_size, sizeof own));
  return L3_OK;
}

}  // namespace loader
