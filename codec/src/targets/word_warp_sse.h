// The dense method's warp in SSE registers: eight parts of four lanes. Compiled for any x86-64 processor, and for those
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
  using typename Base::Lanes, typename Base::Mask, typename Base::Plane, typename Base::Tables, typename Base::Vector;

  L3_INLINE static __m128i native(Lanes a) { return (__m128i)a.v; }
  L3_INLINE static Lanes lanes(__m128i v) { return {(Vector)v}; }

#if defined(__SSE4_1__)
  template <int32_t kMin, int32_t kMax>
  L3_INLINE static Lanes clamp(Lanes a) {
    return lanes(_mm_min_epi32(_mm_max_epi32(native(a), _mm_set1_epi32(kMin)), _mm_set1_epi32(kMax)));
  }
  L3_INLINE static Mask less(Lanes a, uint32_t b) {
    return lanes(_mm_cmpeq_epi32(_mm_min_epu32(native(a), native(splat(b - 1))), native(a)));
  }
  L3_INLINE static Mask at_least(Lanes a, uint32_t b) {
    return lanes(_mm_cmpeq_epi32(_mm_max_epu32(native(a), native(splat(b))), native(a)));
  }
  L3_INLINE static Lanes select(Mask mask, Lanes a, Lanes b) {
    return lanes(_mm_blendv_epi8(native(b), native(a), native(mask)));
  }
  L3_INLINE static Lanes merge_halves(Lanes low, Lanes high) {
    return lanes(_mm_blend_epi16(native(low), native(high), 0xAA));
  }
#endif
  L3_INLINE static Mask less_small(Lanes a, Lanes b) { return lanes(_mm_cmpgt_epi32(native(b), native(a))); }
  L3_INLINE static Mask below_floor(Lanes state) {
    return lanes(_mm_cmpeq_epi32(_mm_srli_epi32(native(state), 16), _mm_setzero_si128()));
  }
  L3_INLINE static uint32_t bits(Mask mask) {
    return static_cast<uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(native(mask))));
  }
  L3_INLINE static Lanes splat_pair(const uint32_t* pair) {
    const __m128i both = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(pair));
    return lanes(_mm_unpacklo_epi64(both, both));
  }
#if defined(__SSSE3__)
  L3_INLINE static Lanes magnitude_pairs(Lanes a) { return lanes(_mm_abs_epi16(native(a))); }
#else
  L3_INLINE static Lanes magnitude_pairs(Lanes a) {
    return lanes(_mm_max_epi16(native(a), _mm_sub_epi16(_mm_setzero_si128(), native(a))));
  }
#endif

  // ---- planes have the order of the lanes

  L3_INLINE static __m128i bytes(const Plane& a, uint32_t i) { return (__m128i)a.v[i]; }
  L3_INLINE static Plane plane(__m128i low, __m128i high) {
    return {{(typename Plane::Vector)low, (typename Plane::Vector)high}};
  }
  L3_INLINE static void split_sums(const Lanes* sums, Plane& p, Plane& up, Lanes* predictions) {
    const __m128i zero = _mm_setzero_si128(), most = _mm_set1_epi16((256 << kWeightShift) - 1);
    __m128i numbers[4], masks[4];
    for (uint32_t i = 0; i < 4; ++i) {
      const __m128i sum = _mm_packs_epi32(native(sums[2 * i]), native(sums[2 * i + 1]));
      const __m128i within = _mm_min_epi16(_mm_max_epi16(sum, zero), most);
      masks[i] = _mm_srai_epi16(_mm_slli_epi16(within, 16 - kWeightShift), 15);
      numbers[i] = _mm_srli_epi16(within, kWeightShift);
      predictions[2 * i] = lanes(_mm_unpacklo_epi16(numbers[i], zero));
      predictions[2 * i + 1] = lanes(_mm_unpackhi_epi16(numbers[i], zero));
    }
    p = plane(_mm_packus_epi16(numbers[0], numbers[1]), _mm_packus_epi16(numbers[2], numbers[3]));
    up = plane(_mm_packs_epi16(masks[0], masks[1]), _mm_packs_epi16(masks[2], masks[3]));
  }
  L3_INLINE static Plane pack_bytes(const Lanes* words) {
    const auto half = [&](const Lanes* of) {
      return _mm_packus_epi16(_mm_packs_epi32(native(of[0]), native(of[1])),
                              _mm_packs_epi32(native(of[2]), native(of[3])));
    };
    return plane(half(words), half(words + 4));
  }
  L3_INLINE static Plane pack_levels(const Lanes* activities) {
    const auto levels = [&](uint32_t i) {
      return _mm_srli_epi32(_mm_castps_si128(_mm_cvtepi32_ps(native(activities[i]))), 21);
    };
    const auto four = [&](uint32_t i) {
      return _mm_sub_epi16(_mm_packs_epi32(levels(i), levels(i + 1)), _mm_set1_epi16(130 << 2));
    };
    return plane(_mm_packus_epi16(four(0), four(2)), _mm_packus_epi16(four(4), four(6)));
  }
