// Constants and small rules of the dense method (sections 12 and 13 of the spec), for processors and GPUs alike.
#pragma once

#include "container/format.h"

namespace l3 {

constexpr uint32_t kBlockEdge = 16;  // edge of the blocks that have a class, which selects their predictor
constexpr uint32_t kMaxLogLanes = 5;
constexpr uint32_t kMaxPixelsOfLane = 1u << 15;
constexpr uint32_t kMaxClasses = 32;
constexpr uint32_t kMaxTables = 24;
constexpr uint32_t kMaxSymbols = 256;
constexpr uint32_t kProbabilityBits = 12;
constexpr uint32_t kProbabilities = 1u << kProbabilityBits;
constexpr uint32_t kStateFloor = 1u << 16;
constexpr uint32_t kLevels = 64;
constexpr int32_t kMinError = -128, kMaxError = 127;  // errors saturate at these
constexpr uint32_t kWeightShift = 6;                  // weights of a prediction are in units of 1/64

// Taps of a prediction, four to a word: the channel's own neighbours in two words, errors in two words, then one word
// for each of the one or two earlier channels.
constexpr uint32_t kTapsOfWord = 4;
constexpr uint32_t kMaxTapWords = 6;
constexpr uint32_t kErrorWord = 2;
constexpr uint32_t kCrossWord = 4;
constexpr uint32_t kMaxTaps = kMaxTapWords * kTapsOfWord;

// The taps of errors, and the tap of the same sample.
constexpr uint32_t kFirstErrorTap = kErrorWord * kTapsOfWord, kErrorTaps = 8;
L3_INLINE constexpr uint32_t tap_of_same_sample(uint32_t error_tap) {
  return error_tap < 14 ? error_tap - kFirstErrorTap : (error_tap - 14) * kTapsOfWord + 19;
}

// How many earlier channels a channel's predictions use, and how many words of taps it has.
L3_INLINE constexpr uint32_t cross_channels(uint32_t channel) { return smaller(channel, 2); }
L3_INLINE constexpr uint32_t tap_words(uint32_t channel) { return kCrossWord + cross_channels(channel); }

// The predictor of a class: a weight for each tap.
struct TapWeights {
  int8_t of[kMaxTaps];
};

// The terms of an activity (section 13.4).
constexpr uint32_t kActivityWords = 3;
constexpr uint32_t kActivityTerms = 11;
constexpr uint32_t kActivityFloor = 8;

// A compile-time constant. Each kind of warp has its own way of broadcasting it to all lanes.
template <uint32_t kValue>
struct Constant {};
template <uint32_t kValue>
inline constexpr Constant<kValue> constant{};

// The ending of a tile (section 13.6): pixels at or after this row and column, where lanes take no words.
struct Ending {
  uint32_t row, column;
  L3_INLINE bool has(uint32_t x, uint32_t y) const { return y >= row && x >= column; }
};
constexpr uint32_t kMaxEnding = 30, kLongestRowEnding = 20;
L3_INLINE constexpr uint32_t dense_lanes(uint32_t parameters) { return 1u << (parameters & 7); }
L3_INLINE constexpr uint32_t dense_ending(uint32_t parameters) { return parameters >> 3; }
L3_INLINE constexpr Ending ending_of(uint32_t parameters, uint32_t width, uint32_t height) {
  const uint32_t t = dense_ending(parameters);
  if (t == 0) return {height, width};
  const uint32_t columns = t <= kLongestRowEnding ? ((2 + t % 2) << (t / 2)) / 2 : 1024;
  const uint32_t rows = dense_lanes(parameters) << (t <= kLongestRowEnding ? 0 : t - kLongestRowEnding);
  return {rows < height ? height - rows : 0, columns < width ? width - columns : 0};
}

// The number of blocks of a tile.
L3_INLINE constexpr uint32_t block_count(uint32_t width, uint32_t height) {
  return ceil_div(width, kBlockEdge) * ceil_div(height, kBlockEdge);
}

// Each lane is two steps after the lane above it. A lane needs dense_period() steps from one of its rows to its next
// one, which is `lanes` rows below: at least the width, and enough for lane 0 to stay two steps after the last lane.
// dense_steps() steps decode a tile.
L3_INLINE constexpr uint32_t dense_period(uint32_t width, uint32_t lanes) {
  return width > 2 * lanes ? width : 2 * lanes;
}
L3_INLINE constexpr uint32_t dense_steps(uint32_t width, uint32_t height, uint32_t lanes) {
  return (height - 1) / lanes * dense_period(width, lanes) + width + 2 * ((height - 1) % lanes);
}
// How many steps the pixels of the last lane must be kept until lane 0, one row below, needs them.
L3_INLINE constexpr uint32_t dense_delay(uint32_t width, uint32_t lanes) {
  return dense_period(width, lanes) - 2 * lanes + 1;
}

}  // namespace l3
