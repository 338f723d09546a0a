// Records and planes of dense tiles in AVX-512 registers, both in the order of the lanes. A register holds 16 bits for
// each of the 32 lanes, so planes have 16 bits for each lane, too. Of samples and predictions, the lower byte counts.
#pragma once

#include "targets/dense_warp_avx2.h"
#include "targets/word_warp_avx512.h"

namespace l3 {

struct Avx512Plane {
  __m512i v;

  L3_INLINE friend Avx512Plane operator+(Avx512Plane a, Avx512Plane b) { return {_mm512_add_epi16(a.v, b.v)}; }
  L3_INLINE friend Avx512Plane operator-(Avx512Plane a, Avx512Plane b) { return {_mm512_sub_epi16(a.v, b.v)}; }
  L3_INLINE friend Avx512Plane operator^(Avx512Plane a, Avx512Plane b) { return {_mm512_xor_si512(a.v, b.v)}; }
};

template <class Self>
struct Avx512DenseWarpOf : DenseWarp<Self, Avx512WordWarp<Self>> {
  using Words = Avx512WordWarp<Self>;
  using Base = DenseWarp<Self, Words>;
  using Base::kPartLanes, Base::native, Base::lanes, Base::store, Words::look_up_places;
  using typename Base::Lanes, typename Base::Records;
  using Plane = Avx512Plane;
  using Signs = __mmask64;  // a bit for each byte of a record
  // The words of lanes 0, 2, 4, ... and those of lanes 1, 3, 5, ...
  struct Levels {
    __m512i even, odd;
  };

