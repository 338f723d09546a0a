// What AVX-512 adds to words in AVX2 registers. Compiled for Cascade Lake and later.
#pragma once

#include "targets/word_warp_avx2.h"

namespace l3 {

// As WordWarp::refill().
template <class Lanes>
L3_INLINE void refill_by_expanding(Lanes& state, const Lanes& mask, const uint8_t* payload, uint32_t& at) {
  const __mmask8 set = _mm256_movepi32_mask((__m256i)mask.v);
  const __m256i words = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(payload + at)));
  const __m256i taken = _mm256_maskz_expand_epi32(set, words);
  const __m256i moved = _mm256_slli_epi32((__m256i)state.v, 16);
  state.v = (decltype(state.v))_mm256_mask_or_epi32((__m256i)state.v, set, moved, taken);
  at += 2 * static_cast<uint32_t>(__builtin_popcount(set));
}

}  // namespace l3
