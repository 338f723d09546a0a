// Words in AVX-512 registers: two parts of 16 lanes. Compiled for Cascade Lake and later: uses VNNI, but not VBMI.
#pragma once

#include "engine/dense_warp.h"
#include "targets/word_warp_avx2.h"

namespace l3 {

// Tiles of at most this many pixels are decoded with AVX2: most lanes of wide vectors would wait most of the time.
constexpr uint32_t kSmallTile = 32 * 32;

struct Avx2WordWarp : Avx2WordWarpOf<Avx2WordWarp> {};

template <class Self>
struct Avx512WordWarp : WordWarp<Self, 64> {
  using Base = WordWarp<Self, 64>;
  using Base::splat;
  using typename Base::Lanes, typename Base::Vector;
  using Mask = __mmask16;
  L3_INLINE static __m512i native(Lanes a) { return (__m512i)a.v; }
  L3_INLINE static Lanes lanes(__m512i v) { return {(Vector)v}; }

  L3_INLINE static Mask less(Lanes a, uint32_t b) { return less_small(a, splat(b)); }
  L3_INLINE static Mask less_small(Lanes a, Lanes b) { return _mm512_cmplt_epu32_mask(native(a), native(b)); }
  L3_INLINE static Mask below_floor(Lanes state) { return less(state, kStateFloor); }
  L3_INLINE static Mask at_least(Lanes a, uint32_t b) { return _mm512_cmpge_epu32_mask(native(a), native(splat(b))); }
  L3_INLINE static Mask equal(Lanes a, uint32_t b) { return _mm512_cmpeq_epi32_mask(native(a), native(splat(b))); }
  L3_INLINE static Mask both(Mask a, Mask b) { return static_cast<Mask>(a & b); }
  L3_INLINE static Mask and_not(Mask a, Mask b) { return static_cast<Mask>(a & ~b); }
  L3_INLINE static Lanes select(Mask mask, Lanes a, Lanes b) {
    return lanes(_mm512_mask_blend_epi32(mask, native(b), native(a)));
  }
  L3_INLINE static uint32_t bits(Mask mask) { return mask; }

  template <uint32_t kByte>
  L3_INLINE static Lanes byte_of(Lanes word) {
    constexpr uint32_t kOrder = 0x80808000 + kByte;
    return lanes(_mm512_shuffle_epi8(
        native(word), _mm512_set4_epi32(static_cast<int>(kOrder + 0x0C0C0C0C), static_cast<int>(kOrder + 0x08080808),
                                        static_cast<int>(kOrder + 0x04040404), static_cast<int>(kOrder))));
  }
  L3_INLINE static void refill(Lanes& state, Mask mask, const uint8_t* bytes, uint32_t& at) {
    const __m512i words = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes + at)));
    const __m512i taken = _mm512_maskz_expand_epi32(mask, words);
    state = lanes(_mm512_mask_or_epi32(native(state), mask, _mm512_slli_epi32(native(state), 16), taken));
    at += 2 * static_cast<uint32_t>(__builtin_popcount(mask));
  }

  // Looks up the buckets of 16 lanes: see DenseWarp.
  template <class FirstBucket, class Places>
  L3_INLINE static void look_up_places(FirstBucket first_bucket, const Bucket* buckets, Places places, Lanes& own,
                                       Lanes& other) {
    const auto two = [&](uint32_t i) __attribute__((always_inline)) {
      return at_two_places(first_bucket, buckets, places + i, two_buckets);
    };
    __m128i low[4], high[4];
    for (uint32_t i = 0; i < 4; ++i) {
      low[i] = two(4 * i);
      high[i] = two(4 * i + 2);
    }
    join_buckets(low, high, own, other);
  }
  // Joins the buckets of 16 lanes: of each four, `low` has the first two and `high` the others.
  L3_INLINE static void join_buckets(const __m128i (&low)[4], const __m128i (&high)[4], Lanes& own, Lanes& other) {
    const auto join = [](const __m128i* of) __attribute__((always_inline)) {
      const __m256i first = _mm256_inserti128_si256(_mm256_castsi128_si256(of[0]), of[1], 1);
      const __m256i second = _mm256_inserti128_si256(_mm256_castsi128_si256(of[2]), of[3], 1);
      return (__m512)_mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1);
    };
    const __m512 l = join(low), h = join(high);
    own = lanes((__m512i)_mm512_shuffle_ps(l, h, 0x88));
    other = lanes((__m512i)_mm512_shuffle_ps(l, h, 0xDD));
  }

  using Base::transpose;
  L3_INLINE static void transpose(const uint32_t* from, size_t from_row, uint32_t* to, size_t to_row) {
    Avx2WordWarp::transpose(from, from_row, to, to_row);
  }
  L3_INLINE static void turn_bytes(const uint8_t* from, uint32_t lanes, uint8_t* to, size_t to_row) {
    Avx2WordWarp::turn_bytes(from, lanes, to, to_row);
  }
  template <uint32_t kChannels>
  L3_INLINE static void store_pixels(uint8_t* to, const uint32_t* pixels, uint32_t count) {
    Avx2WordWarp::store_pixels<kChannels>(to, pixels, count);
  }
};

}  // namespace l3