  L3_INLINE static __m512i native(Records a) { return (__m512i)a.v; }
  L3_INLINE static Records records(__m512i v) { return {(decltype(Records::v))v}; }
  L3_INLINE static Plane no_bytes() { return {_mm512_setzero_si512()}; }
  L3_INLINE static __m512i lower_byte() { return _mm512_set1_epi16(255); }
  // `a` where the bits of mask are set, else `b`.
  L3_INLINE static __m512i select_bits(__m512i mask, __m512i a, __m512i b) {
    return _mm512_ternarylogic_epi32(mask, a, b, 0xCA);
  }

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
  L3_INLINE static Records add_products(Records values, Records weights, Records sum) {
    return records(_mm512_add_epi16(native(sum), _mm512_maddubs_epi16(native(values), native(weights))));
  }
  template <uint32_t>
  L3_INLINE static Records add_products(Records values, const uint16_t* weights, Records sum) {
    return add_products(values, records(_mm512_load_si512(weights)), sum);
  }
  static constexpr bool kPicksRecords = true;
  L3_INLINE static Records pick_records(const uint16_t* from, Records numbers) {
    return records(_mm512_permutexvar_epi16(native(numbers), _mm512_load_si512(from)));
  }
  L3_INLINE static Records distances(Records a, Records b) {
    return records(_mm512_sub_epi8(_mm512_max_epu8(native(a), native(b)), _mm512_min_epu8(native(a), native(b))));
  }
  L3_INLINE static Records magnitudes(Records a) {
    return records(_mm512_abs_epi8(_mm512_xor_si512(native(a), _mm512_set1_epi8(-128))));
  }
  L3_INLINE static Records merge(Records low, Records high) {
    return records(select_bits(lower_byte(), native(low), native(high)));
  }
  L3_INLINE static Signs not_below(Records a, Records b) { return _mm512_cmpge_epu8_mask(native(a), native(b)); }
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
    p = {numbers};
    up = {_mm512_srai_epi16(_mm512_slli_epi16(within, 16 - kWeightShift), 15)};
    predictions[0] = records(_mm512_or_si512(numbers, _mm512_set1_epi16(static_cast<int16_t>(kNoRecord))));
  }
  // Of words whose upper halves are 0.
  L3_INLINE static Plane pack_bytes(const Lanes* words) {
    const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    return {_mm512_permutexvar_epi64(order, _mm512_packus_epi32(native(words[0]), native(words[1])))};
  }
  // Levels plus kLevelBias.
  static constexpr int kLevelBias = 130 << 2;
  L3_INLINE static Levels pack_levels(const Records* activities) {
    const auto levels = [](__m512i words) __attribute__((always_inline)) {
      return _mm512_srli_epi32(_mm512_castps_si512(_mm512_cvtepi32_ps(words)), 21);
    };
    const __m512i both = native(activities[0]);
    return {levels(_mm512_and_si512(both, _mm512_set1_epi32(0xFFFF))), levels(_mm512_srli_epi32(both, 16))};
  }
  L3_INLINE static Plane pack_signs(const Signs* a, const Signs* b, const Records* c) {
    __m512i bits = _mm512_maskz_mov_epi8(_mm512_movepi8_mask(native(c[0])), _mm512_set1_epi16(0x2010));
    bits = _mm512_mask_add_epi8(bits, a[0], bits, _mm512_set1_epi16(0x0401));
    bits = _mm512_mask_add_epi8(bits, b[0], bits, _mm512_set1_epi16(0x0802));
    const __m512i errors = _mm512_set1_epi16(kErrorSigns);
    return {_mm512_ternarylogic_epi32(bits, _mm512_srli_epi16(bits, 8), errors, 0x56)};  // (a | b) ^ c
  }
  L3_INLINE static Plane rows(const DenseTables& tables, uint32_t channel, const Plane& distance,
                              const Plane& pattern) {
    // As zone_of(), in 16 bits: of the product only the upper half counts.
    const __m512i d = _mm512_and_si512(distance.v, lower_byte()), ones = _mm512_set1_epi16(1);
    const __m512i zone = _mm512_add_epi16(_mm512_mulhi_epi16(_mm512_sub_epi16(d, ones), _mm512_set1_epi16(3613)), ones);
    const __m512i of_zones =
        _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(tables.zone_row[channel])));
    const __m512i of_zone = _mm512_maskz_shuffle_epi8(0x5555555555555555, of_zones, zone);
    const auto of_patterns = [&](uint32_t i) __attribute__((always_inline)) {
      return _mm512_cvtepu8_epi16(_mm256_load_si256(reinterpret_cast<const __m256i*>(tables.pattern_row[channel] + i)));
    };
    return {_mm512_add_epi16(of_zone, _mm512_permutex2var_epi16(of_patterns(0), pattern.v, of_patterns(32)))};
  }
  // Stores the places of lanes 0, 2, 4, ..., then those of lanes 1, 3, 5, ...
  L3_INLINE static void store_places(const Levels& levels, const Plane& rows, const Lanes* states, uint32_t* places) {
    const __m512i contexts = _mm512_slli_epi16(rows.v, 6);
    static_assert(kLevels == 1 << 6);
    const auto place = [&](__m512i order, __m512i level, __m512i context) __attribute__((always_inline)) {
      const Lanes state = lanes(_mm512_permutex2var_epi32(native(states[0]), order, native(states[1])));
      const Lanes bucket = (state & constant<kProbabilities - kProbabilities / kTableBuckets>) << 12;
      return lanes(_mm512_add_epi32(_mm512_add_epi32(level, context),
                                    _mm512_sub_epi32(native(bucket), _mm512_set1_epi32(kLevelBias))));
    };
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    store(places, place(even, levels.even, _mm512_and_si512(contexts, _mm512_set1_epi32(0xFFFF))));
    store(places + kPartLanes,
          place(_mm512_add_epi32(even, _mm512_set1_epi32(1)), levels.odd, _mm512_srli_epi32(contexts, 16)));
  }
  template <class FirstBucket>
  L3_INLINE static void look_up_part(FirstBucket first_bucket, const Bucket* buckets, const uint32_t* places,
                                     uint32_t part, Lanes& own, Lanes& other) {
    const uint32_t* const at = places + part * (kPartLanes / 2);
    const auto bucket = [&](uint64_t place) __attribute__((always_inline)) {
      return buckets + (first_bucket[place & 0xFFFF] + (static_cast<uint32_t>(place) >> 16));
    };
    __m128i low[4], high[4];
    for (uint32_t i = 0; i < 4; ++i) {
      uint64_t even, odd;  // two lanes each
      std::memcpy(&even, at + 2 * i, 8);
      std::memcpy(&odd, at + kPartLanes + 2 * i, 8);
      low[i] = two_buckets(bucket(even), bucket(odd));
      high[i] = two_buckets(bucket(even >> 32), bucket(odd >> 32));
    }
    Words::join_buckets(low, high, own, other);
  }
  L3_INLINE static void records(const Plane& samples, const Plane& predictions, Records* r) {
    const __m512i tops = _mm512_set1_epi16(static_cast<int16_t>(0x8000));
    const auto signed_upper = [&](const Plane& a) __attribute__((always_inline)) {
      return _mm512_xor_si512(_mm512_slli_epi16(a.v, 8), tops);
    };
    const __m512i error = _mm512_xor_si512(_mm512_subs_epi8(signed_upper(samples), signed_upper(predictions)), tops);
    r[0] = records(select_bits(lower_byte(), samples.v, error));
  }
  template <uint32_t kChannels>
  L3_INLINE static void pixels(const Plane* channels, Lanes* r) {
    const auto two = [&](uint32_t c) __attribute__((always_inline)) {
      if (c >= kChannels) return _mm512_setzero_si512();
      if (c + 1 >= kChannels) return _mm512_and_si512(channels[c].v, lower_byte());
      return select_bits(lower_byte(), channels[c].v, _mm512_slli_epi16(channels[c + 1].v, 8));
    };
    const __m512i low = two(0), high = two(2);
    r[0] = lanes(_mm512_or_si512(half<0>(low), _mm512_slli_epi32(half<0>(high), 16)));
    r[1] = lanes(_mm512_or_si512(half<1>(low), _mm512_slli_epi32(half<1>(high), 16)));
  }
};

}  // namespace l3
