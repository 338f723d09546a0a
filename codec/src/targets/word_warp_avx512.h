// The warp of token models in AVX-512 registers: two parts of 16 lanes.
#pragma once

#include <immintrin.h>

#include "targets/word_warp_avx2.h"

namespace l3 {

// Tiles of at most this many pixels are decoded with AVX2: most lanes of wide vectors would wait most of the time.
constexpr uint32_t kSmallTile = 32 * 32;

struct Avx512WordWarp : Avx2Pixels<Avx512WordWarp, 64> {
  using Mask = __mmask16;
  L3_INLINE static __m512i native(Lanes a) { return (__m512i)a.v; }
  L3_INLINE static Lanes lanes(__m512i v) { return {(Vector)v}; }

  template <int32_t kMin, int32_t kMax>
  L3_INLINE static Lanes clamp(Lanes a) {
    return lanes(_mm512_min_epi32(_mm512_max_epi32(native(a), _mm512_set1_epi32(kMin)), _mm512_set1_epi32(kMax)));
  }

  L3_INLINE static Mask less(Lanes a, uint32_t b) { return less_small(a, splat(b)); }
  L3_INLINE static Mask less_small(Lanes a, Lanes b) { return _mm512_cmplt_epu32_mask(native(a), native(b)); }
  L3_INLINE static Mask below_floor(Lanes state) { return less(state, kStateFloor); }
  L3_INLINE static Mask at_least(Lanes a, uint32_t b) { return _mm512_cmpge_epu32_mask(native(a), native(splat(b))); }
  L3_INLINE static Mask equal(Lanes a, uint32_t b) { return _mm512_cmpeq_epi32_mask(native(a), native(splat(b))); }
  L3_INLINE static Mask both(Mask a, Mask b) { return static_cast<Mask>(a & b); }
  L3_INLINE static Mask either(Mask a, Mask b) { return static_cast<Mask>(a | b); }
  L3_INLINE static Mask and_not(Mask a, Mask b) { return static_cast<Mask>(a & ~b); }
  L3_INLINE static Lanes select(Mask mask, Lanes a, Lanes b) {
    return lanes(_mm512_mask_blend_epi32(mask, native(b), native(a)));
  }
  L3_INLINE static uint32_t bits(Mask mask) { return mask; }

  L3_INLINE static Lanes lower_halves(Lanes a, Lanes b) {
    return lanes(_mm512_mask_mov_epi16(native(a), 0xAAAAAAAA, native(b << 16)));
  }
  L3_INLINE static Lanes upper_halves(Lanes a, Lanes b) {
    return lanes(_mm512_mask_mov_epi16(native(b), 0x55555555, native(a >> 16)));
  }
  template <uint32_t kByte>
  L3_INLINE static Lanes byte_of(Lanes word) {
    return shuffle<0x80808000 + kByte>(word);
  }
  L3_INLINE static Lanes shift_up(Lanes a, Lanes before) {
    return lanes(_mm512_alignr_epi32(native(a), native(before), 15));
  }

  // Loads one by one, as with AVX2.
  L3_INLINE static Indices<4> each(Lanes a) {
    return Indices<4>(_mm512_castsi512_si128(native(a)), _mm512_extracti32x4_epi32(native(a), 1),
                      _mm512_extracti32x4_epi32(native(a), 2), _mm512_extracti32x4_epi32(native(a), 3));
  }
  template <uint32_t kBuckets, class TableOf>
  L3_INLINE static void look_up_in(const TableOf& table_of, const Bucket* buckets, Lanes bucket, Lanes& own,
                                   Lanes& other) {
    const Indices<4> in_table = each(bucket);
    const auto place = [&](uint32_t i) { return buckets + table_of(i) * kBuckets + in_table[i]; };
    const auto two = [&](uint32_t i) { return two_buckets(place(i), place(i + 1)); };
    const auto four = [&](uint32_t i) {
      return _mm256_inserti128_si256(_mm256_castsi128_si256(two(i)), two(i + 4), 1);
    };
    const __m512 low = (__m512)_mm512_inserti64x4(_mm512_castsi256_si512(four(0)), four(8), 1);
    const __m512 high = (__m512)_mm512_inserti64x4(_mm512_castsi256_si512(four(2)), four(10), 1);
    own = lanes((__m512i)_mm512_shuffle_ps(low, high, 0x88));
    other = lanes((__m512i)_mm512_shuffle_ps(low, high, 0xDD));
  }
  template <class Tables>
  L3_INLINE static Lanes row(const Tables& tables, uint32_t channel, Lanes zone, Lanes pattern) {
    // Tables of 16 and 64 bytes fit registers. The table of patterns is widened to words, so that an index takes 16
    // bits of its lane.
    const __m512i of_zone =
        _mm512_cvtepu8_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(tables.zone_row[channel])));
    const __m256i* patterns = reinterpret_cast<const __m256i*>(tables.pattern_row[channel]);
    const __m512i low = _mm512_cvtepu8_epi16(_mm256_load_si256(patterns));
    const __m512i high = _mm512_cvtepu8_epi16(_mm256_load_si256(patterns + 1));
    const Lanes of_pattern = lanes(_mm512_permutex2var_epi16(low, native(pattern), high)) & constant<0xFF>;
    return lanes(_mm512_permutexvar_epi32(native(zone), of_zone)) + of_pattern;
  }

  L3_INLINE static void refill(Lanes& state, Mask mask, const uint8_t* bytes, uint32_t& at) {
    const __m512i words = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes + at)));
    const __m512i taken = _mm512_maskz_expand_epi32(mask, words);
    state = lanes(_mm512_mask_or_epi32(native(state), mask, _mm512_slli_epi32(native(state), 16), taken));
    at += 2 * static_cast<uint32_t>(__builtin_popcount(mask));
  }

 private:
  // Like Avx2WordWarp::shuffle.
  template <uint32_t kOrder>
  L3_INLINE static Lanes shuffle(Lanes a) {
    return lanes(_mm512_shuffle_epi8(
        native(a), _mm512_set4_epi32(static_cast<int>(kOrder + 0x0C0C0C0C), static_cast<int>(kOrder + 0x08080808),
                                     static_cast<int>(kOrder + 0x04040404), static_cast<int>(kOrder))));
  }
};

}  // namespace l3
