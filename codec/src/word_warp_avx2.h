// The dense method's warp in AVX2 registers: four parts of eight lanes.
#pragma once

#include <immintrin.h>

#include "word_warp.h"

namespace l3 {

namespace avx2 {

// For each set of lanes, which words those lanes take: lane i the one that is as far on as lanes below i are in the
// set.
struct ExpandTable {
  alignas(32) uint8_t words[256][8];
  constexpr ExpandTable() : words() {
    for (uint32_t set = 0; set < 256; ++set) {
      uint8_t next = 0;
      for (uint32_t lane = 0; lane < 8; ++lane) {
        words[set][lane] = static_cast<uint8_t>(next & 7);
        next = static_cast<uint8_t>(next + (set >> lane & 1));
      }
    }
  }
};
inline constexpr ExpandTable kExpand;

}  // namespace avx2

// Pixels, for AVX2 and what has more.
struct Avx2Pixels {
  L3_INLINE static void transpose(const uint32_t* from, size_t from_row, uint32_t* to, size_t to_row) {
    __m256 r[8], s[8];
    for (size_t i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps(reinterpret_cast<const float*>(from + i * from_row));
    for (int i = 0; i < 8; i += 2) {
      s[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
      s[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
      r[i] = _mm256_shuffle_ps(s[i], s[i + 2], 0x44);
      r[i + 1] = _mm256_shuffle_ps(s[i], s[i + 2], 0xEE);
      r[i + 2] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0x44);
      r[i + 3] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0xEE);
    }
    for (size_t i = 0; i < 4; ++i) {
      _mm256_storeu_ps(reinterpret_cast<float*>(to + i * to_row), _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
      _mm256_storeu_ps(reinterpret_cast<float*>(to + (i + 4) * to_row), _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
    }
  }

  // Eight pixels at a time, each store overlapped by the next one.
  template <uint32_t kChannels>
  L3_INLINE static uint32_t store_most(uint8_t* to, const uint32_t* pixels, uint32_t count) {
    constexpr char kNone = -1;
    uint32_t i = 0;
    if constexpr (kChannels == 1 || kChannels == 3) {
      const __m128i order = kChannels == 1
                                ? _mm_setr_epi8(0, 4, 8, 12, kNone, kNone, kNone, kNone, kNone, kNone, kNone, kNone,
                                                kNone, kNone, kNone, kNone)
                                : _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, kNone, kNone, kNone, kNone);
      const __m256i join =
          kChannels == 1 ? _mm256_setr_epi32(0, 4, 1, 1, 1, 1, 1, 1) : _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 3);
      for (; i + (kChannels == 1 ? 16 : 11) <= count; i += 8) {
        const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(pixels + i));
        const __m256i packed =
            _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(words, _mm256_broadcastsi128_si256(order)), join);
        if constexpr (kChannels == 1) {
          _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), _mm256_castsi256_si128(packed));
        } else {
          _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 3 * i), packed);
        }
      }
    }
    return i;
  }
};

struct Avx2WordWarp : WordWarp<32> {
  L3_INLINE static __m256i native(Lanes a) { return (__m256i)a.v; }
  L3_INLINE static Lanes lanes(__m256i v) { return {(Vector)v}; }

  L3_INLINE static Lanes to_byte(Lanes a) {
    return lanes(_mm256_min_epi32(_mm256_max_epi32(native(a), _mm256_setzero_si256()), native(splat(constant<255>))));
  }
  L3_INLINE static Lanes to_error(Lanes a) {
    constexpr uint32_t kLeast = static_cast<uint32_t>(kLeastError), kMost = static_cast<uint32_t>(kMostError);
    return lanes(
        _mm256_min_epi32(_mm256_max_epi32(native(a), native(splat(constant<kLeast>))), native(splat(constant<kMost>))));
  }

  L3_INLINE static Mask less(Lanes a, uint32_t b) {
    return lanes(_mm256_cmpeq_epi32(_mm256_min_epu32(native(a), native(splat(b - 1))), native(a)));
  }
  L3_INLINE static Mask less_small(Lanes a, Lanes b) { return lanes(_mm256_cmpgt_epi32(native(b), native(a))); }
  L3_INLINE static Mask below_floor(Lanes state) {
    return lanes(_mm256_cmpeq_epi32(_mm256_srli_epi32(native(state), 16), _mm256_setzero_si256()));
  }
  L3_INLINE static Lanes select(Mask mask, Lanes a, Lanes b) {
    return lanes(_mm256_blendv_epi8(native(b), native(a), native(mask)));
  }
  L3_INLINE static uint32_t bits(Mask mask) { return static_cast<uint32_t>(_mm256_movemask_ps((__m256)mask.v)); }

  L3_INLINE static Lanes dot_magnitudes(const SignedFour& a, const SignedFour& b, Lanes sum) {
    const __m256i even = _mm256_madd_epi16(_mm256_abs_epi16(native(a.even)), native(b.even));
    const __m256i odd = _mm256_madd_epi16(_mm256_abs_epi16(native(a.odd)), native(b.odd));
    return sum + lanes(even) + lanes(odd);
  }
  L3_INLINE static Lanes distances(Lanes a, Lanes b) {
    return lanes(_mm256_or_si256(_mm256_subs_epu8(native(a), native(b)), _mm256_subs_epu8(native(b), native(a))));
  }
  L3_INLINE static Lanes at_least(Lanes a, Lanes b) {
    return lanes(_mm256_cmpeq_epi8(_mm256_max_epu8(native(a), native(b)), native(a)));
  }
  L3_INLINE static Lanes spread(Lanes a) {
    const __m256i first =
        _mm256_set_epi32(0x0C0C0C0C, 0x08080808, 0x04040404, 0, 0x0C0C0C0C, 0x08080808, 0x04040404, 0);
    return lanes(_mm256_shuffle_epi8(native(a), first));
  }

