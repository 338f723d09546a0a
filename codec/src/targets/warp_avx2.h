// The fast method's warp in AVX2 registers: two registers of 16 lanes.
#pragma once

#include <immintrin.h>

#include "engine/vector_encode_warp.h"
#include "engine/warp_concepts.h"

namespace l3 {

template <>
struct ByteLengths<32> {
  using Bytes = VectorTypes<32>::U8;

  L3_INLINE static Bytes of(const Bytes& v) {
    const __m256i of_nibble =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4));
    const __m256i of_upper = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 5, 6, 6, 7, 7, 7, 7, 8, 8, 8, 8, 8, 8, 8, 8));
    const __m256i nibble = _mm256_set1_epi8(15);
    const __m256i lower = _mm256_and_si256((__m256i)v, nibble);
    const __m256i upper = _mm256_and_si256(_mm256_srli_epi16((__m256i)v, 4), nibble);
    return (Bytes)_mm256_max_epu8(_mm256_shuffle_epi8(of_nibble, lower), _mm256_shuffle_epi8(of_upper, upper));
  }
};

struct Avx2Warp : VectorEncodeWarp<32> {
  L3_INLINE static Lanes average(Lanes a, const Lanes& b) {
    for (int i = 0; i < 2; ++i) a.v[i] = (Vector)_mm256_avg_epu16((__m256i)a.v[i], (__m256i)b.v[i]);
    return a;
  }

  L3_INLINE static Lanes last(const Lanes& a) {
    const __m128i top = _mm_srli_si128(_mm256_extracti128_si256((__m256i)a.v[1], 1), 14);
    const Vector v = (Vector)_mm256_broadcastw_epi16(top);
    return {{v, v}};
  }
  L3_INLINE static Lanes first(const Lanes& a) {
    const Vector v = (Vector)_mm256_broadcastw_epi16(_mm256_castsi256_si128((__m256i)a.v[0]));
    return {{v, v}};
  }

  L3_INLINE static Lanes scan_add(const Lanes& a) {
    __m256i sums[2];
    for (int i = 0; i < 2; ++i) {
      __m256i v = (__m256i)a.v[i];
      v = _mm256_add_epi16(v, _mm256_slli_si256(v, 2));
      v = _mm256_add_epi16(v, _mm256_slli_si256(v, 4));
      v = _mm256_add_epi16(v, _mm256_slli_si256(v, 8));
      // Add the sum of the lower half to all lanes of the upper half.
      const __m256i lower = _mm256_permute2x128_si256(v, v, 0x08);
      sums[i] = _mm256_add_epi16(v, _mm256_shuffle_epi8(lower, _mm256_set1_epi16(0x0F0E)));
    }
    const __m256i carry = (__m256i)last({{Vector{}, (Vector)sums[0]}}).v[0];
    return {{(Vector)sums[0], (Vector)_mm256_add_epi16(sums[1], carry)}};
  }

  L3_INLINE static bool differ(const Lanes& a, const Lanes& b) {
    const Lanes d = a ^ b;
    const __m256i any = (__m256i)(d.v[0] | d.v[1]);
    return _mm256_testz_si256(any, any) == 0;
  }

