// The encoder's arithmetic on the contexts of a tile's samples: activity, zones, sign patterns, symbols. It uses only
// integers, so every processor target computes the same numbers.
#pragma once

#include "engine/dense_planes.h"
#include "engine/short_vectors.h"

namespace l3 {

constexpr uint32_t kBlockSamples = kBlockEdge * kBlockEdge;

// Fixed point for scaled products. The value is shifted left by kScaledShift and the scale by kScaleShift, so that
// both use their 16 bits well. The product is shifted right by 15 and bounded, so that a sum of 256 products fits 32
// bits.
constexpr uint32_t kScaledShift = 7, kScaleShift = 5;
constexpr int16_t kMaxScaled = 2896;

template <class S>  // a ShortVectors
struct ContextKernels {
  using R = typename S::Narrow;  // for rows of 16 numbers
  using Row = typename R::Shorts;

  // Scales rows of 256 numbers, each number by its own factor.
  L3_INLINE static void scale_rows(int16_t (*rows)[kBlockSamples], uint32_t count, const int16_t* scales) {
    for (uint32_t f = 0; f < count; ++f) {
      for (uint32_t i = 0; i < kBlockSamples; i += S::kShorts) {
        const typename S::Shorts scaled =
            S::multiply_rounded(S::load(rows[f] + i) << kScaledShift, S::load(scales + i));
        S::store(rows[f] + i, S::between(scaled, -kMaxScaled, kMaxScaled));
      }
    }
  }

  // The activity terms of 16 samples, and the other inputs of their contexts.
  struct ContextRow {
    NeighbourRow own, error;
    int16_t terms[kActivityTerms + 1][kBlockEdge];  // and one more row: zeros, or the target of the fit
  };

  L3_INLINE static void read_terms(const DensePlanes& planes, uint32_t channel, uint32_t x, uint32_t y,
                                   ContextRow& row) {
    find_neighbours(planes.samples[channel], planes.pitch, x, y, row.own);
    find_neighbours(planes.errors[channel], planes.pitch, x, y, row.error);
    const size_t at = y * planes.pitch + x;
    const uint32_t cross = cross_channels(channel);
    for (uint32_t k = 0; k < kBlockEdge; k += R::kShorts) {
      for (uint32_t i = 0; i < 6; ++i) R::store(row.terms[i] + k, R::magnitude(R::load(row.error.at[i] + k)));
      const Row n = R::load(row.own.at[kN] + k), nw = R::load(row.own.at[kNW] + k);
      R::store(row.terms[6] + k, R::magnitude(R::load(row.own.at[kW] + k) - nw));
      R::store(row.terms[7] + k, R::magnitude(n - nw));
      R::store(row.terms[8] + k, R::magnitude(n - R::load(row.own.at[kNE] + k)));
      for (uint32_t b = 0; b < cross; ++b) {
        R::store(row.terms[9 + b] + k, R::magnitude(R::load(planes.errors[channel - 1 - b] + at + k)));
      }
    }
  }

  // The weights of activity terms, in pairs.
  struct ActivityPairs {
    static constexpr uint32_t kPairs = (kActivityTerms + 1) / 2;
    uint32_t count;
    int32_t of[kPairs];

    L3_INLINE ActivityPairs(const uint8_t* weights, uint32_t terms) : count((terms + 1) / 2) {
      for (uint32_t i = 0; i < count; ++i) {
        of[i] = R::pair_of(weights[2 * i], 2 * i + 1 < terms ? weights[2 * i + 1] : 0);
      }
    }
  };

  // The levels of as many samples as fit a vector, from sample k on. Missing terms are multiplied by 0.
  L3_INLINE static Row read_levels(const ContextRow& row, const ActivityPairs& weights, uint32_t k) {
    const auto floor = R::all_pairs(kActivityFloor);
    typename R::InterleavedSums activity{floor, floor};
    for (uint32_t i = 0; i < weights.count; ++i) {
      activity.add(R::interleave(R::load(row.terms[2 * i] + k), R::load(row.terms[2 * i + 1] + k)),
                   R::all_pairs(weights.of[i]));
    }
    return R::levels_of(activity);
  }