  L3_INLINE static Lanes shift_up(Lanes a, Lanes before) {
    // The upper half of `before` and the lower one of `a`.
    const __m256i middle = _mm256_permute2x128_si256(native(before), native(a), 0x21);
    return lanes(_mm256_alignr_epi8(native(a), middle, 12));
  }

  // Loads one by one: on many processors faster than the gather instruction, on none much slower.
  L3_INLINE static void gather_buckets(const Bucket* buckets, Lanes index, Lanes& own, Lanes& other) {
    const uint8_t* p = reinterpret_cast<const uint8_t*>(buckets);
    const Indices i(index << 3);
    const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(two_words(p + i[0], p + i[1])),
                                                two_words(p + i[4], p + i[5]), 1);
    const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(two_words(p + i[2], p + i[3])),
                                                 two_words(p + i[6], p + i[7]), 1);
    own = lanes((__m256i)_mm256_shuffle_ps((__m256)low, (__m256)high, 0x88));
    other = lanes((__m256i)_mm256_shuffle_ps((__m256)low, (__m256)high, 0xDD));
  }
  L3_INLINE static Lanes gather(const uint8_t* p, Lanes index) {
    const Indices i(index);
    const uint64_t low = four(p, i[0], i[1], i[2], i[3]), high = four(p, i[4], i[5], i[6], i[7]);
    return lanes(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<int64_t>(low | high << 32))));
  }
  L3_INLINE static Lanes row(const DenseTables& tables, uint32_t channel, Lanes zone, Lanes pattern) {
    // Tables of 16 bytes fit registers. Of an index with its top bit set a shuffle gives 0: so bytes 1 to 3 of a lane
    // stay 0, and so does what another quarter of the patterns has.
    const __m256i empty = native(splat(constant<0x80808000>));
    const auto lookup = [&](const uint8_t* bytes, __m256i index) {
      const __m256i table = _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(bytes)));
      return lanes(_mm256_shuffle_epi8(table, index));
    };
    Lanes row = lookup(tables.zone_row[channel], _mm256_or_si256(native(zone), empty));
    // With 112 added without passing 255, only the patterns of the quarter that begins at 0 stay below 128.
    const __m256i saturated = native(splat(constant<112>));
    for (int quarter = 0; quarter < 4; ++quarter) {
      const __m256i from_quarter = _mm256_xor_si256(native(pattern), _mm256_set1_epi32(16 * quarter));
      const __m256i index = _mm256_or_si256(_mm256_add_epi32(from_quarter, saturated), empty);
      row = row + lookup(tables.pattern_row[channel] + 16 * quarter, index);
    }
    return row;
  }

  L3_INLINE static void refill(Lanes& state, Mask mask, const uint8_t* bytes, uint32_t& at) {
    const uint32_t set = bits(mask);
    const __m256i words = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + at)));
    const __m256i order =
        _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(avx2::kExpand.words[set])));
    const __m256i taken = _mm256_permutevar8x32_epi32(words, order);
    state = select(mask, lanes(_mm256_or_si256(_mm256_slli_epi32(native(state), 16), taken)), state);
    at += 2 * static_cast<uint32_t>(__builtin_popcount(set));
  }

  L3_INLINE static void transpose(const uint32_t* from, size_t from_row, uint32_t* to, size_t to_row) {
    Avx2Pixels::transpose(from, from_row, to, to_row);
  }
  template <uint32_t kChannels>
  L3_INLINE static void store_pixels(uint8_t* to, const uint32_t* pixels, uint32_t count) {
    const uint32_t stored = Avx2Pixels::store_most<kChannels>(to, pixels, count);
    WordWarp<32>::store_pixels<kChannels>(to + size_t{stored} * kChannels, pixels + stored, count - stored);
  }

 private:
  struct Indices {
    uint64_t pairs[4];
    L3_INLINE explicit Indices(Lanes a) {
      const __m128i low = _mm256_castsi256_si128(native(a)), high = _mm256_extracti128_si256(native(a), 1);
      pairs[0] = static_cast<uint64_t>(_mm_cvtsi128_si64(low));
      pairs[1] = static_cast<uint64_t>(_mm_extract_epi64(low, 1));
      pairs[2] = static_cast<uint64_t>(_mm_cvtsi128_si64(high));
      pairs[3] = static_cast<uint64_t>(_mm_extract_epi64(high, 1));
    }
    L3_INLINE size_t operator[](int i) const {
      return i % 2 == 0 ? static_cast<uint32_t>(pairs[i / 2]) : pairs[i / 2] >> 32;
    }
  };
  L3_INLINE static uint64_t four(const uint8_t* p, size_t a, size_t b, size_t c, size_t d) {
    return (p[a] | uint64_t{p[b]} << 8) | (p[c] | uint64_t{p[d]} << 8) << 16;
  }
  L3_INLINE static __m128i two_words(const uint8_t* a, const uint8_t* b) {
    int64_t second;
    __builtin_memcpy(&second, b, 8);
    return _mm_insert_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(a)), second, 1);
  }
};

}  // namespace l3
