// The fast method's warp in AVX-512 registers (F, BW, VL, DQ, CD, VBMI): one register of 32 lanes.
#pragma once

#include <immintrin.h>

#include "engine/vector_encode_warp.h"
#include "engine/warp_concepts.h"

namespace l3 {

namespace avx512 {

// Index vectors for permutations, computed at compile time.
struct ByteTable {
  alignas(64) uint8_t bytes[192];
};
// Indices 0 to 63 select bytes of the first operand, 64 to 127 those of the second.
constexpr ByteTable make_store_rgb() {
  ByteTable t{};
  for (int i = 0; i < 96; ++i) {
    const int pixel = i / 3;
    t.bytes[i] = static_cast<uint8_t>(i % 3 == 2 ? 64 + 2 * pixel : 2 * pixel + i % 3);
  }
  return t;
}
constexpr ByteTable make_load_rgb() {
  ByteTable t{};
  for (int c = 0; c < 3; ++c) {
    for (int i = 0; i < 32; ++i) t.bytes[64 * c + 2 * i] = static_cast<uint8_t>(3 * i + c);
  }
  return t;
}
// Indices of 16-bit lanes: 0 to 31 select from the first operand, 32 to 63 from the second.
constexpr ByteTable make_store_rgba() {
  ByteTable t{};
  for (int i = 0; i < 64; ++i) t.bytes[2 * i] = static_cast<uint8_t>(i % 2 == 0 ? i / 2 : 32 + i / 2);
  return t;
}
// Moves byte 8 * i + k to byte 8 * k + i.
constexpr ByteTable make_exchange() {
  ByteTable t{};
  for (int i = 0; i < 64; ++i) t.bytes[i] = static_cast<uint8_t>(i % 8 * 8 + i / 8);
  return t;
}
constexpr ByteTable kStoreRgb = make_store_rgb();
constexpr ByteTable kLoadRgb = make_load_rgb();
constexpr ByteTable kStoreRgba = make_store_rgba();
constexpr ByteTable kExchange = make_exchange();

}  // namespace avx512

template <>
struct ByteLengths<64> {
  using Bytes = VectorTypes<64>::U8;

  L3_INLINE static Bytes of(const Bytes& v) {
    const __m512i of_nibble = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4));
    const __m512i of_upper = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 5, 6, 6, 7, 7, 7, 7, 8, 8, 8, 8, 8, 8, 8, 8));
    const __m512i nibble = _mm512_set1_epi8(15);
    const __m512i lower = _mm512_and_si512((__m512i)v, nibble);
    const __m512i upper = _mm512_and_si512(_mm512_srli_epi16((__m512i)v, 4), nibble);
    return (Bytes)_mm512_max_epu8(_mm512_shuffle_epi8(of_nibble, lower), _mm512_shuffle_epi8(of_upper, upper));
  }
};

struct Avx512Warp : VectorEncodeWarp<64> {
  L3_INLINE static Lanes average(const Lanes& a, const Lanes& b) {
    return {{(Vector)_mm512_avg_epu16((__m512i)a.v[0], (__m512i)b.v[0])}};
  }

  L3_INLINE static Lanes last(const Lanes& a) {
    return {{(Vector)_mm512_permutexvar_epi16(_mm512_set1_epi16(31), (__m512i)a.v[0])}};
  }
  L3_INLINE static Lanes first(const Lanes& a) {
    return {{(Vector)_mm512_broadcastw_epi16(_mm512_castsi512_si128((__m512i)a.v[0]))}};
  }
  L3_INLINE static Lanes choose_lane(uint32_t lane, const Lanes& a, const Lanes& b) {
    return {{(Vector)_mm512_mask_blend_epi16(__mmask32{1} << lane, (__m512i)b.v[0], (__m512i)a.v[0])}};
  }
  L3_INLINE static Lanes first_lanes(uint32_t count) {
    return {{(Vector)_mm512_movm_epi16(static_cast<__mmask32>((uint64_t{1} << count) - 1))}};
  }

  L3_INLINE static Lanes scan_add(const Lanes& a) {
    __m512i v = (__m512i)a.v[0];
    v = _mm512_add_epi16(v, _mm512_bslli_epi128(v, 2));
    v = _mm512_add_epi16(v, _mm512_bslli_epi128(v, 4));
    v = _mm512_add_epi16(v, _mm512_bslli_epi128(v, 8));
    // Add the sums of the earlier quarters: the last lane of each is broadcast to the quarters after it.
    const __m512i one = _mm512_maskz_permutexvar_epi16(0xFFFFFF00u, quarter_ends(1), v);
    const __m512i two = _mm512_maskz_permutexvar_epi16(0xFFFF0000u, quarter_ends(2), v);
    const __m512i three = _mm512_maskz_permutexvar_epi16(0xFF000000u, quarter_ends(3), v);
    return {{(Vector)_mm512_add_epi16(_mm512_add_epi16(v, one), _mm512_add_epi16(two, three))}};
  }

