// Records and planes of dense tiles in AVX2 registers: two parts of 16 records, planes of 32 bytes.
#pragma once

#include "engine/dense_warp.h"
#include "targets/word_warp_avx2.h"

namespace l3 {

// The rows of contexts, from distances and patterns. Tables of 16 bytes fit registers. At most one zone begins among 16
// distances, so a comparison tells which of two.
L3_INLINE __m256i rows_of_contexts(const DenseTables& tables, uint32_t channel, __m256i distance, __m256i pattern) {
  const auto table = [](const uint8_t* from) __attribute__((always_inline)) {
    return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(from)));
  };
  const __m256i nibbles = _mm256_set1_epi8(15);
  const __m256i upper = _mm256_and_si256(_mm256_srli_epi16(distance, 4), nibbles);
  const __m256i begins = _mm256_shuffle_epi8(table(kZoneSteps.begin), upper);
  const __m256i is_later = _mm256_cmpeq_epi8(_mm256_max_epu8(distance, begins), distance);
  const __m256i zone = _mm256_sub_epi8(_mm256_shuffle_epi8(table(kZoneSteps.first), upper), is_later);
  const __m256i of_zone = _mm256_shuffle_epi8(table(tables.zone_row[channel]), zone);
  const uint8_t* const rows = tables.pattern_row[channel];
  const __m256i index = _mm256_and_si256(pattern, nibbles);
  const __m256i bit_4 = _mm256_slli_epi16(pattern, 3), bit_5 = _mm256_slli_epi16(pattern, 2);
  const __m256i low =
      _mm256_blendv_epi8(_mm256_shuffle_epi8(table(rows), index), _mm256_shuffle_epi8(table(rows + 16), index), bit_4);
  const __m256i high = _mm256_blendv_epi8(_mm256_shuffle_epi8(table(rows + 32), index),
                                          _mm256_shuffle_epi8(table(rows + 48), index), bit_4);
  return _mm256_add_epi8(of_zone, _mm256_blendv_epi8(low, high, bit_5));
}

template <class Self>
struct Avx2DenseWarpOf : DenseWarp<Self, Avx2WordWarpOf<Self>> {
  using Base = DenseWarp<Self, Avx2WordWarpOf<Self>>;
  using Base::kPartLanes, Base::store, Base::native, Base::lanes;
  using typename Base::Lanes, typename Base::Plane, typename Base::Records;

  L3_INLINE static __m256i native(Records a) { return (__m256i)a.v; }
  L3_INLINE static Records records(__m256i v) { return {(decltype(Records::v))v}; }

  template <uint32_t kValue>
  L3_INLINE static __m256i all(Constant<kValue> value) {
    return native(Base::splat(value));
  }

  // A byte of each record's weight times its sample, which is unsigned, and the same for its error. No sum of the two
  // products saturates: the weights of a sample and of its error add up to at most 128.
  static constexpr uint32_t kWeightWords = 1;
  L3_INLINE static void put_weights(int32_t of_low, int32_t of_high, uint16_t* to, uint32_t) {
    to[0] = byte_pair(of_low, of_high);
  }
  template <uint32_t>
  L3_INLINE static Records add_products(Records values, const uint16_t* weights, Records sum) {
    return records(_mm256_add_epi16(
        native(sum),
        _mm256_maddubs_epi16(native(values), _mm256_load_si256(reinterpret_cast<const __m256i*>(weights)))));
  }
  L3_INLINE static Records distances(Records a, Records b) {
    return records(_mm256_sub_epi8(_mm256_max_epu8(native(a), native(b)), _mm256_min_epu8(native(a), native(b))));
  }
  L3_INLINE static Records magnitudes(Records a) {
    return records(_mm256_abs_epi8(_mm256_xor_si256(native(a), all(constant<0x80808080>))));
  }
  L3_INLINE static Records merge(Records low, Records high) {
    return records(_mm256_blendv_epi8(native(low), native(high), all(constant<0xFF00FF00>)));
  }
  L3_INLINE static Records not_below(Records a, Records b) {
    return records(_mm256_cmpeq_epi8(_mm256_max_epu8(native(a), native(b)), native(a)));
  }
  L3_INLINE static Records repeat_two(const uint16_t* two) {
    int32_t both;
    std::memcpy(&both, two, 4);
    return records(_mm256_set1_epi32(both));
  }
  L3_INLINE static Records shift_up_one(Records a, Records before) {
    return records(_mm256_alignr_epi8(native(a), middle(a, before), 14));
  }
  L3_INLINE static Records shift_up_two(Records a, Records before) {
    return records(_mm256_alignr_epi8(native(a), middle(a, before), 12));
  }

