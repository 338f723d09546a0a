// Shared by the tests of BMP, GIF, PSD and TGA: files written number by number, and stb_image as a second decoder.
#pragma once

#include "formats_damage.h"
#include "formats_drawing.h"

namespace formats_drawing {

inline void add(Bytes& out, const Bytes& more) { out.insert(out.end(), more.begin(), more.end()); }
inline void add_little(Bytes& out, uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<uint8_t>(value >> (8 * i) & 0xFF));
}
inline void add_big(Bytes& out, uint32_t value, int bytes) {
  for (int i = bytes; i-- > 0;) out.push_back(static_cast<uint8_t>(value >> (8 * i) & 0xFF));
}

inline std::vector<std::string> notices_of(const Bytes& file) {
  std::vector<std::string> notices;
  (void)read_back(file, {.notices = &notices});
  return notices;
}

// Expects the 8-bit pixels that stb_image returns. With `colourless`, all transparent pixels count as equal, because
// stb_image does not return their colours.
void expect_like_stb(const Bytes& file, bool colourless = false);

// The same of 16 bits, with so many channels.
void expect_like_stb_16(const Bytes& file, uint32_t channels);

}  // namespace formats_drawing
