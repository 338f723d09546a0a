// A tile of a token model as the encoder uses it: planes of numbers and pixels with margins, and the neighbours that
// section 15 of the spec defines.
#pragma once

#include "models/token.h"

namespace l3 {

constexpr uint32_t kTokenMargin = 16;

// Takes the place of a MatchSymbol for pixels that have none: those of still blocks and those beside the tile.
constexpr uint8_t kNoSymbol = 0xFF;

// Row y of a plane begins at `plane + y * pitch`. There are readable margins before and after each row; in `values` and
// `errors` they repeat the row's first and last number.
struct TokenPlanes {
  uint32_t width, height, channels;  // engine channels
  uint32_t blocks_across, blocks_down;
  size_t pitch;
  int32_t hole;  // the value of holes, or negative
  int32_t* values[kMaxChannels];
  int32_t* errors[kMaxChannels];
  int32_t* predicted[kMaxChannels];  // twice the prediction, plus 1 if it leans upwards
  int32_t* held;                     // with holes: what takes their place among the neighbours of each pixel
  uint8_t* equalities;               // with match
  uint8_t* symbols;                  // without match every symbol is kMatchNone
  uint8_t* classes[kMaxChannels];    // of each block
  uint8_t* still;                    // for each block

  L3_INLINE static size_t pitch_of(uint32_t width) { return (size_t{width} + 15) / 16 * 16 + 2 * kTokenMargin; }
  L3_INLINE uint32_t block_count() const { return blocks_across * blocks_down; }
  L3_INLINE bool still_above(uint32_t block) const {
    return block >= blocks_across && still[block - blocks_across] != 0;
  }
};

enum TokenNeighbour : uint32_t { kTokenW, kTokenN, kTokenNw, kTokenNe, kTokenWw, kTokenNn, kTokenNne, kTokenNww };
constexpr uint32_t kTokenNeighbours = 8;

// The neighbours of 16 numbers side by side.
struct TokenRow {
  const int32_t* at[kTokenNeighbours];
  int32_t own[kTokenNeighbours][kBlockEdge];  // copies of neighbours that do not lie in the plane in this order
};

L3_INLINE void copy_16(int32_t* to, const int32_t* from) { __builtin_memcpy(to, from, 4 * kBlockEdge); }

// The neighbours of the numbers in columns x to x + 15 of row y; x is a multiple of 16.
L3_INLINE void find_neighbours(const int32_t* plane, size_t pitch, uint32_t x, uint32_t y, TokenRow& row) {
  const int32_t* here = plane + y * pitch + x;
  const int32_t* up = y == 0 ? here : here - pitch;
  const int32_t* up_2 = y < 2 ? up : up - pitch;
  const int32_t* const at[kTokenNeighbours] = {here - 1, up, up - 1, up + 1, here - 2, up_2, up_2 + 1, up - 2};
  for (uint32_t i = 0; i < kTokenNeighbours; ++i) row.at[i] = at[i];
  if (x == 0) {
    const int32_t corner = y == 0 ? 0 : up[0];
    copy_16(row.own[kTokenW], here - 1);
    copy_16(row.own[kTokenWw], here - 2);
    row.own[kTokenW][0] = row.own[kTokenWw][0] = row.own[kTokenWw][1] = corner;
    row.at[kTokenW] = row.own[kTokenW];
    row.at[kTokenWw] = row.own[kTokenWw];
  }
  if (y == 0) {
    for (uint32_t i = kTokenN; i < kTokenNeighbours; ++i) {
      if (i != kTokenWw) row.at[i] = row.at[kTokenW];
    }
  }
}

L3_INLINE void fill_margins(int32_t* row, uint32_t width, size_t pitch) {
  row[-1] = row[-2] = row[0];
  for (size_t x = width; x < pitch - kTokenMargin; ++x) row[x] = row[width - 1];
}

}  // namespace l3
