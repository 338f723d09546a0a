// Structures of the public API that grow with time: a caller's one may be shorter or longer than ours.
#pragma once

#include <cstdint>
#include <cstring>

namespace l3 {

// Copies what the caller's structure has of ours; the rest stays zero. False where struct_size was not set.
template <class Struct>
[[nodiscard]] bool copy_sized(const Struct* given, Struct& own) {
  own = Struct{};
  if (given == nullptr) return true;
  if (given->struct_size < sizeof(given->struct_size) + 1) return false;
  std::memcpy(static_cast<void*>(&own), given, given->struct_size < sizeof(own) ? given->struct_size : sizeof(own));
  return true;
}

}  // namespace l3
