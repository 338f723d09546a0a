// Words in SSE registers: eight parts of four lanes. Compiled for any x86-64 processor, and for those
// with SSE4.2 and SSSE3 (x86-64-v2).
#pragma once

#include <immintrin.h>

#include "engine/word_warp.h"

namespace l3 {

// `Self` is the derived warp. Each way of compiling needs another one.
template <class Self>
struct SseWordWarp : WordWarp<Self, 16> {
  using Base = WordWarp<Self, 16>;
  using Base::kPartLanes, Base::splat, Base::store;
  using typename Base::Lanes, typename Base::Mask, typename Base::Vector;

  L3_INLINE static __m128i native(Lanes a) { return (__m128i)a.v; }
  L3_INLINE static Lanes lanes(__m128i v) { return {(Vector)v}; }

#if defined(__SSE4_1__)
  L3_INLINE static Mask less(Lanes a, uint32_t b) {
    return lanes(_mm_cmpeq_epi32(_mm_min_epu32(native(a), native(splat(b - 1))), native(a)));
  }
  L3_INLINE static Mask at_least(Lanes a, uint32_t b) {
    return lanes(_mm_cmpeq_epi32(_mm_max_epu32(native(a), native(splat(b))), native(a)));
  }
  L3_INLINE static Lanes select(Mask mask, Lanes a, Lanes b) {
    return lanes(_mm_blendv_epi8(native(b), native(a), native(mask)));
  }
#endif
  L3_INLINE static Mask less_small(Lanes a, Lanes b) { return lanes(_mm_cmpgt_epi32(native(b), native(a))); }
  L3_INLINE static Mask below_floor(Lanes state) {
    return lanes(_mm_cmpeq_epi32(_mm_srli_epi32(native(state), 16), _mm_setzero_si128()));
  }
  L3_INLINE static uint32_t bits(Mask mask) {
    return static_cast<uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(native(mask))));
  }

#if defined(__SSE4_1__)
  L3_INLINE static void refill(Lanes& state, Mask mask, const uint8_t* payload, uint32_t& at) {
    const uint32_t set = bits(mask);
    const __m128i words = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(payload + at));
    const __m128i order = _mm_load_si128(reinterpret_cast<const __m128i*>(kExpandFour.order[set]));
    const __m128i next = _mm_or_si128(_mm_slli_epi32(native(state), 16), _mm_shuffle_epi8(words, order));
    state = select(mask, lanes(next), state);
    at += 2 * static_cast<uint32_t>(__builtin_popcount(set));
  }
#else
  L3_INLINE static void refill(Lanes& state, Mask mask, const uint8_t* payload, uint32_t& at) {
    const uint32_t set = bits(mask);
    const uint8_t* const order = kExpandFour.order[set];
    typename VectorTypes<16>::U16 words{};
    for (uint32_t lane = 0; lane < kPartLanes; ++lane)
      words[2 * lane] = static_cast<uint16_t>(load_u16(payload + at + (order[4 * lane] & 7)));
    const __m128i next = _mm_or_si128(_mm_slli_epi32(native(state), 16), (__m128i)words);
    state = Base::select(mask, lanes(next), state);
    at += 2u * kExpandFour.count[set];
  }
#endif

  using Base::transpose;
  L3_INLINE static void transpose(const uint32_t* from, size_t from_row, uint32_t* to, size_t to_row) {
    for (size_t i = 0; i < 8; i += 4) {
      for (size_t k = 0; k < 8; k += 4) {
        __m128 r[4];
        for (size_t j = 0; j < 4; ++j)
          r[j] = _mm_loadu_ps(reinterpret_cast<const float*>(from + (i + j) * from_row + k));
        _MM_TRANSPOSE4_PS(r[0], r[1], r[2], r[3]);
        for (size_t j = 0; j < 4; ++j) _mm_storeu_ps(reinterpret_cast<float*>(to + (k + j) * to_row + i), r[j]);
      }
    }
  }
#if defined(__SSSE3__)
  // Stores four pixels at a time. Where 16 bytes fit, what is stored too much is overwritten by the next pixels.
  template <uint32_t kChannels>
  L3_INLINE static void store_pixels(uint8_t* to, const uint32_t* pixels, uint32_t count) {
    uint32_t i = 0;
    if constexpr (kChannels == 3) {
      const __m128i order = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
      for (; i + 6 <= count; i += 4) {
        const __m128i four = _mm_loadu_si128(reinterpret_cast<const __m128i*>(pixels + i));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to + size_t{i} * 3), _mm_shuffle_epi8(four, order));
      }
    } else if constexpr (kChannels == 1) {
      const __m128i order = _mm_set1_epi32(0x0C080400);
      for (; i + 4 <= count; i += 4) {
        const __m128i four = _mm_loadu_si128(reinterpret_cast<const __m128i*>(pixels + i));
        const int32_t packed = _mm_cvtsi128_si32(_mm_shuffle_epi8(four, order));
        std::memcpy(to + i, &packed, 4);
      }
    }
    Base::template store_pixels<kChannels>(to + size_t{i} * kChannels, pixels + i, count - i);
  }
#endif

  L3_INLINE static __m128i two_buckets(const Bucket* a, const Bucket* b) {
    const __m128 low = _mm_castsi128_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(a)));
    return _mm_castps_si128(_mm_loadh_pi(low, reinterpret_cast<const __m64*>(b)));
  }
  L3_INLINE static void unzip(__m128i low, __m128i high, Lanes& own, Lanes& other) {
    const __m128 a = _mm_castsi128_ps(low), b = _mm_castsi128_ps(high);
    own = lanes(_mm_castps_si128(_mm_shuffle_ps(a, b, 0x88)));
    other = lanes(_mm_castps_si128(_mm_shuffle_ps(a, b, 0xDD)));
  }
};

}  // namespace l3