  // Planes have the order that packing two registers of records gives: lanes 0 to 7, 16 to 23, then the others.
  // Unpacking restores the order of the lanes.
  L3_INLINE static __m256i bytes(const Plane& a) { return (__m256i)a.v[0]; }
  L3_INLINE static Plane plane(__m256i v) { return {{(typename Plane::Vector)v}}; }

  L3_INLINE static void split_sums(const Records* sums, Plane& p, Plane& up, Records* predictions) {
    __m256i numbers[2], masks[2];
    const __m256i most = all(constant<((256 << kWeightShift) - 1) * 0x10001>);
    for (int i = 0; i < 2; ++i) {
      const __m256i within = _mm256_min_epi16(_mm256_max_epi16(native(sums[i]), _mm256_setzero_si256()), most);
      masks[i] = _mm256_srai_epi16(_mm256_slli_epi16(within, 16 - kWeightShift), 15);
      numbers[i] = _mm256_srli_epi16(within, kWeightShift);
      predictions[i] = records(_mm256_or_si256(numbers[i], all(constant<kNoRecord * 0x10001>)));
    }
    p = plane(_mm256_packus_epi16(numbers[0], numbers[1]));
    up = plane(_mm256_packs_epi16(masks[0], masks[1]));
  }
  L3_INLINE static Plane pack_bytes(const Lanes* words) {
    const __m256i packed = _mm256_packus_epi16(_mm256_packus_epi32(native(words[0]), native(words[1])),
                                               _mm256_packus_epi32(native(words[2]), native(words[3])));
    return plane(_mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 2, 6, 1, 5, 3, 7)));
  }
  L3_INLINE static Plane pack_levels(const Records* activities) {
    const __m256i zero = _mm256_setzero_si256(), least = all(constant<(130 << 2) * 0x10001>);
    const auto levels = [](__m256i words) __attribute__((always_inline)) {
      return _mm256_srli_epi32(_mm256_castps_si256(_mm256_cvtepi32_ps(words)), 21);
    };
    const auto of = [&](const Records& part) __attribute__((always_inline)) {
      return _mm256_sub_epi16(_mm256_packus_epi32(levels(_mm256_unpacklo_epi16(native(part), zero)),
                                                  levels(_mm256_unpackhi_epi16(native(part), zero))),
                              least);
    };
    return plane(_mm256_packus_epi16(of(activities[0]), of(activities[1])));
  }
  // Products of the bytes' top bits with powers of two put them in place.
  L3_INLINE static Plane pack_signs(const Records* a, const Records* b, const Records* c) {
    const __m256i tops = all(constant<0x80808080>);
    const auto patterns = [&](int i) __attribute__((always_inline)) {
      const auto bits = [&](const Records* of, __m256i places) __attribute__((always_inline)) {
        return _mm256_maddubs_epi16(_mm256_and_si256(native(of[i]), tops), places);
      };
      return _mm256_srli_epi16(
          _mm256_add_epi16(_mm256_add_epi16(bits(a, all(constant<0x04010401>)), bits(b, all(constant<0x08020802>))),
                           bits(c, all(constant<0x20102010>))),
          7);
    };
    return plane(
        _mm256_xor_si256(_mm256_packus_epi16(patterns(0), patterns(1)), all(constant<kErrorSigns * 0x01010101u>)));
  }
  L3_INLINE static Plane rows(const DenseTables& tables, uint32_t channel, const Plane& distance,
                              const Plane& pattern) {
    return plane(rows_of_contexts(tables, channel, bytes(distance), bytes(pattern)));
  }
  L3_INLINE static void store_places(const Plane& levels, const Plane& rows, const Lanes* states, uint32_t* places) {
    const __m256i scale = all(constant<0x40014001>), zero = _mm256_setzero_si256();
    const auto put = [&](uint32_t part, __m256i context) __attribute__((always_inline)) {
      const Lanes bucket = (states[part] & constant<kProbabilities - kProbabilities / kTableBuckets>) << 12;
      store(places + part * kPartLanes, lanes(context) | bucket);
    };
    const auto put_two = [&](uint32_t part, __m256i both) __attribute__((always_inline)) {
      const __m256i contexts = _mm256_permute4x64_epi64(_mm256_maddubs_epi16(both, scale), 0xD8);
      put(part, _mm256_unpacklo_epi16(contexts, zero));
      put(part + 1, _mm256_unpackhi_epi16(contexts, zero));
    };
    put_two(0, _mm256_unpacklo_epi8(bytes(levels), bytes(rows)));
    put_two(2, _mm256_unpackhi_epi8(bytes(levels), bytes(rows)));
  }
  template <class FirstBucket, class Places>
  L3_INLINE static void look_up_places(FirstBucket first_bucket, const Bucket* buckets, Places places, Lanes& own,
                                       Lanes& other) {
    const auto two = [&](uint32_t i) __attribute__((always_inline)) {
      return at_two_places(first_bucket, buckets, places + i, two_buckets);
    };
    const __m256 low = (__m256)_mm256_inserti128_si256(_mm256_castsi128_si256(two(0)), two(4), 1);
    const __m256 high = (__m256)_mm256_inserti128_si256(_mm256_castsi128_si256(two(2)), two(6), 1);
    own = lanes((__m256i)_mm256_shuffle_ps(low, high, 0x88));
    other = lanes((__m256i)_mm256_shuffle_ps(low, high, 0xDD));
  }
  L3_INLINE static void records(const Plane& samples, const Plane& predictions, Records* r) {
    const __m256i tops = all(constant<0x80808080>), s = bytes(samples);
    const __m256i signed_error =
        _mm256_subs_epi8(_mm256_xor_si256(s, tops), _mm256_xor_si256(bytes(predictions), tops));
    const __m256i error = _mm256_xor_si256(signed_error, tops);
    r[0] = records(_mm256_unpacklo_epi8(s, error));
    r[1] = records(_mm256_unpackhi_epi8(s, error));
  }
  template <uint32_t kChannels>
  L3_INLINE static void pixels(const Plane* channels, Lanes* r) {
    const auto of = [&](uint32_t c) __attribute__((always_inline)) {
      return c < kChannels ? bytes(channels[c]) : _mm256_setzero_si256();
    };
    const auto put = [&](int i, __m256i low, __m256i high) __attribute__((always_inline)) {
      const __m256i first = _mm256_unpacklo_epi16(low, high), second = _mm256_unpackhi_epi16(low, high);
      r[i] = lanes(_mm256_permute2x128_si256(first, second, 0x20));
      r[i + 1] = lanes(_mm256_permute2x128_si256(first, second, 0x31));
    };
    put(0, _mm256_unpacklo_epi8(of(0), of(1)), _mm256_unpacklo_epi8(of(2), of(3)));
    put(2, _mm256_unpackhi_epi8(of(0), of(1)), _mm256_unpackhi_epi8(of(2), of(3)));
  }

 private:
  // The upper half of `before` and the lower half of `a`.
  L3_INLINE static __m256i middle(Records a, Records before) {
    return _mm256_permute2x128_si256(native(before), native(a), 0x21);
  }
};

struct Avx2DenseWarp : Avx2DenseWarpOf<Avx2DenseWarp> {};

}  // namespace l3
