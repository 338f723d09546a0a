// Records and sums of token tiles in AVX2 registers: two parts of 16 records, or one of 32 bytes.
#pragma once

#include "targets/byte_records_avx2.h"
#include "targets/dense_warp_avx2.h"

namespace l3 {

template <class Self>
struct Avx2TokenWarpOf : Avx2ByteRecords<TokenWarp<Self, Avx2DenseWarpOf<Self>>> {
  using Base = Avx2ByteRecords<TokenWarp<Self, Avx2DenseWarpOf<Self>>>;
  using Base::kPartLanes, Base::native, Base::lanes, Base::records, Base::all, Base::select, Base::any,
      Base::record_bits, Base::bytes_of, Base::byte_records;
  using typename Base::ByteRecords, typename Base::Lanes, typename Base::Mask, typename Base::Records,
      typename Base::Sums;

  L3_INLINE static Records select(Records mask, Records a, Records b) {
    return records(_mm256_blendv_epi8(native(b), native(a), native(mask)));
  }
  L3_INLINE static bool any(Records mask) { return _mm256_testz_si256(native(mask), native(mask)) == 0; }
  L3_INLINE static uint32_t record_bits(Records mask) {
    const __m256i bytes = _mm256_packs_epi16(native(mask), _mm256_setzero_si256());
    return static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_permute4x64_epi64(bytes, 0xD8)));
  }
  L3_INLINE static Records at_most_255(Records a) {
    return records(_mm256_min_epu16(native(a), all(constant<0x00FF00FF>)));
  }
  L3_INLINE static Records value_distances(Records a, Records b) {
    const __m256i distance =
        _mm256_sub_epi16(_mm256_max_epi16(native(a), native(b)), _mm256_min_epi16(native(a), native(b)));
    return records(_mm256_min_epu16(distance, all(constant<0x7FFF7FFF>)));
  }
  L3_INLINE static Records error_magnitudes(Records a) { return records(_mm256_abs_epi16(native(a))); }
  L3_INLINE static Records token_errors(Records value, Records p) {
    return records(_mm256_max_epi16(_mm256_subs_epi16(native(Base::flipped(value)), native(Base::flipped(p))),
                                    all(constant<0x80018001>)));
  }

  L3_INLINE static Records lower_halves_of(const Sums& sums) {
    return records(_mm256_packus_epi32((__m256i)sums.low, (__m256i)sums.high));
  }
  template <class V>
  L3_INLINE static V larger_words(const V& a, const V& b) {
    return (V)_mm256_max_epi32((__m256i)a, (__m256i)b);
  }
  template <class V>
  L3_INLINE static V lesser_words(const V& a, const V& b) {
    return (V)_mm256_min_epi32((__m256i)a, (__m256i)b);
  }
  // A shuffle gives 0 for an index with its top bit set, so the upper bytes stay 0.
  L3_INLINE static Records look_up_16(const uint8_t* table, Records index) {
    return records(_mm256_shuffle_epi8(table_of(table), empty_above(index)));
  }
  // Looks up the lower four bits of the index in each quarter, then selects by the upper two bits.
  L3_INLINE static Records look_up_64(const uint8_t* table, Records index) {
    const __m256i at = _mm256_and_si256(empty_above(index), all(constant<0x800F800F>));
    const __m256i bit_4 = _mm256_slli_epi16(native(index), 3), bit_5 = _mm256_slli_epi16(native(index), 2);
    const auto quarter = [&](int i) __attribute__((always_inline)) {
      return _mm256_shuffle_epi8(table_of(table + 16 * i), at);
    };
    return records(_mm256_blendv_epi8(_mm256_blendv_epi8(quarter(0), quarter(1), bit_4),
                                      _mm256_blendv_epi8(quarter(2), quarter(3), bit_4), bit_5));
  }

  L3_INLINE static Records load_bytes(const uint8_t* from) {
    return records(_mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
  }
  // Stores a byte for each bit, the top bit first: one of two.
  L3_INLINE static void choose_bytes(uint8_t* to, uint32_t bits, uint8_t zero, uint8_t one) {
    avx2::choose_bytes(to, bits, zero, one);
  }
  L3_INLINE static void look_up_bytes(const uint8_t* table, const uint8_t* bytes, uint32_t count, uint8_t* to) {
    avx2::look_up_bytes(table, bytes, count, to);
  }

  L3_INLINE static void widen(Records a, Lanes* words) {
    words[0] = lanes(_mm256_cvtepu16_epi32(_mm256_castsi256_si128(native(a))));
    words[1] = lanes(_mm256_cvtepu16_epi32(_mm256_extracti128_si256(native(a), 1)));
  }
  L3_INLINE static void widen(ByteRecords a, Lanes* words) {
    const __m128i low = _mm256_castsi256_si128(bytes_of(a)), high = _mm256_extracti128_si256(bytes_of(a), 1);
    words[0] = lanes(_mm256_cvtepu8_epi32(low));
    words[1] = lanes(_mm256_cvtepu8_epi32(_mm_srli_si128(low, 8)));
    words[2] = lanes(_mm256_cvtepu8_epi32(high));
    words[3] = lanes(_mm256_cvtepu8_epi32(_mm_srli_si128(high, 8)));
  }
  L3_INLINE static void widen(ByteRecords a, ByteRecords b, Lanes* words) {
    const __m256i factors = all(constant<0x01200120>);
    const auto put = [&](uint32_t i, __m256i both) __attribute__((always_inline)) {
      const __m256i numbers = _mm256_maddubs_epi16(both, factors);
      words[i] = lanes(_mm256_cvtepu16_epi32(_mm256_castsi256_si128(numbers)));
      words[i + 2] = lanes(_mm256_cvtepu16_epi32(_mm256_extracti128_si256(numbers, 1)));
    };
    put(0, _mm256_unpacklo_epi8(bytes_of(a), bytes_of(b)));
    put(1, _mm256_unpackhi_epi8(bytes_of(a), bytes_of(b)));
  }
  L3_INLINE static ByteRecords narrow_to_bytes(const Lanes* words) {
    const auto two = [&](int i) __attribute__((always_inline)) {
      return _mm256_packus_epi32(native(words[i]), native(words[i + 1]));
    };
    return in_order(_mm256_packus_epi16(two(0), two(2)));
  }
  L3_INLINE static ByteRecords mask_bytes(const Mask* masks) {
    const auto two = [&](int i) __attribute__((always_inline)) {
      return _mm256_packs_epi32(native(masks[i]), native(masks[i + 1]));
    };
    return in_order(_mm256_packs_epi16(two(0), two(2)));
  }
  L3_INLINE static ByteRecords packed(const Records* a) {
    const __m256i low = all(constant<0x00FF00FF>);
    return byte_records(_mm256_permute4x64_epi64(
        _mm256_packus_epi16(_mm256_and_si256(native(a[0]), low), _mm256_and_si256(native(a[1]), low)), 0xD8));
  }
  L3_INLINE static Records wide_mask(const ByteRecords* masks, uint32_t part) {
    return records(_mm256_cvtepi8_epi16(_mm_load_si128(reinterpret_cast<const __m128i*>(masks) + part)));
  }
  using Base::wide_mask;
  // Turns the bytes of four words in each half of a register, then those of two registers each.
  L3_INLINE static void channels_of(const Lanes* words, ByteRecords* channels, uint32_t stride) {
    const __m256i turn =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    __m256i v[4];
    for (int i = 0; i < 4; ++i) v[i] = _mm256_shuffle_epi8(native(words[i]), turn);
    const __m256i low[2] = {_mm256_unpacklo_epi32(v[0], v[1]), _mm256_unpacklo_epi32(v[2], v[3])};
    const __m256i high[2] = {_mm256_unpackhi_epi32(v[0], v[1]), _mm256_unpackhi_epi32(v[2], v[3])};
    // The order of the lanes by fours is 0, 1, 4, 5 in the lower halves and 2, 3, 6, 7 in the upper ones.
    channels[0] = in_order(_mm256_unpacklo_epi64(low[0], low[1]));
    channels[stride] = in_order(_mm256_unpackhi_epi64(low[0], low[1]));
    channels[2 * stride] = in_order(_mm256_unpacklo_epi64(high[0], high[1]));
    channels[3 * stride] = in_order(_mm256_unpackhi_epi64(high[0], high[1]));
  }
  L3_INLINE static void words_of(const ByteRecords* channels, uint32_t stride, uint32_t count, Lanes* words) {
    const auto of = [&](uint32_t c) __attribute__((always_inline)) {
      return c < count ? bytes_of(channels[c * stride]) : _mm256_setzero_si256();
    };
    const auto put = [&](int i, __m256i low, __m256i high) __attribute__((always_inline)) {
      const __m256i first = _mm256_unpacklo_epi16(low, high), second = _mm256_unpackhi_epi16(low, high);
      words[i] = lanes(_mm256_permute2x128_si256(first, second, 0x20));
      words[i + 2] = lanes(_mm256_permute2x128_si256(first, second, 0x31));
    };
    put(0, _mm256_unpacklo_epi8(of(0), of(1)), _mm256_unpacklo_epi8(of(2), of(3)));
    put(1, _mm256_unpackhi_epi8(of(0), of(1)), _mm256_unpackhi_epi8(of(2), of(3)));
  }
  L3_INLINE static Records narrow(const Lanes* words) {
    return records(_mm256_permute4x64_epi64(_mm256_packus_epi32(native(words[0]), native(words[1])), 0xD8));
  }
  L3_INLINE static Records mask_records(const Mask* masks) {
    return records(_mm256_permute4x64_epi64(_mm256_packs_epi32(native(masks[0]), native(masks[1])), 0xD8));
  }
  L3_INLINE static Mask lane_mask(const ByteRecords* masks, uint32_t part) {
    return lanes(_mm256_cvtepi8_epi32(_mm_loadl_epi64(
        reinterpret_cast<const __m128i*>(reinterpret_cast<const uint8_t*>(masks) + part * kPartLanes))));
  }
  L3_INLINE static Mask lane_mask(const Records* masks, uint32_t part) {
    const uint16_t* const from = reinterpret_cast<const uint16_t*>(masks) + part * kPartLanes;
    return lanes(_mm256_cvtepi16_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(from))));
  }

 private:
  // Of bytes that were packed twice: brings the lanes, by fours, into their order.
  L3_INLINE static ByteRecords in_order(__m256i v) {
    return byte_records(_mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
  }
  L3_INLINE static __m256i table_of(const uint8_t* bytes) {
    return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(bytes)));
  }
  L3_INLINE static __m256i empty_above(Records index) {
    return _mm256_or_si256(native(index), all(constant<0x80008000>));
  }
};

}  // namespace l3
