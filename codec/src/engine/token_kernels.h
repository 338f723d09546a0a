// The encoder's arithmetic on the pixels of a token tile: matches, predictions, contexts. It uses only integers, so
// every processor target computes the same numbers.
#pragma once

#include <initializer_list>

#include "engine/short_vectors.h"
#include "engine/token_planes.h"

namespace l3 {

constexpr uint32_t kBlockPixels = kBlockEdge * kBlockEdge;
constexpr uint32_t kScaleLevels = 48;  // activity levels that the fit distinguishes

// What read_symbols() finds about a sample: the number that is coded, and its context.
struct TokenPlace {
  uint16_t number;
  uint8_t level;
  uint8_t zone;
  uint8_t pattern;
};

template <class S>  // a ShortVectors
struct TokenKernelsOf {
  using Ints = typename S::Sums;
  using Floats = typename S::Floats;
  static constexpr uint32_t kInts = S::kSums;

  L3_INLINE static Ints load(const int32_t* from) {
    Ints v;
    __builtin_memcpy(&v, from, sizeof(v));
    return v;
  }
  L3_INLINE static void store(int32_t* to, const Ints& v) { __builtin_memcpy(to, &v, sizeof(v)); }
  L3_INLINE static Ints all(int32_t v) { return Ints{} + v; }
  L3_INLINE static Ints larger(const Ints& a, const Ints& b) { return a > b ? a : b; }
  L3_INLINE static Ints lesser(const Ints& a, const Ints& b) { return a < b ? a : b; }
  L3_INLINE static Ints magnitude(const Ints& a) { return larger(a, -a); }
  L3_INLINE static Ints between(const Ints& v, int32_t minimum, int32_t maximum) {
    return lesser(larger(v, all(minimum)), all(maximum));
  }
  // The bits of a number as a float: the exponent and the top bits of the mantissa make a level.
  L3_INLINE static Ints float_bits(const Ints& v) { return (Ints) __builtin_convertvector(v, Floats); }

  // Whether any of 16 pixels is coded by tokens.
  L3_INLINE static bool any_escapes(const uint8_t* symbols) {
    using Bytes = typename VectorTypes<16>::U8;
    Bytes of;
    __builtin_memcpy(&of, symbols, sizeof(of));
    const auto escapes = (typename VectorTypes<16>::U64)(of == static_cast<uint8_t>(kMatchNone));
    return (escapes[0] | escapes[1]) != 0;
  }

  // The neighbours of the numbers in columns x to x + 15 of row y; x is a multiple of 16.
  L3_INLINE static void find_neighbours(const int32_t* plane, size_t pitch, uint32_t x, uint32_t y, TokenRow& row) {
    const int32_t* here = plane + y * pitch + x;
    const int32_t* up = y == 0 ? here : here - pitch;
    const int32_t* up_2 = y < 2 ? up : up - pitch;
    row.at[kTokenW] = here - 1;
    row.at[kTokenWw] = here - 2;
    if (x == 0) {
      const int32_t corner = y == 0 ? 0 : up[0];
      for (uint32_t k = 0; k < kBlockEdge; k += kInts) {
        Ints w = load(here - 1 + k), ww = load(here - 2 + k);
        if (k == 0) w[0] = ww[0] = ww[1] = corner;
        store(row.own[kTokenW] + k, w);
        store(row.own[kTokenWw] + k, ww);
      }
      row.at[kTokenW] = row.own[kTokenW];
      row.at[kTokenWw] = row.own[kTokenWw];
    }
    const bool top = y == 0;
    row.at[kTokenN] = top ? row.at[kTokenW] : up;
    row.at[kTokenNw] = top ? row.at[kTokenW] : up - 1;
    row.at[kTokenNe] = top ? row.at[kTokenW] : up + 1;
    row.at[kTokenNn] = top ? row.at[kTokenW] : up_2;
    row.at[kTokenNne] = top ? row.at[kTokenW] : up_2 + 1;
    row.at[kTokenNww] = top ? row.at[kTokenW] : up - 2;
  }

  // The neighbours of 16 values, with held values in place of holes.
  L3_INLINE static void find_values(const TokenPlanes& planes, uint32_t channel, uint32_t x, uint32_t y,
                                    TokenRow& row) {
    find_neighbours(planes.values[channel], planes.pitch, x, y, row);
    if (planes.hole < 0) return;
    const int32_t* held = planes.held + y * planes.pitch + x;
    for (uint32_t i = 0; i < kTokenNeighbours; ++i) {
      for (uint32_t k = 0; k < kBlockEdge; k += kInts) {
        const Ints v = load(row.at[i] + k);
        store(row.own[i] + k, v == planes.hole ? load(held + k) : v);
      }
      row.at[i] = row.own[i];
    }
  }