  template <class Sample>
  L3_INLINE static Lanes residuals(const uint8_t* codes, const Widths& widths, uint32_t row) {
    Lanes r;
    for (uint32_t i = 0; i < 2; ++i) {
      // Four groups, 64 bits each.
      const uint32_t at = widths.row_start[row];
      const uint32_t starts = static_cast<uint32_t>(widths.start[row] >> (32 * i));
      const __m256i width = _mm256_cvtepu8_epi64(
          _mm_cvtsi32_si128(static_cast<int>(static_cast<uint32_t>(widths.width[row] >> (32 * i)))));
      const __m256i start =
          _mm256_add_epi64(_mm256_cvtepu8_epi64(_mm_cvtsi32_si128(static_cast<int>(starts))), _mm256_set1_epi64x(at));
      const __m256i shift = _mm256_slli_epi64(_mm256_and_si256(start, _mm256_set1_epi64x(1)), 2);
      const uint8_t* p0 = codes + (at + (starts & 0xFF)) / 2;
      const uint8_t* p1 = codes + (at + (starts >> 8 & 0xFF)) / 2;
      const uint8_t* p2 = codes + (at + (starts >> 16 & 0xFF)) / 2;
      const uint8_t* p3 = codes + (at + (starts >> 24)) / 2;
      __m256i window = _mm256_srlv_epi64(four_words(p0, p1, p2, p3), shift);
      if constexpr (sizeof(Sample) == 2) {  // up to 68 bits are needed
        const __m256i later = _mm256_srlv_epi64(four_words(p0 + 1, p1 + 1, p2 + 1, p3 + 1), shift);
        window = _mm256_or_si256(window, _mm256_slli_epi64(later, 8));
      }
      // Split each group in two, then each half in two.
      const __m256i ones = _mm256_set1_epi64x(-1);
      const __m256i twice = _mm256_add_epi64(width, width);
      const __m256i two = _mm256_andnot_si256(_mm256_sllv_epi64(ones, twice), ones);
      __m256i one = _mm256_andnot_si256(_mm256_sllv_epi64(ones, width), ones);
      one = _mm256_shuffle_epi32(one, 0xA0);
      const __m256i upper = _mm256_and_si256(_mm256_srlv_epi64(window, twice), two);
      const __m256i pairs = _mm256_or_si256(_mm256_and_si256(window, two), _mm256_slli_epi64(upper, 32));
      const __m256i odd = _mm256_and_si256(_mm256_srlv_epi64(pairs, width), one);
      const __m256i values = _mm256_or_si256(_mm256_and_si256(pairs, one), _mm256_slli_epi64(odd, 16));
      // Half of each range: (mask + 1) / 2 in 16 bits, which equals mask - mask / 2 if the width is not 0.
      const __m256i mask = _mm256_or_si256(one, _mm256_slli_epi64(one, 16));
      const __m256i half = _mm256_sub_epi16(mask, _mm256_srli_epi16(mask, 1));
      r.v[i] = (Vector)_mm256_sub_epi16(values, half);
    }
    return r;
  }

