// The dense method's warp in NEON registers: eight parts of four lanes. NEON is part of every ARM64 processor.
#pragma once

#include <arm_neon.h>

#include "engine/word_warp.h"

namespace l3 {

// `Self` is the derived warp.
template <class Self>
struct NeonWordWarp : WordWarp<Self, 16> {
  using Base = WordWarp<Self, 16>;
  using Base::kPartLanes, Base::kParts, Base::splat, Base::store;
  using typename Base::Lanes, typename Base::Mask, typename Base::Plane, typename Base::Tables, typename Base::Vector;

  L3_INLINE static uint32x4_t native(Lanes a) { return (uint32x4_t)a.v; }
  L3_INLINE static int32x4_t signed_words(Lanes a) { return (int32x4_t)a.v; }
  L3_INLINE static uint16x8_t shorts(Lanes a) { return (uint16x8_t)a.v; }
  L3_INLINE static int16x8_t signed_shorts(Lanes a) { return (int16x8_t)a.v; }
  template <class V>
  L3_INLINE static Lanes lanes(V v) {
    return {(Vector)v};
  }

  template <int32_t kMin, int32_t kMax>
  L3_INLINE static Lanes clamp(Lanes a) {
    return lanes(vminq_s32(vmaxq_s32(signed_words(a), vdupq_n_s32(kMin)), vdupq_n_s32(kMax)));
  }
  L3_INLINE static Lanes select(Mask mask, Lanes a, Lanes b) {
    return lanes(vbslq_u32(native(mask), native(a), native(b)));
  }
  L3_INLINE static uint32_t bits(Mask mask) {
    const uint32x4_t of_lane = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(native(mask), of_lane));
  }
  L3_INLINE static Lanes splat_pair(const uint32_t* pair) {
    return lanes(vcombine_u32(vld1_u32(pair), vld1_u32(pair)));
  }

  // ---- records

  L3_INLINE static Lanes dot_pairs(Lanes a, Lanes b, Lanes sum) {
    return lanes(vaddq_s32(signed_words(sum), vpaddq_s32(vmull_s16(lower(a), lower(b)), upper(a, b))));
  }
  struct PairSum {
    int32x4_t low, high;
    Lanes start;
  };
  L3_INLINE static PairSum begin_sum(Lanes start) { return {vdupq_n_s32(0), vdupq_n_s32(0), start}; }
  L3_INLINE static void add_pairs(Lanes a, Lanes b, PairSum& sum) {
    sum.low = vmlal_s16(sum.low, lower(a), lower(b));
    sum.high = vmlal_high_s16(sum.high, signed_shorts(a), signed_shorts(b));
  }
  L3_INLINE static Lanes total(const PairSum& sum) {
    return lanes(vaddq_s32(vpaddq_s32(sum.low, sum.high), signed_words(sum.start)));
  }
  L3_INLINE static Lanes magnitude_pairs(Lanes a) { return lanes(vabsq_s16(signed_shorts(a))); }
  L3_INLINE static Lanes merge_halves(Lanes low, Lanes high) {
    return lanes(vbslq_u32(vdupq_n_u32(0xFFFF), native(low), native(high)));
  }

  // ---- planes have the order of the lanes

