// A tile as the encoder uses it: planes of samples, errors and predictions for each channel, with margins, and the
// neighbours that section 13.3 of the spec defines.
#pragma once

#include "container/dense.h"

namespace l3 {

constexpr uint32_t kMargin = 16;

// Planes of 16-bit numbers. Row y of a plane begins at `plane + y * pitch`. There are readable margins before and
// after each row; in `samples` and `errors` they repeat the row's first and last value.
struct DensePlanes {
  uint32_t width, height, channels, bits;
  uint32_t blocks_across, blocks_down;
  size_t pitch;
  int16_t* samples[kMaxChannels];
  int16_t* errors[kMaxChannels];     // sample - prediction, saturated
  int16_t* predicted[kMaxChannels];  // twice the prediction, plus 1 if it leans upwards
  uint8_t* classes[kMaxChannels];    // of each block

  L3_INLINE static size_t pitch_of(uint32_t width) { return (size_t{width} + 15) / 16 * 16 + 2 * kMargin; }
  L3_INLINE uint32_t block_count() const { return blocks_across * blocks_down; }
};

// The neighbours of 16 samples side by side: W N NW NE WW NN NNE NWW.
enum Neighbour : uint32_t { kW, kN, kNW, kNE, kWW, kNN, kNNE, kNWW, kNeighbours };

struct NeighbourRow {
  const int16_t* at[kNeighbours];
  int16_t own[kNeighbours][kBlockEdge];  // copies of neighbours that do not lie in the plane in this order
};

L3_INLINE void copy_16(int16_t* to, const int16_t* from) { __builtin_memcpy(to, from, 2 * kBlockEdge); }

// The neighbours of the samples in columns x to x + 15 of row y; x is a multiple of 16.
L3_INLINE void find_neighbours(const int16_t* plane, size_t pitch, uint32_t x, uint32_t y, NeighbourRow& row) {
  const int16_t* here = plane + y * pitch + x;
  const int16_t* up = y == 0 ? here : here - pitch;
  const int16_t* up_2 = y < 2 ? up : up - pitch;
  const int16_t* const at[kNeighbours] = {here - 1, up, up - 1, up + 1, here - 2, up_2, up_2 + 1, up - 2};
  for (uint32_t i = 0; i < kNeighbours; ++i) row.at[i] = at[i];
  if (x == 0) {
    const int16_t corner = y == 0 ? int16_t{} : up[0];
    copy_16(row.own[kW], here - 1);
    copy_16(row.own[kWW], here - 2);
    row.own[kW][0] = row.own[kWW][0] = row.own[kWW][1] = corner;
    row.at[kW] = row.own[kW];
    row.at[kWW] = row.own[kWW];
  }
  if (y == 0) {
    for (uint32_t i = kN; i < kNeighbours; ++i) {
      if (i != kWW) row.at[i] = row.at[kW];
    }
  }
}

L3_INLINE void fill_margins(int16_t* row, uint32_t width, size_t pitch) {
  row[-1] = row[-2] = row[0];
  for (size_t x = width; x < pitch - kMargin; ++x) row[x] = row[width - 1];
}

}  // namespace l3
