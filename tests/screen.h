// Draws screens full of text, for tests of pixels that follow others.
#pragma once

#include <array>
#include <vector>

#include "drawing.h"

namespace drawing {

// Lines of text from a few glyphs with soft edges, in windows of two backgrounds. Palette images have few values.
inline Drawing screen(Size size, Type type, uint64_t seed = 1) {
  constexpr uint32_t kGlyphs = 20, kGlyphWidth = 7, kGlyphHeight = 9, kCellWidth = 9, kCellHeight = 15;
  Dice dice(seed);
  std::vector<std::array<uint8_t, kGlyphWidth * kGlyphHeight>> glyphs(kGlyphs);
  for (auto& glyph : glyphs) {
    for (uint8_t& shade : glyph) shade = static_cast<uint8_t>(dice.chance(2) ? 0 : 1 + dice.roll(3));
  }
  Drawing d = drawing::blank(size, type);
  uint32_t ground[2][4], ink[4];
  for (uint32_t c = 0; c < 4; ++c) {
    for (auto& one : ground) one[c] = dice.roll(d.maximum() + uint64_t{1});
    ink[c] = dice.roll(d.maximum() + uint64_t{1});
  }
  const auto put = [&](uint32_t x, uint32_t y, uint32_t shade, const uint32_t* behind) {
    if (x >= size.width || y >= size.height) return;
    for (uint32_t c = 0; c < d.channels(); ++c) {
      d.set_sample(x, y, c, (behind[c] * (3 - shade) + ink[c] * shade) / 3);
    }
  };
  for (uint32_t y = 0; y < size.height; ++y) {
    for (uint32_t x = 0; x < size.width; ++x) put(x, y, 0, ground[x > size.width / 3]);
  }
  for (uint32_t top = 3; top < size.height; top += kCellHeight) {
    const uint32_t end = size.width / 2 + dice.roll(size.width / 2 + 1);
    for (uint32_t left = 5; left < end; left += kCellWidth) {
      if (dice.chance(6)) continue;
      const auto& glyph = dice.pick(glyphs);
      for (uint32_t i = 0; i < glyph.size(); ++i) {
        const uint32_t x = left + i % kGlyphWidth;
        put(x, top + i / kGlyphWidth, glyph[i], ground[x > size.width / 3]);
      }
    }
  }
  return d;
}

}  // namespace drawing
