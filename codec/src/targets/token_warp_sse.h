// Records and sums of token tiles in SSE registers: four parts of eight records, or two of 16 bytes. Compiled for any
// x86-64 processor, and for those with SSE4.2 and SSSE3 (x86-64-v2).
#pragma once

#include "engine/byte_records_16.h"
#include "targets/dense_warp_sse.h"

namespace l3 {

// `Self` is the derived warp. Each way of compiling needs another one.
template <class Self>
struct SseTokenWarp : ByteRecords16<TokenWarp<Self, SseDenseWarp<Self>>> {
  using Base = ByteRecords16<TokenWarp<Self, SseDenseWarp<Self>>>;
  using Base::native, Base::lanes, Base::records, Base::select, Base::widen, Base::lane_mask;
  using typename Base::ByteRecords, typename Base::Lanes, typename Base::Mask, typename Base::Records,
      typename Base::Sums;

  L3_INLINE static bool any(ByteRecords mask) { return record_bits(mask) != 0; }
  L3_INLINE static uint32_t record_bits(ByteRecords mask) {
    return static_cast<uint32_t>(_mm_movemask_epi8((__m128i)mask.v));
  }
  L3_INLINE static bool any(Records mask) { return _mm_movemask_epi8(native(mask)) != 0; }
  L3_INLINE static uint32_t record_bits(Records mask) {
    return static_cast<uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(native(mask), _mm_setzero_si128())));
  }
  L3_INLINE static Records value_distances(Records a, Records b) {
    const __m128i distance = _mm_sub_epi16(_mm_max_epi16(native(a), native(b)), _mm_min_epi16(native(a), native(b)));
    // The saturated sum is at most 65535, so at most 32767 is left.
    const __m128i rest = _mm_set1_epi16(-32768);
    return records(_mm_sub_epi16(_mm_adds_epu16(distance, rest), rest));
  }
  L3_INLINE static Records token_errors(Records value, Records p) {
    return records(_mm_max_epi16(_mm_subs_epi16(native(Base::flipped(value)), native(Base::flipped(p))),
                                 _mm_set1_epi16(-kMaxTokenError)));
  }
  L3_INLINE static Records load_bytes(const uint8_t* from) {
    return records(_mm_unpacklo_epi8(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)), _mm_setzero_si128()));
  }
  L3_INLINE static void widen(Records a, Lanes* words) {
    words[0] = lanes(_mm_unpacklo_epi16(native(a), _mm_setzero_si128()));
    words[1] = lanes(_mm_unpackhi_epi16(native(a), _mm_setzero_si128()));
  }
  L3_INLINE static Records mask_records(const Mask* masks) {
    return records(_mm_packs_epi32(native(masks[0]), native(masks[1])));
  }
  L3_INLINE static Mask lane_mask(const Records* masks, uint32_t part) {
    const __m128i both = native(masks[part / 2]);
    return lanes(part % 2 == 0 ? _mm_unpacklo_epi16(both, both) : _mm_unpackhi_epi16(both, both));
  }
#if defined(__SSE4_1__)
  L3_INLINE static ByteRecords select(ByteRecords mask, ByteRecords a, ByteRecords b) {
    return {(decltype(mask.v))_mm_blendv_epi8((__m128i)b.v, (__m128i)a.v, (__m128i)mask.v)};
  }
  L3_INLINE static Records select(Records mask, Records a, Records b) {
    return records(_mm_blendv_epi8(native(b), native(a), native(mask)));
  }
  L3_INLINE static Records at_most_255(Records a) { return records(_mm_min_epu16(native(a), _mm_set1_epi16(255))); }
  L3_INLINE static Records error_magnitudes(Records a) { return records(_mm_abs_epi16(native(a))); }
  L3_INLINE static Records lower_halves_of(const Sums& sums) {
    return records(_mm_packus_epi32((__m128i)sums.low, (__m128i)sums.high));
  }
  template <class V>
  L3_INLINE static V larger_words(const V& a, const V& b) {
    return (V)_mm_max_epi32((__m128i)a, (__m128i)b);
  }
  template <class V>
  L3_INLINE static V lesser_words(const V& a, const V& b) {
    return (V)_mm_min_epi32((__m128i)a, (__m128i)b);
  }
  // As with AVX2.
  L3_INLINE static Records look_up_16(const uint8_t* table, Records index) {
    return records(_mm_shuffle_epi8(table_of(table), empty_above(index)));
  }
  L3_INLINE static Records look_up_64(const uint8_t* table, Records index) {
    const __m128i at = _mm_and_si128(empty_above(index), _mm_set1_epi16(static_cast<int16_t>(0x800F)));
    const __m128i bit_4 = _mm_slli_epi16(native(index), 3), bit_5 = _mm_slli_epi16(native(index), 2);
    const auto quarter = [&](int i) __attribute__((always_inline)) {
      return _mm_shuffle_epi8(table_of(table + 16 * i), at);
    };
    return records(_mm_blendv_epi8(_mm_blendv_epi8(quarter(0), quarter(1), bit_4),
                                   _mm_blendv_epi8(quarter(2), quarter(3), bit_4), bit_5));
  }
  // The last 16 bytes may overlap with those before.
  L3_INLINE static void look_up_bytes(const uint8_t* table, const uint8_t* bytes, uint32_t count, uint8_t* to) {
    if (count < 16) return Base::look_up_bytes(table, bytes, count, to);
    const auto look_up = [&](uint32_t i) __attribute__((always_inline)) {
      const __m128i index = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + i));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), _mm_shuffle_epi8(table_of(table), index));
    };
    for (uint32_t i = 0; i + 16 < count; i += 16) look_up(i);
    look_up(count - 16);
  }
  L3_INLINE static Records narrow(const Lanes* words) {
    return records(_mm_packus_epi32(native(words[0]), native(words[1])));
  }

 private:
  L3_INLINE static __m128i table_of(const uint8_t* bytes) {
    return _mm_load_si128(reinterpret_cast<const __m128i*>(bytes));
  }
  L3_INLINE static __m128i empty_above(Records index) { return _mm_or_si128(native(index), _mm_set1_epi16(-32768)); }
#else
  L3_INLINE static Records narrow(const Lanes* words) {
    const auto low = [](Lanes a) __attribute__((always_inline)) {
      return _mm_srai_epi32(_mm_slli_epi32(native(a), 16), 16);
    };
    return records(_mm_packs_epi32(low(words[0]), low(words[1])));
  }
#endif
};

}  // namespace l3