  // Finds which neighbour each pixel repeats, and the still blocks if the model may have them.
  static void find_matches(const TokenPlanes& planes, bool with_still, bool with_rows) {
    TokenRow rows[kMaxChannels];
    __builtin_memset(planes.still, with_still, planes.block_count());
    __builtin_memset(planes.rows, 0xFF, planes.block_count() * sizeof(planes.rows[0]));
    for (uint32_t y = 0; y < planes.height; ++y) {
      uint8_t* const still = planes.still + y / kBlockEdge * planes.blocks_across;
      for (uint32_t x = 0; x < planes.width; x += kBlockEdge) {
        const size_t at = y * planes.pitch + x;
        for (uint32_t c = 0; c < planes.channels; ++c) {
          find_neighbours(planes.values[c], planes.pitch, x, y, rows[c]);
        }
        int32_t found[kBlockEdge];
        for (uint32_t k = 0; k < kBlockEdge; k += kInts) {
          Ints same[kTokenNeighbours], is[4];
          for (Ints& v : same) v = all(-1);
          for (Ints& v : is) v = all(-1);
          for (uint32_t c = 0; c < planes.channels; ++c) {
            const auto of = [&](TokenNeighbour n) { return load(rows[c].at[n] + k); };
            const Ints here = load(planes.values[c] + at + k);
            const Ints w = of(kTokenW), n = of(kTokenN), nw = of(kTokenNw), ne = of(kTokenNe);
            const Ints of_channel[kTokenNeighbours] = {w == n,
                                                       n == ne,
                                                       n == nw,
                                                       w == nw,
                                                       of(kTokenWw) == w,
                                                       of(kTokenNn) == n,
                                                       of(kTokenNne) == ne,
                                                       of(kTokenNww) == nw};
            for (uint32_t i = 0; i < kTokenNeighbours; ++i) same[i] &= of_channel[i];
            is[0] &= here == w;
            is[1] &= here == n;
            is[2] &= here == ne;
            is[3] &= here == nw;
          }
          Ints all_found = all(0);
          for (uint32_t i = 0; i < kTokenNeighbours; ++i) all_found |= same[i] & S::all_pairs(1 << i);
          Ints symbol = all(kMatchNone);
          if (planes.hole >= 0) symbol += load(planes.values[0] + at + k) == planes.hole ? all(1) : all(0);
          for (uint32_t i = 4; i-- > 0;) symbol = is[i] != 0 ? all(static_cast<int32_t>(i)) : symbol;
          const Ints stays = (same[2] & is[kMatchW]) | (~same[2] & is[kMatchN]);
          store(found + k, all_found | symbol << 8 | (stays & (1 << 16)));
        }
        const uint32_t columns = smaller(kBlockEdge, planes.width - x);
        int32_t stay = 1 << 16;
        for (uint32_t k = 0; k < columns; ++k) stay &= found[k];
        if (stay == 0) {
          still[x / kBlockEdge] = 0;
          planes.rows[y / kBlockEdge * planes.blocks_across + x / kBlockEdge] &=
              static_cast<uint16_t>(~(1u << y % kBlockEdge));
        }
        uint8_t equal[kBlockEdge], symbol[kBlockEdge];
        for (uint32_t k = 0; k < kBlockEdge; ++k) {
          equal[k] = static_cast<uint8_t>(found[k]);
          symbol[k] = static_cast<uint8_t>(found[k] >> 8);
        }
        __builtin_memcpy(planes.equalities + at, equal, columns);
        __builtin_memcpy(planes.symbols + at, symbol, columns);
      }
    }
    for (uint32_t b = 0; b < planes.block_count(); ++b) {
      if (planes.still[b] == 0 && !with_rows) continue;
      const uint32_t x = b % planes.blocks_across * kBlockEdge, y = b / planes.blocks_across * kBlockEdge;
      for (uint32_t r = y; r < smaller(y + kBlockEdge, planes.height); ++r) {
        if ((planes.rows[b] >> (r - y) & 1) == 0) continue;
        __builtin_memset(planes.symbols + r * planes.pitch + x, kNoSymbol, kBlockEdge);
      }
    }
  }