  template <class Sample, uint32_t kChannels>
  L3_INLINE static void store_pixels(uint8_t* out, const Lanes* c) {
    if constexpr (sizeof(Sample) == 2 && kChannels == 1) {
      std::memcpy(out, c[0].v, 64);
    } else if constexpr (sizeof(Sample) == 2) {
      VectorWarp<32>::store_pixels<Sample, kChannels>(out, c);
    } else if constexpr (kChannels == 1) {
      const __m256i packed = _mm256_packus_epi16((__m256i)c[0].v[0], (__m256i)c[0].v[1]);
      store(out, _mm256_permute4x64_epi64(packed, 0xD8));
    } else if constexpr (kChannels == 2) {
      for (int i = 0; i < 2; ++i) store(out + 32 * i, (__m256i)(c[0].v[i] | c[1].v[i] << 8));
    } else {
      for (int i = 0; i < 2; ++i) {
        const __m256i low = (__m256i)(c[0].v[i] | c[1].v[i] << 8);
        __m256i high = (__m256i)c[2].v[i];
        if constexpr (kChannels == 4) high = (__m256i)(c[2].v[i] | c[3].v[i] << 8);
        const __m256i a = _mm256_unpacklo_epi16(low, high);  // pixels 0-3 and 8-11
        const __m256i b = _mm256_unpackhi_epi16(low, high);  // pixels 4-7 and 12-15
        if constexpr (kChannels == 4) {
          store(out + 64 * i, _mm256_permute2x128_si256(a, b, 0x20));
          store(out + 64 * i + 32, _mm256_permute2x128_si256(a, b, 0x31));
        } else {
          // Each quarter gives 12 bytes in order. Every store but the last is overlapped by the next one.
          const __m256i squeeze = _mm256_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1, 0, 1, 2, 4,
                                                   5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
          const __m256i join = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7);
          const __m256i first_8 =
              _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(_mm256_permute2x128_si256(a, b, 0x20), squeeze), join);
          const __m256i next_8 =
              _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(_mm256_permute2x128_si256(a, b, 0x31), squeeze), join);
          uint8_t* p = out + 48 * i;
          store(p, first_8);
          _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 24), _mm256_castsi256_si128(next_8));
          _mm_storel_epi64(reinterpret_cast<__m128i*>(p + 40), _mm256_extracti128_si256(next_8, 1));
        }
      }
    }
  }

  template <class Sample, uint32_t kChannels>
  L3_INLINE static void load_pixels(const uint8_t* in, Lanes* c) {
    if constexpr (sizeof(Sample) == 1 && kChannels == 1) {
      for (int i = 0; i < 2; ++i) c[0].v[i] = (Vector)_mm256_cvtepu8_epi16(load_half(in + 16 * i));
    } else if constexpr (sizeof(Sample) == 1 && kChannels >= 3) {
      constexpr int kP = kChannels;
      // Load four pixels into each half, in the order 0-3 | 8-11 and 4-7 | 12-15, so that unpacking restores their
      // order.
      for (int i = 0; i < 2; ++i) {
        const uint8_t* p = in + 16 * kP * i;
        __m256i a = two_halves(load_half(p), load_half(p + 8 * kP));
        __m256i b;
        const __m256i spread = kP == 3 ? spread_3() : spread_4();
        if (kP == 3) {
          // The last four pixels have only 12 bytes. Load the 16 bytes that end where they end.
          const __m128i end = _mm_srli_si128(load_half(p + 12 * kP - 4), 4);
          b = two_halves(load_half(p + 4 * kP), end);
        } else {
          b = two_halves(load_half(p + 4 * kP), load_half(p + 12 * kP));
        }
        // Each half now holds four samples of channel 0, then of channel 1, then of channel 2 (and 3), as bytes.
        a = _mm256_shuffle_epi8(a, spread);
        b = _mm256_shuffle_epi8(b, spread);
        const __m256i zero = _mm256_setzero_si256();
        const __m256i low = _mm256_unpacklo_epi32(a, b);   // channel 0 of eight pixels, channel 1 of eight
        const __m256i high = _mm256_unpackhi_epi32(a, b);  // channel 2, channel 3
        c[0].v[i] = (Vector)_mm256_unpacklo_epi8(low, zero);
        c[1].v[i] = (Vector)_mm256_unpackhi_epi8(low, zero);
        c[2].v[i] = (Vector)_mm256_unpacklo_epi8(high, zero);
        if constexpr (kP == 4) c[3].v[i] = (Vector)_mm256_unpackhi_epi8(high, zero);
      }
    } else {
      VectorWarp<32>::load_pixels<Sample, kChannels>(in, c);
    }
  }

  L3_INLINE static void join_codes(const Lanes& residuals, const Lanes& present, uint64_t widths, uint64_t* codes) {
    for (int i = 0; i < 2; ++i) {
      const __m256i width = _mm256_cvtepu8_epi64(_mm_cvtsi64_si128(static_cast<int64_t>(widths >> (32 * i))));
      const __m256i ones = _mm256_set1_epi64x(-1);
      __m256i mask = _mm256_andnot_si256(_mm256_sllv_epi64(ones, width), ones);
      mask = _mm256_or_si256(mask, _mm256_slli_epi64(mask, 16));
      mask = _mm256_shuffle_epi32(mask, 0xA0);
      const __m256i half = _mm256_sub_epi16(mask, _mm256_srli_epi16(mask, 1));
      __m256i v = _mm256_and_si256(_mm256_add_epi16((__m256i)residuals.v[i], half), mask);
      v = _mm256_and_si256(v, (__m256i)present.v[i]);
      const __m256i low_16 = _mm256_set1_epi32(0xFFFF);
      v = _mm256_or_si256(_mm256_and_si256(v, low_16), _mm256_sllv_epi64(_mm256_srli_epi32(v, 16), width));
      const __m256i low_32 = _mm256_set1_epi64x(0xFFFFFFFF);
      v = _mm256_or_si256(_mm256_and_si256(v, low_32),
                          _mm256_sllv_epi64(_mm256_srli_epi64(v, 32), _mm256_add_epi64(width, width)));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes + 4 * i), v);
    }
  }

 private:
  L3_INLINE static void store(uint8_t* p, __m256i v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
  L3_INLINE static __m128i load_half(const uint8_t* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
  L3_INLINE static __m256i two_halves(__m128i low, __m128i high) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
  }
  L3_INLINE static __m256i four_words(const uint8_t* p0, const uint8_t* p1, const uint8_t* p2, const uint8_t* p3) {
    int64_t a, b, c, d;
    std::memcpy(&a, p0, 8);
    std::memcpy(&b, p1, 8);
    std::memcpy(&c, p2, 8);
    std::memcpy(&d, p3, 8);
    return _mm256_setr_epi64x(a, b, c, d);
  }
  L3_INLINE static __m256i spread_3() {
    return _mm256_setr_epi8(0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11, -1, -1, -1, -1, 0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11,
                            -1, -1, -1, -1);
  }
  L3_INLINE static __m256i spread_4() {
    return _mm256_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10,
                            14, 3, 7, 11, 15);
  }
};

static_assert(FastMethodWarp<Avx2Warp>);

}  // namespace l3
