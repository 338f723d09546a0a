// The 32-bit check of section 2.1, computed by the 32 lanes of a warp.
#pragma once

#include "container/format.h"

namespace l3 {

constexpr uint32_t kCheckMix = 0x9E3779B1u;
constexpr uint32_t kCheckSpread = 0x85EBCA77u;

// The check of `words` u32 at `bytes`, which need no alignment.
template <class W>
L3_INLINE uint32_t check_of(const uint8_t* bytes, uint64_t words) {
  using Words = typename W::Words;
  Words state = W::word_lane_numbers() * kCheckSpread;
  uint64_t i = 0;
  for (; i + kLanes <= words; i += kLanes) {
    state = W::rotate_left_15(state ^ W::load_words(bytes + 4 * i)) * kCheckMix;
  }
  if (i < words) {
    const uint32_t rest = static_cast<uint32_t>(words - i);
    const Words next = W::rotate_left_15(state ^ W::load_words_part(bytes + 4 * i, rest)) * kCheckMix;
    state = W::first_words(rest, next, state);
  }
  state = state ^ (state >> 15);
  state = state * kCheckSpread;
  state = state ^ (state >> 13);
  return static_cast<uint32_t>(words) * kCheckMix + W::sum_words(state);
}

}  // namespace l3
