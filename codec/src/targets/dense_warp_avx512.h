// Records and planes of dense tiles in AVX-512 registers: the records of all 32 lanes in one, planes of 32 bytes in
// AVX2 registers, both in the order of the lanes.
#pragma once

#include "targets/dense_warp_avx2.h"
#include "targets/word_warp_avx512.h"

namespace l3 {

template <class Self>
struct Avx512DenseWarpOf : DenseWarp<Self, Avx512WordWarp<Self>> {
  using Words = Avx512WordWarp<Self>;
  using Base = DenseWarp<Self, Words>;
  using Base::kPartLanes, Base::native, Base::lanes, Base::store, Words::look_up_places;
  using typename Base::Lanes, typename Base::Plane, typename Base::Records;

  L3_INLINE static __m512i native(Records a) { return (__m512i)a.v; }
  L3_INLINE static Records records(__m512i v) { return {(decltype(Records::v))v}; }
  L3_INLINE static __m256i bytes(const Plane& a) { return (__m256i)a.v[0]; }
  L3_INLINE static Plane plane(__m256i v) { return {{(typename Plane::Vector)v}}; }
  L3_INLINE static Plane plane(__m128i low, __m128i high) { return plane(_mm256_set_m128i(high, low)); }
  // Half of the records, as words.
  template <int kHalf>
  L3_INLINE static __m512i half(__m512i v) {
    return _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(v, kHalf));
  }

  // As with AVX2.
  static constexpr uint32_t kWeightWords = 1;
  L3_INLINE static void put_weights(int32_t of_low, int32_t of_high, uint16_t* to, uint32_t) {
    to[0] = byte_pair(of_low, of_high);
  }
  template <uint32_t>
  L3_INLINE static Records add_products(Records values, const uint16_t* weights, Records sum) {
    return records(_mm512_add_epi16(native(sum), _mm512_maddubs_epi16(native(values), _mm512_load_si512(weights))));
  }
  L3_INLINE static Records distances(Records a, Records b) {
    return records(_mm512_sub_epi8(_mm512_max_epu8(native(a), native(b)), _mm512_min_epu8(native(a), native(b))));
  }
  L3_INLINE static Records magnitudes(Records a) {
    return records(_mm512_abs_epi8(_mm512_xor_si512(native(a), _mm512_set1_epi8(-128))));
  }
  L3_INLINE static Records merge(Records low, Records high) {
    return records(_mm512_ternarylogic_epi32(_mm512_set1_epi16(255), native(low), native(high), 0xCA));
  }
  L3_INLINE static Records not_below(Records a, Records b) {
    return records(_mm512_movm_epi8(_mm512_cmpge_epu8_mask(native(a), native(b))));
  }
  L3_INLINE static Records repeat_two(const uint16_t* two) {
    int32_t both;
    std::memcpy(&both, two, 4);
    return records(_mm512_set1_epi32(both));
  }
  L3_INLINE static Records shift_up_one(Records a, Records before) {
    const __m512i up_two = _mm512_alignr_epi32(native(a), native(before), 15);
    // The upper half of each pair's lower neighbour, then the pair's lower half.
    return records(_mm512_or_si512(_mm512_srli_epi32(up_two, 16), _mm512_slli_epi32(native(a), 16)));
  }
  L3_INLINE static Records shift_up_two(Records a, Records before) {
    return records(_mm512_alignr_epi32(native(a), native(before), 15));
  }

