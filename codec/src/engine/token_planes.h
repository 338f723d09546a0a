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
  uint8_t* follows;                  // with follow: the number of each pixel (section 15.6)
  uint8_t* classes[kMaxChannels];    // of each block
  uint8_t* still;                    // for each block
  uint16_t* rows;                    // for each block, a bit for each row that is still

  L3_INLINE static size_t pitch_of(uint32_t width) { return (size_t{width} + 15) / 16 * 16 + 2 * kTokenMargin; }
  L3_INLINE uint32_t block_count() const { return blocks_across * blocks_down; }
};

enum TokenNeighbour : uint32_t { kTokenW, kTokenN, kTokenNw, kTokenNe, kTokenWw, kTokenNn, kTokenNne, kTokenNww };
constexpr uint32_t kTokenNeighbours = 8;

// The neighbours of 16 numbers side by side.
struct TokenRow {
  const int32_t* at[kTokenNeighbours];
  int32_t own[kTokenNeighbours][kBlockEdge];  // copies of neighbours that do not lie in the plane in this order
};

L3_INLINE void fill_margins(int32_t* row, uint32_t width, size_t pitch) {
  row[-1] = row[-2] = row[0];
  for (size_t x = width; x < pitch - kTokenMargin; ++x) row[x] = row[width - 1];
}

}  // namespace l3