  // Predicts channel c with the classes of its blocks, and computes its errors.
  static void predict(const TokenPlanes& planes, uint32_t c, const TapWeights* weights, uint32_t depth) {
    const uint32_t cross = cross_channels(c);
    const int32_t maximum = (1 << depth) - 1;
    TokenRow own, errors, other[2];
    for (uint32_t y = 0; y < planes.height; ++y) {
      int32_t* const error = planes.errors[c] + y * planes.pitch;
      const int32_t corner = y > 0 ? error[-static_cast<ptrdiff_t>(planes.pitch)] : 0;
      for (uint32_t x = 0; x < planes.width; x += kBlockEdge) {
        const size_t at = y * planes.pitch + x;
        if (!any_escapes(planes.symbols + at)) {
          __builtin_memset(error + x, 0, 4 * kBlockEdge);
          continue;
        }
        const int8_t* const of = weights[planes.classes[c][y / kBlockEdge * planes.blocks_across + x / kBlockEdge]].of;
        find_values(planes, c, x, y, own);
        find_neighbours(planes.errors[c], planes.pitch, x, y, errors);
        for (uint32_t i = 0; i < cross; ++i) find_neighbours(planes.values[c - 1 - i], planes.pitch, x, y, other[i]);
        int32_t sum[kBlockEdge], least[kBlockEdge], most[kBlockEdge], escapes[kBlockEdge];
        for (uint32_t k = 0; k < kBlockEdge; k += kInts) {
          Ints total = all(1 << kWeightShift >> 1);
          for (uint32_t i = 0; i < kTokenNeighbours; ++i) total += int32_t{of[i]} * load(own.at[i] + k);
          // The errors at W and WW lie in this row and are not known yet; the loop below adds them.
          if (y > 0) {
            for (const uint32_t i : {kTokenN, kTokenNw, kTokenNe, kTokenNn}) {
              total += int32_t{of[8 + i]} * load(errors.at[i] + k);
            }
          }
          for (uint32_t i = 0; i < cross; ++i) {
            const int8_t* const of_other = of + (kCrossWord + i) * kTapsOfWord;
            total += int32_t{of[14 + i]} * load(planes.errors[c - 1 - i] + at + k);
            total += int32_t{of_other[0]} * load(other[i].at[kTokenW] + k);
            total += int32_t{of_other[1]} * load(other[i].at[kTokenN] + k);
            total += int32_t{of_other[2]} * load(other[i].at[kTokenNw] + k);
            total += int32_t{of_other[3]} * load(planes.values[c - 1 - i] + at + k);
          }
          store(sum + k, total);
          // Predictions outside these bounds give errors that saturate.
          const Ints value = load(planes.values[c] + at + k);
          store(least + k, larger(value - kMaxTokenError, all(0)));
          store(most + k, lesser(value + kMaxTokenError, all(maximum)));
        }
        for (uint32_t k = 0; k < kBlockEdge; ++k) escapes[k] = planes.symbols[at + k] == kMatchNone ? -1 : 0;
        const int32_t of_ww = of[12];
        const int32_t of_w = y == 0 ? of[8] + of[9] + of[10] + of[11] + of[13] : of[8];  // N and the others are W there
        int32_t e_w = x == 0 ? corner : error[x - 1], e_ww = x == 0 ? corner : error[x - 2];
        const int32_t* const value = planes.values[c] + at;
        for (uint32_t k = 0; k < kBlockEdge; ++k) {
          const int32_t total = sum[k] + of_ww * e_ww + of_w * e_w;
          sum[k] = total;
          int32_t p = total >> kWeightShift;
          p = p < least[k] ? least[k] : p;
          p = p > most[k] ? most[k] : p;
          e_ww = e_w;
          e_w = (value[k] - p) & escapes[k];
          error[x + k] = e_w;
        }
        for (uint32_t k = 0; k < kBlockEdge; k += kInts) {
          const Ints total = load(sum + k), p = between(total >> kWeightShift, 0, maximum);
          const Ints up = total - (p << kWeightShift) >= (1 << kWeightShift >> 1);
          store(planes.predicted[c] + at + k, (p << 1) - up);
        }
      }
      fill_margins(error, planes.width, planes.pitch);
    }
  }

