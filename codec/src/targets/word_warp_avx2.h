// Words in AVX2 registers: four parts of eight lanes.
#pragma once

#include <immintrin.h>

#include "engine/word_warp.h"

namespace l3 {

namespace avx2 {

// For each set of lanes, the index of the word that each lane takes: the number of lanes below it that are in the set.
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

// See TokenWarp. The last 32 or 16 bytes may overlap with those before.
L3_INLINE void look_up_bytes(const uint8_t* table, const uint8_t* bytes, uint32_t count, uint8_t* to) {
  const __m128i entries = _mm_load_si128(reinterpret_cast<const __m128i*>(table));
  const auto look_up_16 = [&](uint32_t i) __attribute__((always_inline)) {
    const __m128i index = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + i));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), _mm_shuffle_epi8(entries, index));
  };
  if (count >= 32) {
    const auto look_up_32 = [&](uint32_t i) __attribute__((always_inline)) {
      const __m256i index = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes + i));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i),
                          _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(entries), index));
    };
    for (uint32_t i = 0; i + 32 < count; i += 32) look_up_32(i);
    look_up_32(count - 32);
  } else if (count >= 16) {
    look_up_16(0);
    look_up_16(count - 16);
  } else {
    for (uint32_t i = 0; i < count; ++i) to[i] = table[bytes[i]];
  }
}

// See Avx2TokenWarpOf.
L3_INLINE void choose_bytes(uint8_t* to, uint32_t bits, uint8_t zero, uint8_t one) {
  const __m256i byte_of_bit = _mm256_setr_epi64x(0x0303030303030303, 0x0202020202020202, 0x0101010101010101, 0);
  const __m256i place = _mm256_set1_epi64x(0x0102040810204080);
  const __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(static_cast<int>(bits)), byte_of_bit);
  const __m256i is_one = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, place), place);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm256_blendv_epi8(_mm256_set1_epi8(static_cast<int8_t>(zero)),
                                         _mm256_set1_epi8(static_cast<int8_t>(one)), is_one));
}

}  // namespace avx2

L3_INLINE __m128i two_buckets(const Bucket* a, const Bucket* b) {
  int64_t second;
  std::memcpy(&second, b, 8);
  return _mm_insert_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(a)), second, 1);
}

template <class Self>
struct Avx2WordWarpOf : WordWarp<Self, 32> {
  using Base = WordWarp<Self, 32>;
  using Base::kPartLanes, Base::splat, Base::store, Base::transpose;
  using typename Base::Lanes, typename Base::Mask, typename Base::Vector;
  L3_INLINE static __m256i native(Lanes a) { return (__m256i)a.v; }
  L3_INLINE static Lanes lanes(__m256i v) { return {(Vector)v}; }

  L3_INLINE static Mask less(Lanes a, uint32_t b) {
    return lanes(_mm256_cmpeq_epi32(_mm256_min_epu32(native(a), native(splat(b - 1))), native(a)));
  }
  L3_INLINE static Mask at_least(Lanes a, uint32_t b) {
    return lanes(_mm256_cmpeq_epi32(_mm256_max_epu32(native(a), native(splat(b))), native(a)));
  }
  L3_INLINE static Mask less_small(Lanes a, Lanes b) { return lanes(_mm256_cmpgt_epi32(native(b), native(a))); }
  L3_INLINE static Mask below_floor(Lanes state) {
    return lanes(_mm256_cmpeq_epi32(_mm256_srli_epi32(native(state), 16), _mm256_setzero_si256()));
  }
  L3_INLINE static Lanes select(Mask mask, Lanes a, Lanes b) {
    return lanes(_mm256_blendv_epi8(native(b), native(a), native(mask)));
  }
  L3_INLINE static uint32_t bits(Mask mask) { return static_cast<uint32_t>(_mm256_movemask_ps((__m256)mask.v)); }

  template <uint32_t kByte>
  L3_INLINE static Lanes byte_of(Lanes word) {
    return shuffle<0x80808000 + kByte>(word);
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

  // All 32 lanes at once, in two halves of each register.
  L3_INLINE static void turn_bytes(const uint8_t* from, uint32_t lanes, uint8_t* to, size_t to_row) {
    if (lanes <= 16) return Base::turn_bytes(from, lanes, to, to_row);
    __m256i r[16], s[16];
    for (size_t i = 0; i < 16; ++i) r[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i * kLanes));
    const auto exchange = [](const __m256i* a, __m256i* b) __attribute__((always_inline)) {
      for (int i = 0; i < 8; ++i) {
        b[2 * i] = _mm256_unpacklo_epi8(a[i], a[i + 8]);
        b[2 * i + 1] = _mm256_unpackhi_epi8(a[i], a[i + 8]);
      }
    };
    exchange(r, s);
    exchange(s, r);
    exchange(r, s);
    exchange(s, r);
    for (size_t i = 0; i < 16; ++i) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i * to_row), _mm256_castsi256_si128(r[i]));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + (i + 16) * to_row), _mm256_extracti128_si256(r[i], 1));
    }
  }

  // Stores eight pixels at a time. The last eight may overlap with those before.
  template <uint32_t kChannels>
  L3_INLINE static void store_pixels(uint8_t* to, const uint32_t* pixels, uint32_t count) {
    if (count < 8) {
      Base::template store_pixels<kChannels>(to, pixels, count);
      return;
    }
    for (uint32_t i = 0; i + 8 < count; i += 8) store_eight<kChannels>(to + size_t{i} * kChannels, pixels + i);
    store_eight<kChannels>(to + size_t{count - 8} * kChannels, pixels + (count - 8));
  }

 private:
  // Picks the bytes of each lane that kOrder names, the lowest one first. 0x80 gives a zero.
  template <uint32_t kOrder>
  L3_INLINE static Lanes shuffle(Lanes a) {
    constexpr int kFirst = static_cast<int>(kOrder), kSecond = static_cast<int>(kOrder + 0x04040404),
                  kThird = static_cast<int>(kOrder + 0x08080808), kFourth = static_cast<int>(kOrder + 0x0C0C0C0C);
    return lanes(_mm256_shuffle_epi8(
        native(a), _mm256_set_epi32(kFourth, kThird, kSecond, kFirst, kFourth, kThird, kSecond, kFirst)));
  }
  template <uint32_t kChannels>
  L3_INLINE static void store_eight(uint8_t* to, const uint32_t* pixels) {
    const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(pixels));
    if constexpr (kChannels == 1) {
      const __m256i bytes = _mm256_shuffle_epi8(words, _mm256_set1_epi32(0x0C080400));
      store_8(to, _mm_unpacklo_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1)));
    } else if constexpr (kChannels == 2) {
      const __m256i bytes = _mm256_shuffle_epi8(words, _mm256_set1_epi64x(0x0D0C090805040100));
      store_16(to, _mm256_castsi256_si128(_mm256_permute4x64_epi64(bytes, 8)));
    } else if constexpr (kChannels == 3) {
      const __m128i order = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
      const __m256i bytes = _mm256_shuffle_epi8(words, _mm256_broadcastsi128_si256(order));
      const __m256i joined = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 3));
      store_16(to, _mm256_castsi256_si128(joined));
      store_8(to + 16, _mm256_extracti128_si256(joined, 1));
    } else {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), words);
    }
  }
  L3_INLINE static void store_16(uint8_t* to, __m128i v) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), v); }
  L3_INLINE static void store_8(uint8_t* to, __m128i v) { _mm_storel_epi64(reinterpret_cast<__m128i*>(to), v); }
};

}  // namespace l3
