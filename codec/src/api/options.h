// Copies structures of the public API that may grow: the caller's may be shorter or longer than the library's.
#pragma once

#include <cstdint>
#include <cstring>

namespace l3 {

// Copies the members that both structures have; the rest stays zero. Returns false if struct_size was not set.
template <class Struct>
[[nodiscard]] bool copy_sized(const Struct* given, Struct& own) {
  own = Struct{};
  if (given == nullptr) return true;
  if (given->struct_size < sizeof(given->struct_size) + 1) return false;
  std::memcpy(static_cast<void*>(&own), given, given->struct_size < sizeof(own) ? given->struct_size : sizeof(own));
  return true;
}

}  // namespace l3
