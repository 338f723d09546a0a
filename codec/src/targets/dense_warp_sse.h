// Records and planes of dense tiles in SSE registers: four parts of eight records, planes of two registers, both in the
// order of the lanes.
#pragma once

#include "engine/dense_warp.h"
#include "targets/word_warp_sse.h"

namespace l3 {

// `Self` is the derived warp. Each way of compiling needs another one.
template <class Self>
struct SseDenseWarp : DenseWarp<Self, SseWordWarp<Self>> {
  using Base = DenseWarp<Self, SseWordWarp<Self>>;
  using Base::kPartLanes, Base::store, Base::native, Base::lanes, Base::two_buckets, Base::unzip;
  using typename Base::Lanes, typename Base::Plane, typename Base::Records;

  L3_INLINE static __m128i native(Records a) { return (__m128i)a.v; }
  L3_INLINE static Records records(__m128i v) { return {(decltype(Records::v))v}; }
  L3_INLINE static __m128i bytes(const Plane& a, uint32_t i) { return (__m128i)a.v[i]; }
  L3_INLINE static Plane plane(__m128i low, __m128i high) {
    return {{(typename Plane::Vector)low, (typename Plane::Vector)high}};
  }

#if defined(__SSE4_1__)
  // As with AVX2.
  static constexpr uint32_t kWeightWords = 1;
  L3_INLINE static void put_weights(int32_t of_low, int32_t of_high, uint16_t* to, uint32_t) {
    to[0] = byte_pair(of_low, of_high);
  }
  template <uint32_t>
  L3_INLINE static Records add_products(Records values, const uint16_t* weights, Records sum) {
    return records(_mm_add_epi16(
        native(sum), _mm_maddubs_epi16(native(values), _mm_load_si128(reinterpret_cast<const __m128i*>(weights)))));
  }
  L3_INLINE static Records magnitudes(Records a) {
    return records(_mm_abs_epi8(_mm_xor_si128(native(a), _mm_set1_epi8(-128))));
  }
  L3_INLINE static Records merge(Records low, Records high) {
    return records(_mm_blendv_epi8(native(low), native(high), _mm_set1_epi16(-256)));
  }
  L3_INLINE static Records shift_up_one(Records a, Records before) {
    return records(_mm_alignr_epi8(native(a), native(before), 14));
  }
  L3_INLINE static Records shift_up_two(Records a, Records before) {
    return records(_mm_alignr_epi8(native(a), native(before), 12));
  }
  L3_INLINE static Plane pack_signs(const Records* a, const Records* b, const Records* c) {
    const auto patterns = [&](uint32_t i) __attribute__((always_inline)) {
      const auto bits = [&](const Records* of, int16_t places) __attribute__((always_inline)) {
        return _mm_maddubs_epi16(_mm_and_si128(native(of[i]), _mm_set1_epi8(-128)), _mm_set1_epi16(places));
      };
      return _mm_srli_epi16(_mm_add_epi16(_mm_add_epi16(bits(a, 0x0401), bits(b, 0x0802)), bits(c, 0x2010)), 7);
    };
    const auto half = [&](uint32_t i) __attribute__((always_inline)) {
      return _mm_xor_si128(_mm_packus_epi16(patterns(i), patterns(i + 1)), _mm_set1_epi8(kErrorSigns));
    };
    return plane(half(0), half(2));
  }
  L3_INLINE static Plane rows(const DenseTables& tables, uint32_t channel, const Plane& distance,
                              const Plane& pattern) {
    return plane(rows(tables, channel, bytes(distance, 0), bytes(pattern, 0)),
                 rows(tables, channel, bytes(distance, 1), bytes(pattern, 1)));
  }
#else
  L3_INLINE static Records shift_up_one(Records a, Records before) {
    return records(_mm_or_si128(_mm_slli_si128(native(a), 2), _mm_srli_si128(native(before), 14)));
  }
  L3_INLINE static Records shift_up_two(Records a, Records before) {
    return records(_mm_or_si128(_mm_slli_si128(native(a), 4), _mm_srli_si128(native(before), 12)));
  }
  L3_INLINE static Plane pack_signs(const Records* a, const Records* b, const Records* c) {
    // The upper byte gets the bits of errors of a and b, the lower byte the others. Then both are joined.
    const auto patterns = [&](uint32_t i) __attribute__((always_inline)) {
      const auto bits = [&](const Records* of, int shift, int16_t places) __attribute__((always_inline)) {
        return _mm_and_si128(_mm_srli_epi16(native(of[i]), shift), _mm_set1_epi16(places));
      };
      const __m128i of_a = bits(a, 7, 0x0101), of_b = _mm_slli_epi16(bits(b, 7, 0x0101), 1);
      const __m128i of_c = bits(c, 3, 0x1010);
      const __m128i both = _mm_or_si128(of_a, of_b);
      const __m128i low = _mm_or_si128(_mm_and_si128(_mm_or_si128(both, of_c), _mm_set1_epi16(0xFF)),
                                       _mm_srli_epi16(_mm_and_si128(both, _mm_set1_epi16(0x0300)), 6));
      return _mm_or_si128(low, _mm_srli_epi16(of_c, 7));
    };
    const auto half = [&](uint32_t i) __attribute__((always_inline)) {
      return _mm_xor_si128(_mm_packus_epi16(patterns(i), patterns(i + 1)), _mm_set1_epi8(kErrorSigns));
    };
    return plane(half(0), half(2));
  }
#endif
  L3_INLINE static Records distances(Records a, Records b) {
    return records(_mm_sub_epi8(_mm_max_epu8(native(a), native(b)), _mm_min_epu8(native(a), native(b))));
  }
  L3_INLINE static Records not_below(Records a, Records b) {
    return records(_mm_cmpeq_epi8(_mm_max_epu8(native(a), native(b)), native(a)));
  }
  L3_INLINE static Records repeat_two(const uint16_t* two) {
    int32_t both;
    std::memcpy(&both, two, 4);
    return records(_mm_set1_epi32(both));
  }
  L3_INLINE static void split_sums(const Records* sums, Plane& p, Plane& up, Records* predictions) {
    const __m128i zero = _mm_setzero_si128(), most = _mm_set1_epi16((256 << kWeightShift) - 1);
    __m128i numbers[4], masks[4];
    for (uint32_t i = 0; i < 4; ++i) {
      const __m128i within = _mm_min_epi16(_mm_max_epi16(native(sums[i]), zero), most);
      masks[i] = _mm_srai_epi16(_mm_slli_epi16(within, 16 - kWeightShift), 15);
      numbers[i] = _mm_srli_epi16(within, kWeightShift);
      predictions[i] = records(_mm_or_si128(numbers[i], _mm_set1_epi16(-32768)));
    }
    p = plane(_mm_packus_epi16(numbers[0], numbers[1]), _mm_packus_epi16(numbers[2], numbers[3]));
    up = plane(_mm_packs_epi16(masks[0], masks[1]), _mm_packs_epi16(masks[2], masks[3]));
  }
  L3_INLINE static Plane pack_bytes(const Lanes* words) {
    const auto half = [&](const Lanes* of) __attribute__((always_inline)) {
      return _mm_packus_epi16(_mm_packs_epi32(native(of[0]), native(of[1])),
                              _mm_packs_epi32(native(of[2]), native(of[3])));
    };
    return plane(half(words), half(words + 4));
  }
  L3_INLINE static Plane pack_levels(const Records* activities) {
    const __m128i zero = _mm_setzero_si128();
    const auto levels = [](__m128i words) __attribute__((always_inline)) {
      return _mm_srli_epi32(_mm_castps_si128(_mm_cvtepi32_ps(words)), 21);
    };
    const auto of = [&](uint32_t i) __attribute__((always_inline)) {
      const __m128i part = native(activities[i]);
      return _mm_sub_epi16(
          _mm_packs_epi32(levels(_mm_unpacklo_epi16(part, zero)), levels(_mm_unpackhi_epi16(part, zero))),
          _mm_set1_epi16(130 << 2));
    };
    return plane(_mm_packus_epi16(of(0), of(1)), _mm_packus_epi16(of(2), of(3)));
  }
  L3_INLINE static void store_places(const Plane& levels, const Plane& rows, const Lanes* states, uint32_t* places) {
    const __m128i zero = _mm_setzero_si128();
    const auto put = [&](uint32_t part, __m128i context) __attribute__((always_inline)) {
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
  template <class FirstBucket, class Places>
  L3_INLINE static void look_up_places(FirstBucket first_bucket, const Bucket* buckets, Places places, Lanes& own,
                                       Lanes& other) {
    const auto two = [&](uint32_t i) __attribute__((always_inline)) {
      return at_two_places(first_bucket, buckets, places + i, two_buckets);
    };
    unzip(two(0), two(2), own, other);
  }
  L3_INLINE static void records(const Plane& samples, const Plane& predictions, Records* r) {
    const __m128i tops = _mm_set1_epi8(-128);
    for (uint32_t i = 0; i < 2; ++i) {
      const __m128i s = bytes(samples, i);
      const __m128i signed_error = _mm_subs_epi8(_mm_xor_si128(s, tops), _mm_xor_si128(bytes(predictions, i), tops));
      const __m128i error = _mm_xor_si128(signed_error, tops);
      r[2 * i] = records(_mm_unpacklo_epi8(s, error));
      r[2 * i + 1] = records(_mm_unpackhi_epi8(s, error));
    }
  }
  template <uint32_t kChannels>
  L3_INLINE static void pixels(const Plane* channels, Lanes* r) {
    const auto put = [&](uint32_t i, __m128i low, __m128i high) __attribute__((always_inline)) {
      r[i] = lanes(_mm_unpacklo_epi16(low, high));
      r[i + 1] = lanes(_mm_unpackhi_epi16(low, high));
    };
    for (uint32_t i = 0; i < 2; ++i) {
      const auto of = [&](uint32_t c) __attribute__((always_inline)) {
        return c < kChannels ? bytes(channels[c], i) : _mm_setzero_si128();
      };
      put(4 * i, _mm_unpacklo_epi8(of(0), of(1)), _mm_unpacklo_epi8(of(2), of(3)));
      put(4 * i + 2, _mm_unpackhi_epi8(of(0), of(1)), _mm_unpackhi_epi8(of(2), of(3)));
    }
  }

#if defined(__SSE4_1__)
 private:
  L3_INLINE static __m128i rows(const DenseTables& tables, uint32_t channel, __m128i distance, __m128i pattern) {
    const auto table = [](const uint8_t* from) __attribute__((always_inline)) {
      return _mm_load_si128(reinterpret_cast<const __m128i*>(from));
    };
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