#if defined(__SSE4_1__)
  // As with AVX2.
  L3_INLINE static Plane pack_signs(const Lanes* a, const Lanes* b, const Lanes* c) {
    const auto patterns = [&](uint32_t i) {
      const auto bits = [&](const Lanes* of, int places) {
        const __m128i packed = _mm_packs_epi16(native(of[i]), native(of[i + 1]));
        return _mm_maddubs_epi16(_mm_and_si128(packed, _mm_set1_epi8(-128)), _mm_set1_epi32(places));
      };
      return _mm_srli_epi16(_mm_add_epi16(_mm_add_epi16(bits(a, 0x04010401), bits(b, 0x08020802)), bits(c, 0x20102010)),
                            7);
    };
    const auto half = [&](uint32_t i) {
      return _mm_xor_si128(_mm_packus_epi16(patterns(i), patterns(i + 2)), _mm_set1_epi8(3));
    };
    return plane(half(0), half(4));
  }
  L3_INLINE static Plane rows(const Tables& tables, uint32_t channel, const Plane& distance, const Plane& pattern) {
    return plane(rows(tables, channel, bytes(distance, 0), bytes(pattern, 0)),
                 rows(tables, channel, bytes(distance, 1), bytes(pattern, 1)));
  }
#else
  L3_INLINE static Plane pack_signs(const Lanes* a, const Lanes* b, const Lanes* c) {
    const auto patterns = [&](uint32_t i) {
      const auto bits = [&](const Lanes* of, int places) {
        return _mm_madd_epi16(_mm_srli_epi16(native(of[i]), 15), _mm_set1_epi32(places));
      };
      return _mm_add_epi32(_mm_add_epi32(bits(a, 0x00040001), bits(b, 0x00080002)), bits(c, 0x00200010));
    };
    const auto half = [&](uint32_t i) {
      const __m128i all = _mm_packus_epi16(_mm_packs_epi32(patterns(i), patterns(i + 1)),
                                           _mm_packs_epi32(patterns(i + 2), patterns(i + 3)));
      return _mm_xor_si128(all, _mm_set1_epi8(3));
    };
    return plane(half(0), half(4));
  }
