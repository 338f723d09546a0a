// Loads numbers from the bytes of a file. The caller must check that the bytes exist.
#pragma once

#include <cstdint>

namespace formats {

inline uint32_t load_u16_little(const uint8_t* bytes) { return uint32_t{bytes[0]} | uint32_t{bytes[1]} << 8; }
inline uint32_t load_u32_little(const uint8_t* bytes) {
  return load_u16_little(bytes) | load_u16_little(bytes + 2) << 16;
}
inline uint32_t load_u16_big(const uint8_t* bytes) { return uint32_t{bytes[0]} << 8 | uint32_t{bytes[1]}; }
inline uint32_t load_u32_big(const uint8_t* bytes) { return load_u16_big(bytes) << 16 | load_u16_big(bytes + 2); }

// Scales a sample of 1 to 8 bits to 8 bits. The exact quotient is rounded down, as Pillow does.
inline uint8_t widened(uint32_t sample, uint32_t bits) {
  return static_cast<uint8_t>(sample * 255 / ((1U << bits) - 1));
}

}  // namespace formats
