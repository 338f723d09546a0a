// Implements palette.h: writes a palette in the shortest form (section 4 of the spec).
#include "container/palette.h"

#include <cstring>

namespace l3 {

Palette shortest_palette(const uint8_t* colours, uint32_t entries) {
  const Palette whole{colours, kRepeatLast, entries, entries};
  Palette best = whole;
  for (uint32_t rule = 0; rule < kPaletteRules; ++rule) {
    Palette palette{colours, rule, entries, entries};
    while (palette.given_entries > 0) {
      Palette less = palette;
      --less.given_entries;
      if (less.colour(less.given_entries) != whole.colour(less.given_entries)) break;
      palette = less;
    }
    if (palette.given_entries < best.given_entries) best = palette;
  }
  return best;
}

void write_palette(const Palette& palette, uint8_t* out) {
  out[0] = static_cast<uint8_t>(palette.rule);
  out[1] = static_cast<uint8_t>(palette.entries - 1);
  std::memcpy(out + kPaletteHeadBytes, palette.given, 3 * palette.given_entries);
}

}  // namespace l3