  L3_INLINE static void split_sums(const Records* sums, Plane& p, Plane& up, Records* predictions) {
    const __m512i most = _mm512_set1_epi16((256 << kWeightShift) - 1);
    const __m512i within = _mm512_min_epi16(_mm512_max_epi16(native(sums[0]), _mm512_setzero_si512()), most);
    const __m512i numbers = _mm512_srli_epi16(within, kWeightShift);
    p = plane(_mm512_cvtepi16_epi8(numbers));
    up = plane(_mm256_movm_epi8(_mm512_movepi16_mask(_mm512_slli_epi16(within, 16 - kWeightShift))));
    predictions[0] = records(_mm512_or_si512(numbers, _mm512_set1_epi16(static_cast<int16_t>(kNoRecord))));
  }
  L3_INLINE static Plane pack_bytes(const Lanes* words) {
    return plane(_mm512_cvtepi32_epi8(native(words[0])), _mm512_cvtepi32_epi8(native(words[1])));
  }
  L3_INLINE static Plane pack_levels(const Records* activities) {
    const auto levels = [](__m512i words) __attribute__((always_inline)) {
      const __m512i level = _mm512_srli_epi32(_mm512_castps_si512(_mm512_cvtepi32_ps(words)), 21);
      return _mm512_cvtepi32_epi8(_mm512_sub_epi32(level, _mm512_set1_epi32(130 << 2)));
    };
    return plane(levels(half<0>(native(activities[0]))), levels(half<1>(native(activities[0]))));
  }
  L3_INLINE static Plane pack_signs(const Records* a, const Records* b, const Records* c) {
    const auto bits = [](const Records* of, int16_t places) __attribute__((always_inline)) {
      return _mm512_maddubs_epi16(_mm512_and_si512(native(of[0]), _mm512_set1_epi8(-128)), _mm512_set1_epi16(places));
    };
    const __m512i patterns = _mm512_add_epi16(_mm512_add_epi16(bits(a, 0x0401), bits(b, 0x0802)), bits(c, 0x2010));
    return plane(_mm256_xor_si256(_mm512_cvtepi16_epi8(_mm512_srli_epi16(patterns, 7)), _mm256_set1_epi8(kErrorSigns)));
  }
  L3_INLINE static Plane rows(const DenseTables& tables, uint32_t channel, const Plane& distance,
                              const Plane& pattern) {
    return plane(rows_of_contexts(tables, channel, bytes(distance), bytes(pattern)));
  }
  L3_INLINE static void store_places(const Plane& levels, const Plane& rows, const Lanes* states, uint32_t* places) {
    const __m512i contexts =
        _mm512_add_epi16(_mm512_cvtepu8_epi16(bytes(levels)), _mm512_slli_epi16(_mm512_cvtepu8_epi16(bytes(rows)), 6));
    static_assert(kLevels == 1 << 6);
    const auto bucket = [&](uint32_t part) __attribute__((always_inline)) {
      return (states[part] & constant<kProbabilities - kProbabilities / kTableBuckets>) << 12;
    };
    store(places, lanes(half<0>(contexts)) | bucket(0));
    store(places + kPartLanes, lanes(half<1>(contexts)) | bucket(1));
  }
  L3_INLINE static void records(const Plane& samples, const Plane& predictions, Records* r) {
    const __m256i tops = _mm256_set1_epi8(-128), s = bytes(samples);
    const __m256i signed_error =
        _mm256_subs_epi8(_mm256_xor_si256(s, tops), _mm256_xor_si256(bytes(predictions), tops));
    const __m512i error = _mm512_cvtepu8_epi16(_mm256_xor_si256(signed_error, tops));
    r[0] = records(_mm512_or_si512(_mm512_cvtepu8_epi16(s), _mm512_slli_epi16(error, 8)));
  }
  template <uint32_t kChannels>
  L3_INLINE static void pixels(const Plane* channels, Lanes* r) {
    const auto two = [&](uint32_t c) __attribute__((always_inline)) {
      const __m512i first = c < kChannels ? _mm512_cvtepu8_epi16(bytes(channels[c])) : _mm512_setzero_si512();
      if (c + 1 >= kChannels) return first;
      return _mm512_or_si512(first, _mm512_slli_epi16(_mm512_cvtepu8_epi16(bytes(channels[c + 1])), 8));
    };
    const __m512i low = two(0), high = two(2);
    r[0] = lanes(_mm512_or_si512(half<0>(low), _mm512_slli_epi32(half<0>(high), 16)));
    r[1] = lanes(_mm512_or_si512(half<1>(low), _mm512_slli_epi32(half<1>(high), 16)));
  }
};

}  // namespace l3
