// Pixels that follow others (section 15.6 of the spec): the rules, for processors and GPUs alike.
#pragma once

#include "container/dense.h"

namespace l3 {

// The place of a pixel: its row in the upper half of a word, and its column plus 1 in the lower one. 0 is no place.
L3_INLINE constexpr uint32_t follow_place(uint32_t x, uint32_t y) { return y << 16 | (x + 1); }
constexpr uint32_t kNextColumn = 1, kNextRow = 1u << 16;

// In which step of a tile a place is decoded.
struct FollowSteps {
  uint32_t log_lanes, period;
  L3_INLINE constexpr uint32_t operator()(uint32_t place) const {
    const uint32_t y = place >> 16, x = (place & 0xFFFF) - 1;
    return (y >> log_lanes) * period + x + 2 * (y & ((1u << log_lanes) - 1));
  }
};

// ---- the near table: the place of the last pixel that had the same four neighbours

constexpr uint32_t kNearBits = 12, kNearEntries = 1u << kNearBits;
// Factors of W, N, NW and NE, by engine channel.
constexpr uint16_t kNearFactors[4][4] = {{0x9E37, 0x85EB, 0xC2B3, 0x27D5},
                                         {0x79B9, 0xCA6B, 0xAE3D, 0xEB2F},
                                         {0x1657, 0xD3A3, 0xFD71, 0xB55B},
                                         {0x67B1, 0x646D, 0x46C5, 0x4F09}};
L3_INLINE constexpr uint32_t near_entry(uint32_t sum) { return (sum & 0xFFFF) >> (16 - kNearBits); }

// ---- the wide table: the place of the last pixel that had the same surroundings, by a hash of them

constexpr uint32_t kWideBits = 14, kWideEntries = 1u << kWideBits, kTagBits = 12;
// The factors of a pixel's values, by engine channel.
constexpr uint32_t kValueFactors[4] = {0xC2B2AE3D, 0x27D4EB2F, 0x165667B1, 0xD3A2646D};
// The trail of a pixel: a hash of it and of what is left of it. The factor is a multiple of 2^4: what is eight columns
// away no longer counts.
L3_INLINE constexpr uint32_t trail_of(uint32_t values, uint32_t trail_of_w) {
  return values + trail_of_w * 0xE3779B10u;
}
// The scene of a pixel: a hash of its trail and of the trails above it. The factor is a multiple of 2^8.
L3_INLINE constexpr uint32_t scene_of(uint32_t trail, uint32_t scene_of_ne) {
  return trail + scene_of_ne * 0xEBCA7700u;
}
// The key of a pixel: the entry of the table in the upper bits, the tag below.
L3_INLINE constexpr uint32_t wide_key(uint32_t trail_of_w, uint32_t scene_of_ne) {
  const uint32_t key = trail_of_w * 0x9E3779B1u + scene_of_ne * 0x85EBCA6Bu;
  return (key ^ key >> 15) * 0x2C1B3C6Du;
}
L3_INLINE constexpr uint32_t wide_entry(uint32_t key) { return key >> (32 - kWideBits); }
L3_INLINE constexpr uint32_t wide_tag(uint32_t key) {
  return key >> (32 - kWideBits - kTagBits) & ((1u << kTagBits) - 1);
}
// A word of the table: row, column and tag, so that the greater one of two is the later one. 0 is empty; the pixel at
// (0, 0) asks nothing.
L3_INLINE constexpr uint32_t wide_word(uint32_t x, uint32_t y, uint32_t key) {
  return y << 22 | x << kTagBits | wide_tag(key);
}
// The place in a word, or 0 if the word is empty or has another tag.
L3_INLINE constexpr uint32_t wide_place(uint32_t word, uint32_t key) {
  const bool is_found = (word != 0) & (((word ^ key >> (32 - kWideBits - kTagBits)) & ((1u << kTagBits) - 1)) == 0);
  return is_found ? follow_place(word >> kTagBits & (kMaxTileEdge - 1), word >> 22) : 0;
}

// Where the place comes from.
enum FollowSource : uint32_t { kFollowNear, kFollowOne, kFollowBoth, kFollowWide, kFollowWideToo, kFollowSources };

// The place that a pixel follows from, by what its neighbours keep (0: nothing), if the wide table says nothing.
struct FollowKept {
  uint32_t place, source;  // place 0: the near table is asked
  L3_INLINE static constexpr FollowKept of(uint32_t of_n, uint32_t of_w) {
    const uint32_t from_n = of_n + kNextRow, from_w = of_w + kNextColumn;
    // No place is in column 0, so both are equal only if W keeps one.
    const bool are_equal = (of_n != 0) & (from_w == from_n);
    const uint32_t alone = of_w != 0 ? from_w : 0;
    return {of_n != 0 ? from_n : alone, are_equal ? uint32_t{kFollowBoth} : uint32_t{kFollowOne}};
  }
  // The same where the wide table says this.
  L3_INLINE constexpr FollowKept or_wide(uint32_t wide) const {
    const uint32_t of_wide = wide == place ? kFollowWideToo : kFollowWide;
    return {wide != 0 ? wide : place, wide != 0 ? of_wide : source};
  }
};

}  // namespace l3
