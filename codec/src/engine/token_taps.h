// The weights of token models in pairs, as warps multiply them (section 15 of the spec).
#pragma once

#include "models/token.h"

namespace l3 {

// The variants of the decoder, each compiled separately.
enum class TokenUse { literal, plain, holes };

// The taps of a prediction in pairs, as they are multiplied: W N, NW NE, WW NN, NNE NWW; the errors at W N, NW NE, WW
// NN; the errors of the two channels before; then for each of those channels W N, and NW with the sample.
constexpr uint32_t kTapPairs = 12;
constexpr uint32_t kErrorPair = 4, kCrossErrorPair = 7, kCrossPair = 8;
L3_INLINE constexpr uint32_t tap_pairs(uint32_t channel) {
  return channel == 0 ? kCrossErrorPair : kCrossPair + 2 * cross_channels(channel);
}

L3_INLINE uint32_t pair_of(int32_t low, int32_t high) {
  return (static_cast<uint32_t>(low) & 0xFFFF) | static_cast<uint32_t>(high) << 16;
}
// The weights of a pair of taps.
L3_INLINE uint32_t tap_pair(const uint32_t* words, uint32_t pair) {
  const auto of = [&](uint32_t tap) {
    return static_cast<int8_t>(words[tap / kTapsOfWord] >> (8 * (tap % kTapsOfWord)));
  };
  return pair_of(of(2 * pair), of(2 * pair + 1));
}
// The weights of a pair of activity terms: errors at W N, NW NE, WW NN, errors of the channels before, then gradients.
constexpr uint32_t kActivityPairs = 6;
L3_INLINE uint32_t activity_pair(const uint32_t* words, uint32_t pair) {
  const auto of = [&](uint32_t word, uint32_t byte) { return static_cast<int32_t>(words[word] >> (8 * byte) & 0xFF); };
  return pair < 4 ? pair_of(of(pair / 2, pair % 2 * 2), of(pair / 2, pair % 2 * 2 + 1))
                  : pair_of(of(2, pair % 2 * 2), of(2, pair % 2 * 2 + 1));
}

}  // namespace l3