  // Adds up products of activity terms (and of |error|, the last one), scaled by the level that `weights` give, using
  // every `step`-th block.
  static void accumulate_activity(const DensePlanes& planes, uint32_t channel, const uint8_t* weights,
                                  const int16_t* scale_of_level, uint32_t step, int64_t* products) {
    const uint32_t count = 9 + cross_channels(channel);
    const ActivityPairs pairs(weights, count);
    alignas(64) int16_t scaled[kActivityTerms + 1][kBlockSamples] = {};
    alignas(64) int16_t scale[kBlockSamples];
    ContextRow row;
    __builtin_memset(row.terms, 0, sizeof(row.terms));
    for (uint32_t block = 0; block < planes.block_count(); block += step) {
      const uint32_t x = block % planes.blocks_across * kBlockEdge, y0 = block / planes.blocks_across * kBlockEdge;
      const uint32_t columns = smaller(kBlockEdge, planes.width - x), rows = smaller(kBlockEdge, planes.height - y0);
      __builtin_memset(scale, 0, sizeof(scale));
      for (uint32_t r = 0; r < rows; ++r) {
        int16_t level[kBlockEdge];
        read_terms(planes, channel, x, y0 + r, row);
        for (uint32_t k = 0; k < kBlockEdge; k += R::kShorts) R::store(level + k, read_levels(row, pairs, k));
        for (uint32_t k = 0; k < columns; ++k) scale[r * kBlockEdge + k] = scale_of_level[level[k]];
        const int16_t* error = planes.errors[channel] + (y0 + r) * planes.pitch + x;
        for (uint32_t i = 0; i < count; ++i) copy_16(scaled[i] + r * kBlockEdge, row.terms[i]);
        for (uint32_t k = 0; k < kBlockEdge; k += R::kShorts) {
          R::store(scaled[count] + r * kBlockEdge + k, R::magnitude(R::load(error + k)));
        }
      }
      scale_rows(scaled, count + 1, scale);
      S::add_triangle(scaled, count + 1, products);
    }
  }

  // The symbol of each sample, row by row, and its context: zone, sign pattern and level in 4, 6 and 6 bits.
  static void read_symbols(const DensePlanes& planes, uint32_t channel, const uint8_t* weights, uint8_t* symbols,
                           uint16_t* places) {
    const ActivityPairs pairs(weights, 9 + cross_channels(channel));
    ContextRow row;
    __builtin_memset(row.terms, 0, sizeof(row.terms));
    for (uint32_t y = 0; y < planes.height; ++y) {
      for (uint32_t x = 0; x < planes.width; x += kBlockEdge) {
        read_terms(planes, channel, x, y, row);
        const size_t at = y * planes.pitch + x;
        uint16_t place[kBlockEdge];
        int16_t wide_symbol[kBlockEdge];
        for (uint32_t k = 0; k < kBlockEdge; k += R::kShorts) {
          const Row predicted = R::load(planes.predicted[channel] + at + k);
          const Row p = predicted >> 1, up = -(predicted & 1);
          // The zone is (3613 d + 61923) / 65536 (section 13.4); 61923 is 3 * 20641.
          typename R::InterleavedSums zones{};
          zones.add(R::interleave((p ^ up) & 0xFF, R::all(3)), R::all_pairs(R::pair_of(3613, 20641)));
          zones.low >>= 16;
          zones.high >>= 16;
          Row pattern = up & 63;
          for (uint32_t i = 0; i < 4; ++i)
            pattern ^= (R::load(row.error.at[i] + k) >> 15) & R::all(static_cast<int16_t>(1 << i));
          for (uint32_t i = 0; i < 2; ++i) {
            pattern ^= (R::load(row.own.at[i] + k) >= p) & R::all(static_cast<int16_t>(16 << i));
          }
          const Row here = (R::narrow(zones) << 12) | (pattern << 6) | read_levels(row, pairs, k);
          __builtin_memcpy(place + k, &here, sizeof(here));
          const Row difference = R::load(planes.samples[channel] + at + k) - p;
          const Row folded = ((difference ^ up) - up) << 8 >> 8;
          R::store(wide_symbol + k, (folded << 1) ^ (folded >> 15));
        }
        uint8_t symbol[kBlockEdge];
        for (uint32_t k = 0; k < kBlockEdge; ++k) symbol[k] = static_cast<uint8_t>(wide_symbol[k]);
        const uint32_t columns = smaller(kBlockEdge, planes.width - x);
        __builtin_memcpy(symbols + size_t{y} * planes.width + x, symbol, columns);
        __builtin_memcpy(places + size_t{y} * planes.width + x, place, 2 * columns);
      }
    }
  }
};

}  // namespace l3
