// From the samples of an L3 file to those that were asked for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace l3_nvimgcodec {

// Interleaved samples without padding: uint16_t if there are more than 8 bits, otherwise uint8_t.
struct Source {
  const void* samples;
  uint32_t width, height, channels, bits;
};

// What a channel of the result is made of: a channel of the source, or one of these.
inline constexpr int kLuma = -1;    // of red, green and blue, as in BT.601
inline constexpr int kOpaque = -2;  // the greatest sample

inline constexpr uint32_t kMaxParts = 4;

// The result. A pixel that is at (x, y) after turning begins at x * pixel + y * row bytes in each channel.
struct Target {
  std::array<int, kMaxParts> parts;         // what the channels are made of
  std::array<uint8_t*, kMaxParts> channel;  // where each one begins
  uint32_t count;                           // of channels
  size_t pixel, row;                        // distances in bytes
  uint32_t bits;                            // the greatest sample is 2^bits - 1
  bool is_wide;                             // uint16_t
  uint32_t orientation;                     // how to turn the pixels, as in EXIF
};

// In which directions an EXIF orientation goes: columns and rows are first exchanged, then mirrored.
struct Turn {
  bool is_transposed, mirrors_x, mirrors_y;
  static Turn of(uint32_t orientation);
};

// Scales samples if the bits differ, with the nearest result.
void write_pixels(const Source& source, const Target& target);

}  // namespace l3_nvimgcodec