  L3_INLINE static uint8x16_t bytes(const Plane& a, uint32_t i) { return (uint8x16_t)a.v[i]; }
  L3_INLINE static Plane plane(uint8x16_t low, uint8x16_t high) {
    return {{(typename Plane::Vector)low, (typename Plane::Vector)high}};
  }
  L3_INLINE static void split_sums(const Lanes* sums, Plane& p, Plane& up, Lanes* predictions) {
    uint16x8_t numbers[4], masks[4];
    for (uint32_t i = 0; i < 4; ++i) {
      const int16x8_t sum = vqmovn_high_s32(vqmovn_s32(signed_words(sums[2 * i])), signed_words(sums[2 * i + 1]));
      const int16x8_t within = vminq_s16(vmaxq_s16(sum, vdupq_n_s16(0)), vdupq_n_s16((256 << kWeightShift) - 1));
      masks[i] = vreinterpretq_u16_s16(vshrq_n_s16(vshlq_n_s16(within, 16 - kWeightShift), 15));
      numbers[i] = vshrq_n_u16(vreinterpretq_u16_s16(within), kWeightShift);
      predictions[2 * i] = lanes(vmovl_u16(vget_low_u16(numbers[i])));
      predictions[2 * i + 1] = lanes(vmovl_high_u16(numbers[i]));
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
  L3_INLINE static Plane pack_levels(const Lanes* activities) {
    Lanes levels[kParts];
    for (uint32_t part = 0; part < kParts; ++part) {
      const uint32x4_t as_float = vreinterpretq_u32_f32(vcvtq_f32_u32(native(activities[part])));
      levels[part] = lanes(vsubq_u32(vshrq_n_u32(as_float, 21), vdupq_n_u32(130 << 2)));
    }
    return pack_bytes(levels);
  }
  L3_INLINE static Plane pack_signs(const Lanes* a, const Lanes* b, const Lanes* c) {
    const uint16x8_t first = vreinterpretq_u16_u32(vdupq_n_u32(0x00040001)),
                     second = vreinterpretq_u16_u32(vdupq_n_u32(0x00200010));
    const auto pairs = [&](uint32_t part) {
      const auto top = [&](const Lanes* of) { return vshrq_n_u16(shorts(of[part]), 15); };
      return vmlaq_u16(vmulq_u16(vsliq_n_u16(top(a), top(b), 1), first), top(c), second);
    };
    const auto four = [&](uint32_t part) { return vpaddq_u16(pairs(part), pairs(part + 1)); };
    const auto half = [&](uint32_t part) { return veorq_u8(low_bytes(four(part), four(part + 2)), vdupq_n_u8(3)); };
    return plane(half(0), half(4));
  }
  L3_INLINE static Plane rows(const Tables& tables, uint32_t channel, const Plane& distance, const Plane& pattern) {
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
    const uint8x16_t tops = vdupq_n_u8(128);
    const auto half = [&](uint32_t i) {
      return vreinterpretq_u8_s8(vqsubq_s8(vreinterpretq_s8_u8(veorq_u8(bytes(a, i), tops)),
                                           vreinterpretq_s8_u8(veorq_u8(bytes(b, i), tops))));
    };
    return plane(half(0), half(1));
  }
  L3_INLINE static void records(const Plane& samples, const Plane& errors, Lanes* r) {
    const auto put = [&](uint32_t i, uint16x8_t sample, int16x8_t error) {
      r[i] = lanes(vzip1q_u16(sample, vreinterpretq_u16_s16(error)));
      r[i + 1] = lanes(vzip2q_u16(sample, vreinterpretq_u16_s16(error)));
    };
    for (uint32_t i = 0; i < 2; ++i) {
      const uint8x16_t s = bytes(samples, i);
      const int8x16_t e = vreinterpretq_s8_u8(bytes(errors, i));
      put(4 * i, vmovl_u8(vget_low_u8(s)), vmovl_s8(vget_low_s8(e)));
      put(4 * i + 2, vmovl_high_u8(s), vmovl_high_s8(e));
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
  L3_INLINE static Lanes shift_up(Lanes a, Lanes before) { return lanes(vextq_u32(native(before), native(a), 3)); }
  L3_INLINE static Lanes shift_up_two(Lanes a, Lanes before) { return lanes(vextq_u32(native(before), native(a), 2)); }

  L3_INLINE static void refill(Lanes& state, Mask mask, const uint8_t* payload, uint32_t& at) {
    const uint32_t set = bits(mask);
    const uint8x16_t words = vcombine_u8(vld1_u8(payload + at), vdup_n_u8(0));
    const uint32x4_t taken = vreinterpretq_u32_u8(vqtbl1q_u8(words, vld1q_u8(kExpandFour.order[set])));
    state = select(mask, lanes(vorrq_u32(vshlq_n_u32(native(state), 16), taken)), state);
    at += 2u * kExpandFour.count[set];
  }

  L3_INLINE static void transpose(const uint32_t* from, size_t from_row, uint32_t* to, size_t to_row) {
    for (size_t i = 0; i < 8; i += 4) {
      for (size_t k = 0; k < 8; k += 4) {
        const auto row = [&](size_t j) { return vld1q_u32(from + (i + j) * from_row + k); };
        const uint32x4_t even_low = vtrn1q_u32(row(0), row(1)), even_high = vtrn1q_u32(row(2), row(3));
        const uint32x4_t odd_low = vtrn2q_u32(row(0), row(1)), odd_high = vtrn2q_u32(row(2), row(3));
        const auto put = [&](size_t j, uint32x4_t v) { vst1q_u32(to + (k + j) * to_row + i, v); };
        put(0, vcombine_u32(vget_low_u32(even_low), vget_low_u32(even_high)));
        put(1, vcombine_u32(vget_low_u32(odd_low), vget_low_u32(odd_high)));
        put(2, vcombine_u32(vget_high_u32(even_low), vget_high_u32(even_high)));
        put(3, vcombine_u32(vget_high_u32(odd_low), vget_high_u32(odd_high)));
      }
    }
  }
  // Stores four pixels at a time. Where 16 bytes fit, what is stored too much is overwritten by the next pixels.
  template <uint32_t kChannels>
  L3_INLINE static void store_pixels(uint8_t* to, const uint32_t* pixels, uint32_t count) {
    uint32_t i = 0;
    if constexpr (kChannels == 3) {
      const uint8x16_t order = {0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 255, 255, 255, 255};
      for (; i + 6 <= count; i += 4) {
        vst1q_u8(to + size_t{i} * 3, vqtbl1q_u8(vreinterpretq_u8_u32(vld1q_u32(pixels + i)), order));
      }
    } else if constexpr (kChannels == 1) {
      for (; i + 8 <= count; i += 8) {
        const uint16x8_t halves =
            vuzp1q_u16(vreinterpretq_u16_u32(vld1q_u32(pixels + i)), vreinterpretq_u16_u32(vld1q_u32(pixels + i + 4)));
        vst1_u8(to + i, vmovn_u16(halves));
      }
    }
    Base::template store_pixels<kChannels>(to + size_t{i} * kChannels, pixels + i, count - i);
  }

 private:
  L3_INLINE static int16x4_t lower(Lanes a) { return vget_low_s16(signed_shorts(a)); }
  L3_INLINE static int32x4_t upper(Lanes a, Lanes b) { return vmull_high_s16(signed_shorts(a), signed_shorts(b)); }
  L3_INLINE static uint8x16_t low_bytes(uint16x8_t a, uint16x8_t b) {
    return vuzp1q_u8(vreinterpretq_u8_u16(a), vreinterpretq_u8_u16(b));
  }
  L3_INLINE static uint64x2_t two_buckets(const Bucket* a, const Bucket* b) {
    uint64_t first, second;
    std::memcpy(&first, a, 8);
    std::memcpy(&second, b, 8);
    return vcombine_u64(vcreate_u64(first), vcreate_u64(second));
  }
  L3_INLINE static void unzip(uint64x2_t low, uint64x2_t high, Lanes& own, Lanes& other) {
    own = lanes(vuzp1q_u32(vreinterpretq_u32_u64(low), vreinterpretq_u32_u64(high)));
    other = lanes(vuzp2q_u32(vreinterpretq_u32_u64(low), vreinterpretq_u32_u64(high)));
  }
};

}  // namespace l3