#endif
  L3_INLINE static void store_places(const Plane& levels, const Plane& rows, const Lanes* states, uint32_t* places) {
    const __m128i zero = _mm_setzero_si128();
    const auto put = [&](uint32_t part, __m128i context) {
      const Lanes bucket = (states[part] & constant<kProbabilities - kProbabilities / kTableBuckets>) << 12;
      store(places + part * kPartLanes, lanes(context) | bucket);
    };
    for (uint32_t i = 0; i < 2; ++i) {
      const __m128i level = bytes(levels, i), row = bytes(rows, i);
      const __m128i low =
          _mm_add_epi16(_mm_unpacklo_epi8(level, zero), _mm_slli_epi16(_mm_unpacklo_epi8(row, zero), 6));
      const __m128i high =
          _mm_add_epi16(_mm_unpackhi_epi8(level, zero), _mm_slli_epi16(_mm_unpackhi_epi8(row, zero), 6));
      put(4 * i, _mm_unpacklo_epi16(low, zero));
      put(4 * i + 1, _mm_unpackhi_epi16(low, zero));
      put(4 * i + 2, _mm_unpacklo_epi16(high, zero));
      put(4 * i + 3, _mm_unpackhi_epi16(high, zero));
    }
  }
  L3_INLINE static void look_up_places(const uint16_t* first_bucket, const Bucket* buckets, const uint32_t* places,
                                       Lanes& own, Lanes& other) {
    const auto two = [&](uint32_t i) { return at_two_places(first_bucket, buckets, places + i, two_buckets); };
    unzip(two(0), two(2), own, other);
  }
  template <uint32_t kBuckets, class TableOf>
  L3_INLINE static void look_up_in(const TableOf& table_of, const Bucket* buckets, Lanes bucket, Lanes& own,
                                   Lanes& other) {
    const auto place = [&](uint32_t i) { return buckets + table_of(i) * kBuckets + bucket.v[i]; };
    unzip(two_buckets(place(0), place(1)), two_buckets(place(2), place(3)), own, other);
  }
  L3_INLINE static Plane saturated_difference(const Plane& a, const Plane& b) {
    const __m128i tops = _mm_set1_epi8(-128);
    const auto half = [&](uint32_t i) {
      return _mm_subs_epi8(_mm_xor_si128(bytes(a, i), tops), _mm_xor_si128(bytes(b, i), tops));
    };
    return plane(half(0), half(1));
  }
  L3_INLINE static void records(const Plane& samples, const Plane& errors, Lanes* r) {
    const __m128i zero = _mm_setzero_si128();
    const auto put = [&](uint32_t i, __m128i sample, __m128i error) {
      const __m128i signed_error = _mm_srai_epi16(error, 8);
      r[i] = lanes(_mm_unpacklo_epi16(sample, signed_error));
      r[i + 1] = lanes(_mm_unpackhi_epi16(sample, signed_error));
    };
    for (uint32_t i = 0; i < 2; ++i) {
      put(4 * i, _mm_unpacklo_epi8(bytes(samples, i), zero), _mm_unpacklo_epi8(zero, bytes(errors, i)));
      put(4 * i + 2, _mm_unpackhi_epi8(bytes(samples, i), zero), _mm_unpackhi_epi8(zero, bytes(errors, i)));
    }
  }
  template <uint32_t kChannels>
  L3_INLINE static void pixels(const Plane* channels, Lanes* r) {
    const auto put = [&](uint32_t i, __m128i low, __m128i high) {
      r[i] = lanes(_mm_unpacklo_epi16(low, high));
      r[i + 1] = lanes(_mm_unpackhi_epi16(low, high));
    };
    for (uint32_t i = 0; i < 2; ++i) {
      const auto of = [&](uint32_t c) { return c < kChannels ? bytes(channels[c], i) : _mm_setzero_si128(); };
      put(4 * i, _mm_unpacklo_epi8(of(0), of(1)), _mm_unpacklo_epi8(of(2), of(3)));
      put(4 * i + 2, _mm_unpackhi_epi8(of(0), of(1)), _mm_unpackhi_epi8(of(2), of(3)));
    }
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

 private:
  L3_INLINE static __m128i two_buckets(const Bucket* a, const Bucket* b) {
    const __m128 low = _mm_castsi128_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(a)));
    return _mm_castps_si128(_mm_loadh_pi(low, reinterpret_cast<const __m64*>(b)));
  }
  L3_INLINE static void unzip(__m128i low, __m128i high, Lanes& own, Lanes& other) {
    const __m128 a = _mm_castsi128_ps(low), b = _mm_castsi128_ps(high);
    own = lanes(_mm_castps_si128(_mm_shuffle_ps(a, b, 0x88)));
    other = lanes(_mm_castps_si128(_mm_shuffle_ps(a, b, 0xDD)));
  }
#if defined(__SSE4_1__)
  L3_INLINE static __m128i rows(const Tables& tables, uint32_t channel, __m128i distance, __m128i pattern) {
    const auto table = [](const uint8_t* from) { return _mm_load_si128(reinterpret_cast<const __m128i*>(from)); };
    const __m128i nibbles = _mm_set1_epi8(15);
    const __m128i upper = _mm_and_si128(_mm_srli_epi16(distance, 4), nibbles);
    const __m128i begins = _mm_shuffle_epi8(table(kZoneSteps.begin), upper);
    const __m128i is_later = _mm_cmpeq_epi8(_mm_max_epu8(distance, begins), distance);
    const __m128i zone = _mm_sub_epi8(_mm_shuffle_epi8(table(kZoneSteps.first), upper), is_later);
    const __m128i of_zone = _mm_shuffle_epi8(table(tables.zone_row[channel]), zone);
    const uint8_t* const from = tables.pattern_row[channel];
    const __m128i index = _mm_and_si128(pattern, nibbles);
    const __m128i bit_4 = _mm_slli_epi16(pattern, 3), bit_5 = _mm_slli_epi16(pattern, 2);
    const __m128i low =
        _mm_blendv_epi8(_mm_shuffle_epi8(table(from), index), _mm_shuffle_epi8(table(from + 16), index), bit_4);
    const __m128i high =
        _mm_blendv_epi8(_mm_shuffle_epi8(table(from + 32), index), _mm_shuffle_epi8(table(from + 48), index), bit_4);
    return _mm_add_epi8(of_zone, _mm_blendv_epi8(low, high, bit_5));
  }
#endif
};

}  // namespace l3