  // The terms of the activity of 16 samples.
  struct Terms {
    TokenRow own, errors;
    int32_t of[kActivityTerms][kBlockEdge];
  };
  L3_INLINE static void read_terms(const TokenPlanes& planes, uint32_t c, uint32_t x, uint32_t y, Terms& terms) {
    constexpr TokenNeighbour kOrder[] = {kTokenW, kTokenN, kTokenNw, kTokenNe, kTokenWw, kTokenNn};
    find_values(planes, c, x, y, terms.own);
    find_neighbours(planes.errors[c], planes.pitch, x, y, terms.errors);
    for (uint32_t k = 0; k < kBlockEdge; k += kInts) {
      const auto put = [&](uint32_t i, const Ints& v) { store(terms.of[i] + k, magnitude(v)); };
      for (uint32_t i = 0; i < 6; ++i) put(i, load(terms.errors.at[kOrder[i]] + k));
      const auto slope = [&](uint32_t i, TokenNeighbour a, TokenNeighbour b) {
        put(i, between(load(terms.own.at[a] + k) - load(terms.own.at[b] + k), -kMaxTokenError, kMaxTokenError));
      };
      slope(6, kTokenW, kTokenNw);
      slope(7, kTokenN, kTokenNw);
      slope(8, kTokenN, kTokenNe);
      for (uint32_t i = 0; i < cross_channels(c); ++i) {
        put(9 + i, load(planes.errors[c - 1 - i] + y * planes.pitch + x + k));
      }
    }
  }

  // The levels of the activities of samples k and after.
  L3_INLINE static Ints levels(const Terms& terms, const uint8_t* activity, uint32_t count, uint32_t k) {
    Ints sum = all(kActivityFloor);
    for (uint32_t i = 0; i < count; ++i) sum += int32_t{activity[i]} * load(terms.of[i] + k);
    return (float_bits(lesser(sum, all(kMaxActivity))) >> 21) - (130 << 2);
  }

  // Finds the octave of the activity of each pixel that has a symbol, row by row without margins.
  static void read_octaves(const TokenPlanes& planes, const uint8_t* activity, uint8_t* octaves) {
    Terms terms;
    for (uint32_t y = 0; y < planes.height; ++y) {
      for (uint32_t x = 0; x < planes.width; x += kBlockEdge) {
        if (planes.still[y / kBlockEdge * planes.blocks_across + x / kBlockEdge] != 0) continue;
        read_terms(planes, 0, x, y, terms);
        int32_t of[kBlockEdge];
        for (uint32_t k = 0; k < kBlockEdge; k += kInts) store(of + k, levels(terms, activity, 9, k) >> 2);
        uint8_t* const to = octaves + size_t{y} * planes.width + x;
        for (uint32_t k = 0; k < smaller(kBlockEdge, planes.width - x); ++k) to[k] = static_cast<uint8_t>(of[k]);
      }
    }
  }

  // Finds the number and the context of each sample that is coded by tokens, row by row without margins.
  static void read_symbols(const TokenPlanes& planes, uint32_t c, const uint8_t* activity, uint32_t depth,
                           TokenPlace* places) {
    const uint32_t count = 9 + cross_channels(c);
    const int32_t maximum = (1 << depth) - 1, half = 1 << depth >> 1;
    Terms terms;
    for (uint32_t y = 0; y < planes.height; ++y) {
      for (uint32_t x = 0; x < planes.width; x += kBlockEdge) {
        const size_t at = y * planes.pitch + x;
        if (!any_escapes(planes.symbols + at)) continue;
        read_terms(planes, c, x, y, terms);
        int32_t numbers[kBlockEdge], contexts[kBlockEdge];
        for (uint32_t k = 0; k < kBlockEdge; k += kInts) {
          const Ints predicted = load(planes.predicted[c] + at + k);
          const Ints p = predicted >> 1, up = -(predicted & 1);
          // The number of bits of a distance, from the exponent of a float.
          const Ints distance = up != 0 ? maximum - p : p;
          const Ints zone = between((float_bits(distance) >> 23) - 126, 0, 15);
          Ints pattern = up & 63;
          for (uint32_t i = 0; i < 4; ++i) pattern ^= (load(terms.errors.at[i] + k) >> 31) & S::all_pairs(1 << i);
          for (uint32_t i = 0; i < 2; ++i) pattern ^= (load(terms.own.at[i] + k) >= p) & (16 << i);
          store(contexts + k, levels(terms, activity, count, k) | zone << 8 | pattern << 16);
          const Ints difference = load(planes.values[c] + at + k) - p;
          // Odd numbers go in the direction in which the prediction leans.
          const Ints d = (up != 0 ? difference : -difference) & maximum;
          const Ints folded = d > half ? d - (maximum + 1) : d;
          store(numbers + k, folded > 0 ? 2 * folded - 1 : -2 * folded);
        }
        TokenPlace* const to = places + size_t{y} * planes.width + x;
        for (uint32_t k = 0; k < smaller(kBlockEdge, planes.width - x); ++k) {
          to[k] = {static_cast<uint16_t>(numbers[k]), static_cast<uint8_t>(contexts[k]),
                   static_cast<uint8_t>(contexts[k] >> 8), static_cast<uint8_t>(contexts[k] >> 16)};
        }
      }
    }
  }
};

}  // namespace l3
