// Implements palette.h: writes a palette in the shortest form (section 4 of the spec).
#include "container/palette.h"

#include <cstring>
#include <initializer_list>

namespace l3 {

Palette shortest_palette(const uint8_t* colours, uint32_t entries) {
  const Palette whole{colours, kRepeatLast, entries, entries};
  Palette best = whole;
  for (const uint32_t rule : {kRepeatLast, kClassColours}) {
    Palette palette{colours, rule, entries, entries};
    while (palette.given_entries > 0) {
      Palette less = palette;
      --less.given_entries;
      if (less.colour(less.given_entries) != whole.colour(less.given_entries)) break;
      palette = less;
    }
    if (palette.given_entries < best.given_entries) best = palette;
  }
  bool is_gray = best.rule == kRepeatLast && best.given_entries != 0;
  for (uint32_t i = 0; i < best.given_entries; ++i) is_gray = is_gray && whole.colour(i) == colours[3 * i] * 0x010101u;
  if (is_gray) best.rule = kGrays;
  return best;
}

void write_palette(const Palette& palette, uint8_t* out) {
  out[0] = static_cast<uint8_t>(palette.rule);
  out[1] = static_cast<uint8_t>(palette.entries - 1);
  const uint32_t bytes = Palette::entry_bytes(palette.rule);
  for (uint32_t i = 0; i < palette.given_entries; ++i) {
    std::memcpy(out + kPaletteHeadBytes + bytes * i, palette.given + 3 * i, bytes);
  }
}

}  // namespace l3
