// Little-endian numbers in memory, at any address.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace base {

template <typename Number>
Number load(const uint8_t* at) {
  Number value;
  std::memcpy(&value, at, sizeof value);
  if constexpr (std::endian::native == std::endian::big) {
    Number turned = 0;
    for (size_t i = 0; i < sizeof value; ++i) turned = static_cast<Number>(turned | Number{at[i]} << 8 * i);
    return turned;
  }
  return value;
}
inline uint16_t load_u16(const uint8_t* at) { return load<uint16_t>(at); }
inline uint32_t load_u32(const uint8_t* at) { return load<uint32_t>(at); }
inline uint64_t load_u64(const uint8_t* at) { return load<uint64_t>(at); }

template <typename Number>
void store(uint8_t* at, Number value) {
  for (size_t i = 0; i < sizeof value; ++i) at[i] = static_cast<uint8_t>(value >> 8 * i);
}

}  // namespace base
