// Words in NEON registers: eight parts of four lanes. NEON is part of every ARM64 processor.
#pragma once

#include <arm_neon.h>

#include "engine/word_warp.h"

namespace l3 {

// `Self` is the derived warp.
template <class Self>
struct NeonWordWarp : WordWarp<Self, 16> {
  using Base = WordWarp<Self, 16>;
  using Base::kPartLanes, Base::kParts, Base::splat, Base::store;
  using typename Base::Lanes, typename Base::Mask, typename Base::Vector;

  L3_INLINE static uint32x4_t native(Lanes a) { return (uint32x4_t)a.v; }
  L3_INLINE static int32x4_t signed_words(Lanes a) { return (int32x4_t)a.v; }
  L3_INLINE static uint16x8_t shorts(Lanes a) { return (uint16x8_t)a.v; }
  template <class V>
  L3_INLINE static Lanes lanes(V v) {
    return {(Vector)v};
  }

  L3_INLINE static Lanes select(Mask mask, Lanes a, Lanes b) {
    return lanes(vbslq_u32(native(mask), native(a), native(b)));
  }
  L3_INLINE static uint32_t bits(Mask mask) {
    const uint32x4_t of_lane = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(native(mask), of_lane));
  }

  L3_INLINE static void refill(Lanes& state, Mask mask, const uint8_t* payload, uint32_t& at) {
    const uint32_t set = bits(mask);
    const uint8x16_t words = vcombine_u8(vld1_u8(payload + at), vdup_n_u8(0));
    const uint32x4_t taken = vreinterpretq_u32_u8(vqtbl1q_u8(words, vld1q_u8(kExpandFour.order[set])));
    state = select(mask, lanes(vorrq_u32(vshlq_n_u32(native(state), 16), taken)), state);
    at += 2u * kExpandFour.count[set];
  }

  using Base::transpose;
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
