// Rows of 16-bit numbers in native vectors, for the arithmetic of the dense method's encoder.
#pragma once

#include "engine/vectors.h"

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__) && defined(__ARM_NEON)
#include <arm_neon.h>
#endif

namespace l3 {

template <size_t kBytes>
struct ShortVectors {
  using Shorts = typename VectorTypes<kBytes>::I16;
  using Sums = typename VectorTypes<kBytes>::I32;
  using Floats = typename VectorTypes<kBytes>::F32;
  static constexpr uint32_t kShorts = kBytes / 2;
  static constexpr uint32_t kSums = kBytes / 4;
  // Vectors of at most 16 numbers.
  using Narrow = ShortVectors<(kBytes < 32 ? kBytes : 32)>;

  L3_INLINE static Shorts load(const int16_t* from) {
    Shorts v;
    __builtin_memcpy(&v, from, kBytes);
    return v;
  }
  L3_INLINE static void store(int16_t* to, const Shorts& v) { __builtin_memcpy(to, &v, kBytes); }
  L3_INLINE static Shorts all(int16_t v) { return Shorts{} + v; }

  L3_INLINE static Shorts larger(const Shorts& a, const Shorts& b) { return a > b ? a : b; }
  L3_INLINE static Shorts lesser(const Shorts& a, const Shorts& b) { return a < b ? a : b; }
  L3_INLINE static Shorts magnitude(const Shorts& a) { return larger(a, -a); }
  L3_INLINE static Shorts between(const Shorts& v, int16_t minimum, int16_t maximum) {
    return lesser(larger(v, all(minimum)), all(maximum));
  }

  // Whether any bit is set.
  L3_INLINE static bool any(const Shorts& v) {
    uint64_t words[kBytes / 8], all = 0;
    __builtin_memcpy(words, &v, kBytes);
    for (const uint64_t word : words) all |= word;
    return all != 0;
  }

  // The numbers of two vectors, interleaved, in two vectors. Their exact order depends on the processor. narrow() and
  // store_sums() restore the original order.
  struct Interleaved {
    Shorts low, high;
  };
  struct InterleavedSums {
    Sums low, high;

    L3_INLINE void add(const Interleaved& turns, const Sums& weights) {
      low += multiply_pairs(turns.low, weights);
      high += multiply_pairs(turns.high, weights);
    }
  };

  L3_INLINE static Interleaved interleave(const Shorts& a, const Shorts& b) {
#if defined(__AVX512BW__)
    if constexpr (kBytes == 64) {
      return {(Shorts)_mm512_unpacklo_epi16((__m512i)a, (__m512i)b),
              (Shorts)_mm512_unpackhi_epi16((__m512i)a, (__m512i)b)};
    }
#endif
#if defined(__AVX2__)
    if constexpr (kBytes == 32) {
      return {(Shorts)_mm256_unpacklo_epi16((__m256i)a, (__m256i)b),
              (Shorts)_mm256_unpackhi_epi16((__m256i)a, (__m256i)b)};
    }
#endif
    if constexpr (kBytes == 16) {
      return {__builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11),
              __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)};
    }
  }

  // Converts to 16 bits with saturation.
  L3_INLINE static Shorts narrow(const InterleavedSums& v) {
#if defined(__AVX512BW__)
    if constexpr (kBytes == 64) return (Shorts)_mm512_packs_epi32((__m512i)v.low, (__m512i)v.high);
#endif
#if defined(__AVX2__)
    if constexpr (kBytes == 32) return (Shorts)_mm256_packs_epi32((__m256i)v.low, (__m256i)v.high);
#endif
#if defined(__SSE2__)
    if constexpr (kBytes == 16) return (Shorts)_mm_packs_epi32((__m128i)v.low, (__m128i)v.high);
#else
    Shorts r;
    for (uint32_t i = 0; i < kShorts; ++i) {
      const int32_t n = i < kSums ? v.low[i] : v.high[i - kSums];
      r[i] = static_cast<int16_t>(n < -32768 ? -32768 : n > 32767 ? 32767 : n);
    }
    return r;
#endif
  }

  L3_INLINE static void store_sums(int32_t* to, const InterleavedSums& v) {
    Sums first = v.low, second = v.high;
#if defined(__AVX2__)
    if constexpr (kBytes == 32) {
      first = (Sums)_mm256_permute2x128_si256((__m256i)v.low, (__m256i)v.high, 0x20);
      second = (Sums)_mm256_permute2x128_si256((__m256i)v.low, (__m256i)v.high, 0x31);
    }
#endif
    static_assert(kBytes < 64);
    __builtin_memcpy(to, &first, kBytes);
    __builtin_memcpy(to + kSums, &second, kBytes);
  }

  // Multiplies corresponding numbers and adds up adjacent pairs of products.
  L3_INLINE static Sums multiply_pairs(const Shorts& a, const Sums& pairs) {
#if defined(__AVX512BW__)
    if constexpr (kBytes == 64) return (Sums)_mm512_madd_epi16((__m512i)a, (__m512i)pairs);
#endif
#if defined(__AVX2__)
    if constexpr (kBytes == 32) return (Sums)_mm256_madd_epi16((__m256i)a, (__m256i)pairs);
#endif
#if defined(__SSE2__)
    if constexpr (kBytes == 16) return (Sums)_mm_madd_epi16((__m128i)a, (__m128i)pairs);
#elif defined(__aarch64__) && defined(__ARM_NEON)
    const int16x8_t x = (int16x8_t)a, y = (int16x8_t)pairs;
    return (Sums)vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y));
