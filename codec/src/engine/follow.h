// Pixels that follow others (section 15.6 of the spec): the rules, for processors and GPUs alike.
#pragma once

#include "container/dense.h"

namespace l3 {

constexpr uint32_t kFollowBits = 10, kFollowEntries = 1u << kFollowBits;
// Factors of W, N, NW and NE, by engine channel.
constexpr uint16_t kFollowFactors[4][4] = {{0x9E37, 0x85EB, 0xC2B3, 0x27D5},
                                           {0x79B9, 0xCA6B, 0xAE3D, 0xEB2F},
                                           {0x1657, 0xD3A3, 0xFD71, 0xB55B},
                                           {0x67B1, 0x646D, 0x46C5, 0x4F09}};

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

// Where the place comes from.
enum FollowSource : uint32_t { kFollowTable, kFollowW, kFollowN, kFollowBoth };

}  // namespace l3
