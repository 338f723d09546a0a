// Records and planes of dense tiles in NEON registers: four parts of eight records, planes of two registers, both in
// the order of the lanes.
#pragma once

#include "engine/dense_warp.h"
#include "targets/word_warp_neon.h"

namespace l3 {

template <class Self>
struct NeonDenseWarp : DenseWarp<Self, NeonWordWarp<Self>> {
  using Base = DenseWarp<Self, NeonWordWarp<Self>>;
  using Base::kPartLanes, Base::native, Base::lanes, Base::shorts, Base::two_buckets, Base::unzip;
  using typename Base::Lanes, typename Base::Plane, typename Base::Records;

  L3_INLINE static uint16x8_t native(Records a) { return (uint16x8_t)a.v; }
  L3_INLINE static uint8x16_t bytes(Records a) { return (uint8x16_t)a.v; }
  L3_INLINE static uint8x16_t bytes(const Plane& a, uint32_t i) { return (uint8x16_t)a.v[i]; }
  template <class V>
  L3_INLINE static Records records(V v) {
    return {(decltype(Records::v))v};
  }
  L3_INLINE static Plane plane(uint8x16_t low, uint8x16_t high) {
    return {{(typename Plane::Vector)low, (typename Plane::Vector)high}};
  }

  template <uint32_t kStep>
  L3_INLINE static Records add_products(Records values, const uint16_t* weights, Records sum) {
    const uint16x8_t low = vmlaq_u16(native(sum), native(values), vld1q_u16(weights));
    return records(vmlaq_u16(low, vshrq_n_u16(native(values), 8), vld1q_u16(weights + kStep)));
  }
  L3_INLINE static Records distances(Records a, Records b) { return records(vabdq_u8(bytes(a), bytes(b))); }
  L3_INLINE static Records merge(Records low, Records high) {
    return records(vbslq_u16(vdupq_n_u16(0xFF), native(low), native(high)));
  }
  L3_INLINE static Records not_below(Records a, Records b) { return records(vcgeq_u8(bytes(a), bytes(b))); }
  L3_INLINE static Records repeat_two(const uint16_t* two) {
    uint32_t both;
    std::memcpy(&both, two, 4);
    return records(vdupq_n_u32(both));
  }
  L3_INLINE static Records shift_up_one(Records a, Records before) {
    return records(vextq_u16(native(before), native(a), 7));
  }
  L3_INLINE static Records shift_up_two(Records a, Records before) {
    return records(vextq_u16(native(before), native(a), 6));
  }

