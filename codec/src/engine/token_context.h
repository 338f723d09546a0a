// The prediction of one pixel of a token tile, and the table of its token (section 15.2 of the spec), in numbers.
// Vectors hold the neighbours of this pixel: those above lie side by side.
#pragma once

#include "engine/short_vectors.h"
#include "engine/token_taps.h"

namespace l3 {

// Numbers around a pixel, values or errors: four of the row above from NWW on, two of the row above that, WW and W.
struct TokenNear {
  using Short = ShortVectors<16>;
  Short::Shorts v;

  L3_INLINE TokenNear(const uint16_t* above, const uint16_t* above_two, uint32_t ww, uint32_t w) {
    uint64_t four;
    uint32_t two;
    std::memcpy(&four, above - 2, sizeof(four));
    std::memcpy(&two, above_two, sizeof(two));
    set(four, two, ww, w);
  }
  // In the first row, where W takes the place of all above.
  L3_INLINE TokenNear(uint32_t ww, uint32_t w) { set(w * uint64_t{0x0001000100010001}, w * 0x00010001u, ww, w); }

  // With another number in place of the hole.
  L3_INLINE TokenNear without(uint32_t hole, uint32_t held_value) const {
    TokenNear result = *this;
    const auto is_hole = (Short::Shorts)(v == Short::all(static_cast<int16_t>(hole)));
    result.v = (v & ~is_hole) | (Short::all(static_cast<int16_t>(held_value)) & is_hole);
    return result;
  }

 private:
  L3_INLINE void set(uint64_t four, uint32_t two, uint32_t ww, uint32_t w) {
    constexpr bool kLittle = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    const uint32_t own = kLittle ? ww | w << 16 : ww << 16 | w;
    const uint64_t others = kLittle ? two | uint64_t{own} << 32 : uint64_t{two} << 32 | own;
    v = (Short::Shorts) typename VectorTypes<16>::U64{four, others};
  }
};

class TokenContext {
 public:
  explicit TokenContext(const TokenTables& tables) : tables_(tables), most_((1u << tables.depth[0]) - 1) {
    if (tables.literal) return;  // no predictions
    // In the order of TokenNear: the taps of values and of errors, and the terms of activities.
    constexpr uint32_t kNone = UINT32_MAX;
    constexpr uint32_t kTaps[2][8] = {{7, 2, 1, 3, 5, 6, 4, 0}, {kNone, 10, 9, 11, 13, kNone, 12, 8}};
    constexpr uint32_t kTerms[8] = {kNone, 2, 1, 3, 5, kNone, 4, 0};
    const auto byte = [](const uint32_t* words, uint32_t i) { return words[i / 4] >> (8 * (i % 4)) & 0xFF; };
    for (uint32_t i = 0; i < 8; ++i) {
      for (uint32_t k = 0; k < 2 * tables.classes[0]; ++k) {
        const uint32_t tap = kTaps[k % 2][i], weight = tap == kNone ? 0 : byte(tables.weights[0][k / 2], tap);
        weights_[k / 2][k % 2][i] = static_cast<int8_t>(weight);
      }
      activity_[i] = static_cast<int16_t>(kTerms[i] == kNone ? 0 : byte(tables.activity[0], kTerms[i]));
    }
    for (uint32_t i = 0; i < 3; ++i) gradients_[i] = byte(tables.activity[0], 8 + i);
  }

  // All values have the bias.
  L3_INLINE uint32_t activity(const TokenNear& errors, uint32_t w, uint32_t n, uint32_t nw, uint32_t ne) const {
    const auto distance = [](uint32_t a, uint32_t b) __attribute__((always_inline)) {
      const int32_t difference = static_cast<int16_t>(a) - static_cast<int16_t>(b);
      return smaller(static_cast<uint32_t>(difference < 0 ? -difference : difference), 32767);
    };
    const uint32_t of_errors = total(Short::multiply_pairs(Short::magnitude(errors.v), load(activity_)));
    return smaller(kActivityFloor + of_errors + gradients_[0] * distance(w, nw) + gradients_[1] * distance(n, nw) +
                       gradients_[2] * distance(n, ne),
                   kMaxActivity);
  }
  // 3 for the least activity.
  L3_INLINE static uint32_t exponent(uint32_t activity) { return 31 - static_cast<uint32_t>(__builtin_clz(activity)); }

  struct Prediction {
    uint32_t p, up;  // up: all bits if the prediction leans upwards
    uint32_t table;
  };
  // `near`: the errors of W, N, NW and NE.
  L3_INLINE Prediction predict(uint32_t k, const TokenNear& values, const TokenNear& errors, uint32_t activity,
                               uint32_t w, uint32_t n, const int32_t (&near)[4]) const {
    const auto sums =
        Short::multiply_pairs(values.v, load(weights_[k][0])) + Short::multiply_pairs(errors.v, load(weights_[k][1]));
    // Corrects the bias of the values, whose weights add up to 1 in 64ths, and adds one half for rounding.
    constexpr uint32_t kOffset = (kValueBias << kWeightShift) + (1u << kWeightShift >> 1);
    const int32_t sum = static_cast<int32_t>(total(sums) + kOffset);
    const int32_t limit = static_cast<int32_t>(most_ << kWeightShift | ((1u << kWeightShift) - 1));
    const uint32_t within = static_cast<uint32_t>(sum < 0 ? 0 : sum > limit ? limit : sum);
    const uint32_t p = within >> kWeightShift, up = 0u - (within >> (kWeightShift - 1) & 1);
    const uint32_t o = exponent(activity);
    uint32_t context = (activity >> (o - 2)) + 4 * o - 16;
    if (tables_.grouped[0]) {
      const uint32_t d = (p ^ up) & most_;
      const uint32_t zone = smaller(d == 0 ? 0 : exponent(d) + 1, kZones - 1);
      uint32_t pattern = uint32_t{(w ^ kValueBias) >= p} | uint32_t{(n ^ kValueBias) >= p} << 1;
      for (uint32_t i = 0; i < 4; ++i) pattern |= static_cast<uint32_t>(near[i]) >> 31 << (2 + i);
      pattern = (pattern ^ up) & (kSignPatterns - 1);
      context += (tables_.zone_row[0][zone] + tables_.pattern_row[0][pattern]) * kTokenLevels;
    }
    return {p, up, tables_.table_of[0][context]};
  }
  // The value without the bias. Odd numbers go in the direction in which the prediction leans.
  L3_INLINE uint32_t value_of(const Prediction& by, uint32_t number) const {
    const uint32_t difference = number >> 1 ^ (0u - (number & 1)) ^ by.up;
    return (by.p + difference - by.up) & most_;
  }
  L3_INLINE static int32_t error_of(const Prediction& by, uint32_t value) {
    const int32_t error = static_cast<int32_t>(value - by.p);
    return error < -kMaxTokenError ? -kMaxTokenError : error > kMaxTokenError ? kMaxTokenError : error;
  }

 private:
  using Short = TokenNear::Short;
  L3_INLINE static Short::Sums load(const int16_t* weights) { return (Short::Sums)Short::load(weights); }
  L3_INLINE static uint32_t total(const Short::Sums& sums) {
    const auto half = sums + __builtin_shufflevector(sums, sums, 2, 3, 0, 1);
    return static_cast<uint32_t>(half[0]) + static_cast<uint32_t>(half[1]);
  }

  const TokenTables& tables_;
  const uint32_t most_;
  alignas(16) int16_t weights_[kMaxClasses][2][8];  // of values and of errors, by class
  alignas(16) int16_t activity_[8];
  uint32_t gradients_[3];
};

}  // namespace l3
