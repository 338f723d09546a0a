// The palette section (section 4 of the spec), for processors and GPUs alike.
#pragma once

#include "container/format.h"

namespace l3 {

constexpr uint32_t kPaletteHeadBytes = 2;  // the rule, and the number of entries less 1

// The rule for entries that the section does not contain. That for grays is kRepeatLast, and entries that it contains
// have one byte.
enum PaletteRule : uint32_t {
  kRepeatLast = 0,
  kClassColours = 1,
  kGrays = 2,
  kPaletteRules = 3,
};

// An entry of PASCAL VOC's colour map; red is in the lowest byte.
L3_INLINE constexpr uint32_t class_colour(uint32_t entry) {
  uint32_t colour = 0;
  for (uint32_t j = 0; j < 8; ++j) {
    for (uint32_t c = 0; c < 3; ++c) colour |= (entry >> (3 * j + c) & 1) << (8 * c + 7 - j);
  }
  return colour;
}

struct Palette {
  const uint8_t* given;  // the first entries
  uint32_t rule, entries, given_entries;

  // The section must have been verified.
  L3_INLINE static Palette of(const uint8_t* bytes, uint64_t size) {
    return {bytes + kPaletteHeadBytes, bytes[0], bytes[1] + 1u,
            static_cast<uint32_t>((size - kPaletteHeadBytes) / entry_bytes(bytes[0]))};
  }
  L3_INLINE static uint32_t entry_bytes(uint32_t rule) { return rule == kGrays ? 1 : 3; }
  L3_INLINE uint32_t section_bytes() const { return kPaletteHeadBytes + entry_bytes(rule) * given_entries; }
  // The colour of an entry; red is in the lowest byte.
  L3_INLINE uint32_t colour(uint32_t entry) const {
    if (entry < given_entries) return given_colour(entry);
    if (rule == kClassColours) return class_colour(entry);
    return given_entries != 0 ? given_colour(given_entries - 1) : 0;
  }
  L3_INLINE uint32_t given_colour(uint32_t entry) const {
    if (rule == kGrays) return given[entry] * 0x010101u;
    return load_u16(given + 3 * entry) | static_cast<uint32_t>(given[3 * entry + 2]) << 16;
  }
};

// The palette with these entries, whose section is the shortest. `given` are all three bytes of the entries, by any
// rule. Host code only.
Palette shortest_palette(const uint8_t* colours, uint32_t entries);

// Writes the section, section_bytes() long. Host code only.
void write_palette(const Palette& palette, uint8_t* out);

}  // namespace l3