  L3_INLINE static void split_sums(const Records* sums, Plane& p, Plane& up, Records* predictions) {
    uint16x8_t numbers[4], masks[4];
    for (uint32_t i = 0; i < 4; ++i) {
      const int16x8_t sum = vreinterpretq_s16_u16(native(sums[i]));
      const int16x8_t within = vminq_s16(vmaxq_s16(sum, vdupq_n_s16(0)), vdupq_n_s16((256 << kWeightShift) - 1));
      masks[i] = vreinterpretq_u16_s16(vshrq_n_s16(vshlq_n_s16(within, 16 - kWeightShift), 15));
      numbers[i] = vshrq_n_u16(vreinterpretq_u16_s16(within), kWeightShift);
      predictions[i] = records(vorrq_u16(numbers[i], vdupq_n_u16(kNoRecord)));
    }
    p = plane(low_bytes(numbers[0], numbers[1]), low_bytes(numbers[2], numbers[3]));
    up = plane(low_bytes(masks[0], masks[1]), low_bytes(masks[2], masks[3]));
  }
  L3_INLINE static Plane pack_bytes(const Lanes* words) {
    const auto half = [&](const Lanes* of) {
      return low_bytes(vuzp1q_u16(shorts(of[0]), shorts(of[1])), vuzp1q_u16(shorts(of[2]), shorts(of[3])));
    };
    return plane(half(words), half(words + 4));
  }
  L3_INLINE static Plane pack_levels(const Records* activities) {
    const auto levels = [](uint32x4_t words) { return vshrn_n_u32(vreinterpretq_u32_f32(vcvtq_f32_u32(words)), 16); };
    const auto of = [&](uint32_t i) {
      const uint16x8_t part = native(activities[i]);
      const uint16x8_t both = vcombine_u16(levels(vmovl_u16(vget_low_u16(part))), levels(vmovl_high_u16(part)));
      return vsubq_u16(vshrq_n_u16(both, 5), vdupq_n_u16(130 << 2));
    };
    return plane(low_bytes(of(0), of(1)), low_bytes(of(2), of(3)));
  }
  L3_INLINE static Plane pack_signs(const Records* a, const Records* b, const Records* c) {
    // Inserts the uppermost bits of bytes side by side, then those of the upper bytes into the lower ones.
    const auto patterns = [&](uint32_t i) {
      const auto tops = [](Records of) { return vshrq_n_u8(bytes(of), 7); };
      const uint8x16_t two = vsliq_n_u8(tops(a[i]), tops(b[i]), 1);  // bits 0 and 1; in upper bytes: 2 and 3
      const uint16x8_t signs = vreinterpretq_u16_u8(two), upper = vreinterpretq_u16_u8(tops(c[i]));
      const uint16x8_t four = vorrq_u16(signs, vshrq_n_u16(signs, 6));
      return vorrq_u16(four, vorrq_u16(vshlq_n_u16(upper, 4), vshrq_n_u16(upper, 3)));
    };
    const auto half = [&](uint32_t i) {
      return veorq_u8(low_bytes(patterns(i), patterns(i + 1)), vdupq_n_u8(kErrorSigns));
    };
    return plane(half(0), half(2));
  }
  L3_INLINE static Plane rows(const DenseTables& tables, uint32_t channel, const Plane& distance,
                              const Plane& pattern) {
    const uint8x16x4_t patterns = vld1q_u8_x4(tables.pattern_row[channel]);
    const auto half = [&](uint32_t i) {
      const uint8x16_t d = bytes(distance, i), nibble = vshrq_n_u8(d, 4);
      const uint8x16_t is_later = vcgeq_u8(d, vqtbl1q_u8(vld1q_u8(kZoneSteps.begin), nibble));
      const uint8x16_t zone = vsubq_u8(vqtbl1q_u8(vld1q_u8(kZoneSteps.first), nibble), is_later);
      const uint8x16_t of_pattern = vqtbl4q_u8(patterns, vandq_u8(bytes(pattern, i), vdupq_n_u8(63)));
      return vaddq_u8(vqtbl1q_u8(vld1q_u8(tables.zone_row[channel]), zone), of_pattern);
    };
    return plane(half(0), half(1));
  }
  L3_INLINE static void store_places(const Plane& levels, const Plane& rows, const Lanes* states, uint32_t* places) {
    const auto put = [&](uint32_t part, uint32x4_t context) {
      const uint32x4_t bucket =
          vandq_u32(native(states[part]), vdupq_n_u32(kProbabilities - kProbabilities / kTableBuckets));
      vst1q_u32(places + part * kPartLanes, vorrq_u32(context, vshlq_n_u32(bucket, 12)));
    };
    for (uint32_t i = 0; i < 2; ++i) {
      const uint8x16_t level = bytes(levels, i), row = bytes(rows, i);
      const uint16x8_t low = vaddw_u8(vshll_n_u8(vget_low_u8(row), 6), vget_low_u8(level));
      const uint16x8_t high = vaddw_high_u8(vshll_high_n_u8(row, 6), level);
      put(4 * i, vmovl_u16(vget_low_u16(low)));
      put(4 * i + 1, vmovl_high_u16(low));
      put(4 * i + 2, vmovl_u16(vget_low_u16(high)));
      put(4 * i + 3, vmovl_high_u16(high));
    }
  }
  template <class FirstBucket, class Places>
  L3_INLINE static void look_up_places(FirstBucket first_bucket, const Bucket* buckets, Places places, Lanes& own,
                                       Lanes& other) {
    const auto two = [&](uint32_t i) { return at_two_places(first_bucket, buckets, places + i, two_buckets); };
    unzip(two(0), two(2), own, other);
  }
  L3_INLINE static void records(const Plane& samples, const Plane& predictions, Records* r) {
    const uint8x16_t tops = vdupq_n_u8(128);
    for (uint32_t i = 0; i < 2; ++i) {
      const uint8x16_t s = bytes(samples, i);
      const int8x16_t signed_error =
          vqsubq_s8(vreinterpretq_s8_u8(veorq_u8(s, tops)), vreinterpretq_s8_u8(veorq_u8(bytes(predictions, i), tops)));
      const uint8x16_t error = veorq_u8(vreinterpretq_u8_s8(signed_error), tops);
      r[2 * i] = records(vreinterpretq_u16_u8(vzip1q_u8(s, error)));
      r[2 * i + 1] = records(vreinterpretq_u16_u8(vzip2q_u8(s, error)));
    }
  }
  template <uint32_t kChannels>
  L3_INLINE static void pixels(const Plane* channels, Lanes* r) {
    const auto put = [&](uint32_t i, uint8x16_t low, uint8x16_t high) {
      r[i] = lanes(vzip1q_u16(vreinterpretq_u16_u8(low), vreinterpretq_u16_u8(high)));
      r[i + 1] = lanes(vzip2q_u16(vreinterpretq_u16_u8(low), vreinterpretq_u16_u8(high)));
    };
    for (uint32_t i = 0; i < 2; ++i) {
      const auto of = [&](uint32_t c) { return c < kChannels ? bytes(channels[c], i) : vdupq_n_u8(0); };
      put(4 * i, vzip1q_u8(of(0), of(1)), vzip1q_u8(of(2), of(3)));
      put(4 * i + 2, vzip2q_u8(of(0), of(1)), vzip2q_u8(of(2), of(3)));
    }
  }

 private:
  L3_INLINE static uint8x16_t low_bytes(uint16x8_t a, uint16x8_t b) {
    return vuzp1q_u8(vreinterpretq_u8_u16(a), vreinterpretq_u8_u16(b));
  }
};

}  // namespace l3