  L3_INLINE static bool differ(const Lanes& a, const Lanes& b) {
    return _mm512_cmpneq_epu16_mask((__m512i)a.v[0], (__m512i)b.v[0]) != 0;
  }

  template <class Sample>
  L3_INLINE static Lanes residuals(const uint8_t* codes, const Widths& widths, uint32_t row) {
    // Eight groups, 64 bits each.
    const uint32_t at = widths.row_start[row];
    const __m512i start = _mm512_add_epi64(
        _mm512_cvtepu8_epi64(_mm_cvtsi64_si128(static_cast<int64_t>(widths.start[row]))), _mm512_set1_epi64(at & 1));
    const __m512i shift = _mm512_slli_epi64(_mm512_and_si512(start, _mm512_set1_epi64(1)), 2);
    const __m512i byte = spread_byte_0(_mm512_srli_epi64(start, 1));
    const __m512i width =
        spread_word_0(_mm512_cvtepu8_epi64(_mm_cvtsi64_si128(static_cast<int64_t>(widths.width[row]))));
    const uint8_t* p = codes + at / 2;
    const __m512i bytes = _mm512_loadu_si512(p);
    const __m512i eight = _mm512_set1_epi64(0x0706050403020100);
    const __m512i fourth = _mm512_set1_epi64(0x0003000200010000);
    __m512i values;
    if constexpr (sizeof(Sample) == 1) {
      const __m512i window = _mm512_permutexvar_epi8(_mm512_add_epi8(byte, eight), bytes);
      const __m512i bit = _mm512_add_epi16(_mm512_mullo_epi16(width, fourth), spread_word_0(shift));
      values = _mm512_multishift_epi64_epi8(bit, window);
    } else {
      // A row may take 64.5 bytes, and a group 68 bits.
      const __m512i rest = _mm512_castsi128_si512(_mm_cvtsi32_si128(p[64]));
      const __m512i at_0 = _mm512_add_epi8(byte, eight);
      const __m512i at_1 = _mm512_add_epi8(at_0, _mm512_set1_epi8(1));
      const __m512i window =
          _mm512_or_si512(_mm512_srlv_epi64(_mm512_permutex2var_epi8(bytes, at_0, rest), shift),
                          _mm512_slli_epi64(_mm512_srlv_epi64(_mm512_permutex2var_epi8(bytes, at_1, rest), shift), 8));
      const __m512i bit = _mm512_mullo_epi16(width, fourth);
      const __m512i both = _mm512_or_si512(bit, _mm512_slli_epi16(_mm512_add_epi16(bit, _mm512_set1_epi16(8)), 8));
      values = _mm512_multishift_epi64_epi8(both, window);
    }
    const __m512i range = _mm512_sllv_epi16(_mm512_set1_epi16(1), width);
    const __m512i mask = _mm512_sub_epi16(range, _mm512_set1_epi16(1));
    const __m512i half = _mm512_sub_epi16(mask, _mm512_srli_epi16(mask, 1));
    return {{(Vector)_mm512_sub_epi16(_mm512_and_si512(values, mask), half)}};
  }