#else
    // Which number of a pair is the first depends on the byte order. Their sum does not.
    return ((Sums)a << 16 >> 16) * (pairs << 16 >> 16) + ((Sums)a >> 16) * (pairs >> 16);
#endif
  }
  // A pair of weights for multiply_pairs: `a` is for the first of the interleaved vectors.
  L3_INLINE static int32_t pair_of(int32_t a, int32_t b) {
    const int16_t pair[2] = {static_cast<int16_t>(a), static_cast<int16_t>(b)};
    int32_t word;
    __builtin_memcpy(&word, pair, 4);
    return word;
  }
  L3_INLINE static Sums all_pairs(int32_t pair) { return Sums{} + pair; }

  // (a * b + 2^14) / 2^15, rounded down.
  L3_INLINE static Shorts multiply_rounded(const Shorts& a, const Shorts& b) {
#if defined(__AVX512BW__)
    if constexpr (kBytes == 64) return (Shorts)_mm512_mulhrs_epi16((__m512i)a, (__m512i)b);
#endif
#if defined(__AVX2__)
    if constexpr (kBytes == 32) return (Shorts)_mm256_mulhrs_epi16((__m256i)a, (__m256i)b);
#endif
    const Interleaved turns = interleave(a, Shorts{} + static_cast<int16_t>(1 << 14));
    const Interleaved by = interleave(b, Shorts{} + static_cast<int16_t>(1));
    return narrow({multiply_pairs(turns.low, (Sums)by.low) >> 15, multiply_pairs(turns.high, (Sums)by.high) >> 15});
  }

  // Levels of activities (section 13.4), 8 to 2^24: four levels per octave, from the exponent and top mantissa bits of
  // a float.
  L3_INLINE static Shorts levels_of(const InterleavedSums& v) {
    return narrow({((Sums) __builtin_convertvector(v.low, Floats) >> 21) - (130 << 2),
                   ((Sums) __builtin_convertvector(v.high, Floats) >> 21) - (130 << 2)});
  }
  L3_INLINE static Shorts levels_of(const Shorts& v) {
    const Interleaved turns = interleave(v, Shorts{});
    const Sums one = all_pairs(pair_of(1, 0));
    return levels_of(InterleavedSums{multiply_pairs(turns.low, one), multiply_pairs(turns.high, one)});
  }

  // sums[j] += the dot product of a and b[j]. Each has 256 numbers; the product must fit 32 bits.
  template <uint32_t kCount>
  L3_INLINE static void add_dots(const int16_t* a, const int16_t (*b)[256], int64_t* sums) {
    Sums total[kCount] = {};
    for (uint32_t i = 0; i < 256; i += kShorts) {
      const Shorts x = load(a + i);
      for (uint32_t j = 0; j < kCount; ++j) total[j] += multiply_pairs(x, (Sums)load(b[j] + i));
    }
    using Quad = typename VectorTypes<16>::I32;
    Quad quads[4] = {};
    for (uint32_t j = 0; j < kCount; ++j) {
      Quad parts[kBytes / 16];
      __builtin_memcpy(parts, &total[j], kBytes);
      for (const Quad& part : parts) quads[j] += part;
    }
    const Quad a01 = __builtin_shufflevector(quads[0], quads[1], 0, 4, 1, 5) +
                     __builtin_shufflevector(quads[0], quads[1], 2, 6, 3, 7);
    const Quad a23 = __builtin_shufflevector(quads[2], quads[3], 0, 4, 1, 5) +
                     __builtin_shufflevector(quads[2], quads[3], 2, 6, 3, 7);
    const Quad sum = __builtin_shufflevector(a01, a23, 0, 1, 4, 5) + __builtin_shufflevector(a01, a23, 2, 3, 6, 7);
    for (uint32_t j = 0; j < kCount; ++j) sums[j] += sum[j];
  }

  // Adds the dot products of all pairs of `count` rows: the lower triangle, row by row.
  L3_INLINE static void add_triangle(const int16_t (*rows)[256], uint32_t count, int64_t* sums) {
    for (uint32_t i = 0; i < count; ++i) {
      uint32_t j = 0;
      for (; j + 4 <= i + 1; j += 4) add_dots<4>(rows[i], rows + j, sums + j);
      const uint32_t rest = i + 1 - j;
      if (rest == 1) add_dots<1>(rows[i], rows + j, sums + j);
      if (rest == 2) add_dots<2>(rows[i], rows + j, sums + j);
      if (rest == 3) add_dots<3>(rows[i], rows + j, sums + j);
      sums += i + 1;
    }
  }
};

}  // namespace l3