  template <class Sample, uint32_t kChannels>
  L3_INLINE static void store_pixels(uint8_t* out, const Lanes* c) {
    if constexpr (sizeof(Sample) == 2) {
      if constexpr (kChannels == 1) {
        std::memcpy(out, c[0].v, 64);
      } else {
        VectorWarp<64>::store_pixels<Sample, kChannels>(out, c);
      }
    } else if constexpr (kChannels == 1) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm512_cvtepi16_epi8((__m512i)c[0].v[0]));
    } else {
      const __m512i low = (__m512i)(c[0].v[0] | c[1].v[0] << 8);
      if constexpr (kChannels == 2) {
        _mm512_storeu_si512(out, low);
      } else if constexpr (kChannels == 3) {
        const __m512i blue = (__m512i)c[2].v[0];
        const __m512i first_64 = _mm512_permutex2var_epi8(low, table(avx512::kStoreRgb.bytes), blue);
        const __m512i next_32 = _mm512_permutex2var_epi8(low, table(avx512::kStoreRgb.bytes + 64), blue);
        _mm512_storeu_si512(out, first_64);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 64), _mm512_castsi512_si256(next_32));
      } else {
        const __m512i high = (__m512i)(c[2].v[0] | c[3].v[0] << 8);
        _mm512_storeu_si512(out, _mm512_permutex2var_epi16(low, table(avx512::kStoreRgba.bytes), high));
        _mm512_storeu_si512(out + 64, _mm512_permutex2var_epi16(low, table(avx512::kStoreRgba.bytes + 64), high));
      }
    }
  }

  template <class Sample, uint32_t kChannels>
  L3_INLINE static void load_pixels(const uint8_t* in, Lanes* c) {
    if constexpr (sizeof(Sample) == 1 && kChannels == 1) {
      c[0].v[0] = (Vector)_mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(in)));
    } else if constexpr (sizeof(Sample) == 1 && kChannels == 3) {
      const __m512i first_64 = _mm512_loadu_si512(in);
      const __m512i next_32 = _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + 64)));
      for (int i = 0; i < 3; ++i) {
        c[i].v[0] = (Vector)_mm512_maskz_permutex2var_epi8(0x5555555555555555u, first_64,
                                                           table(avx512::kLoadRgb.bytes + 64 * i), next_32);
      }
    } else {
      VectorWarp<64>::load_pixels<Sample, kChannels>(in, c);
    }
  }

  L3_INLINE static uint32_t greatest(const GroupWidths& widths) {
    const __m512i v = (__m512i)widths.groups[0];
    const __m256i half = _mm256_max_epu8(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
    const __m128i quarter = _mm_max_epu8(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    // The instruction finds the minimum of eight 16-bit numbers. Apply it to 255 minus the greater byte of each pair.
    const __m128i pairs = _mm_max_epu8(quarter, _mm_srli_epi16(quarter, 8));
    const __m128i missing = _mm_sub_epi16(_mm_set1_epi16(255), _mm_and_si128(pairs, _mm_set1_epi16(255)));
    return 255u - (static_cast<uint32_t>(_mm_cvtsi128_si32(_mm_minpos_epu16(missing))) & 0xFFFF);
  }

  L3_INLINE static uint32_t sum_raised(const GroupWidths& widths, uint32_t floor) {
    return sum_bytes(_mm512_max_epu8((__m512i)widths.groups[0], _mm512_set1_epi8(static_cast<int8_t>(floor))));
  }
  L3_INLINE static uint32_t sum(const GroupWidths& widths) { return sum_bytes((__m512i)widths.groups[0]); }

  L3_INLINE static void row_words(const GroupWidths& widths, uint64_t* rows) {
    _mm512_storeu_si512(rows, _mm512_permutexvar_epi8(table(avx512::kExchange.bytes), (__m512i)widths.groups[0]));
  }

  L3_INLINE static void join_codes(const Lanes& residuals, const Lanes& present, uint64_t widths, uint64_t* codes) {
    const __m512i width = _mm512_cvtepu8_epi64(_mm_cvtsi64_si128(static_cast<int64_t>(widths)));
    const __m512i range = _mm512_sllv_epi16(_mm512_set1_epi16(1), spread_word_0(width));
    const __m512i mask = _mm512_sub_epi16(range, _mm512_set1_epi16(1));
    const __m512i half = _mm512_sub_epi16(mask, _mm512_srli_epi16(mask, 1));
    __m512i v = _mm512_and_si512(_mm512_add_epi16((__m512i)residuals.v[0], half), mask);
    v = _mm512_and_si512(v, (__m512i)present.v[0]);
    v = _mm512_or_si512(_mm512_and_si512(v, _mm512_set1_epi32(0xFFFF)),
                        _mm512_sllv_epi64(_mm512_srli_epi32(v, 16), width));
    v = _mm512_or_si512(_mm512_and_si512(v, _mm512_set1_epi64(0xFFFFFFFF)),
                        _mm512_sllv_epi64(_mm512_srli_epi64(v, 32), _mm512_add_epi64(width, width)));
    _mm512_storeu_si512(codes, v);
  }

 private:
  L3_INLINE static uint32_t sum_bytes(__m512i v) {
    return static_cast<uint32_t>(_mm512_reduce_add_epi64(_mm512_sad_epu8(v, _mm512_setzero_si512())));
  }
  L3_INLINE static __m512i table(const uint8_t* bytes) { return _mm512_load_si512(bytes); }

  // Lane indices: the last lane of the quarter that is `before` quarters earlier.
  L3_INLINE static __m512i quarter_ends(int before) {
    const __m512i own =
        _mm512_set_epi64(0x001F001F001F001F, 0x001F001F001F001F, 0x0017001700170017, 0x0017001700170017,
                         0x000F000F000F000F, 0x000F000F000F000F, 0x0007000700070007, 0x0007000700070007);
    return _mm512_sub_epi16(own, _mm512_set1_epi16(static_cast<int16_t>(8 * before)));
  }
  // Broadcasts the lowest byte, or the lowest 16 bits, of each 64 bits to all of the 64 bits.
  L3_INLINE static __m512i spread_byte_0(__m512i v) {
    return _mm512_shuffle_epi8(v, _mm512_set4_epi32(0x08080808, 0x08080808, 0, 0));
  }
  L3_INLINE static __m512i spread_word_0(__m512i v) {
    return _mm512_shuffle_epi8(v, _mm512_set4_epi32(0x09080908, 0x09080908, 0x01000100, 0x01000100));
  }
};

static_assert(FastMethodWarp<Avx512Warp>);

}  // namespace l3
