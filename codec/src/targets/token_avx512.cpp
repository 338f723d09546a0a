// Decodes tiles of token models and of bit models with AVX-512: the records of all 32 lanes in a register.
#include "engine/bit_loop.h"
#include "engine/token_body.h"
#include "targets/byte_records_avx2.h"
#include "targets/dense_warp_avx512.h"
#include "targets/target.h"

namespace l3 {
namespace {

struct Avx512TokenWarp : Avx2ByteRecords<TokenWarp<Avx512TokenWarp, Avx512DenseWarpOf<Avx512TokenWarp>>> {
  using Base = Avx2ByteRecords<TokenWarp<Avx512TokenWarp, Avx512DenseWarpOf<Avx512TokenWarp>>>;
  using Base::native, Base::lanes, Base::records, Base::same, Base::not_less, Base::any, Base::record_bits, Base::half,
      Base::wide_mask;

  L3_INLINE static Records same(Records a, Records b) {
    return records(_mm512_movm_epi16(_mm512_cmpeq_epi16_mask(native(a), native(b))));
  }
  L3_INLINE static Records not_less(Records a, Records b) {
    return records(_mm512_movm_epi16(_mm512_cmpge_epi16_mask(native(a), native(b))));
  }
  using Base::select;
  L3_INLINE static Records select(Records mask, Records a, Records b) {
    return records(_mm512_ternarylogic_epi32(native(mask), native(a), native(b), 0xCA));
  }
  L3_INLINE static ByteRecords select(ByteRecords mask, ByteRecords a, ByteRecords b) {
    return byte_records(_mm256_ternarylogic_epi32(bytes_of(mask), bytes_of(a), bytes_of(b), 0xCA));
  }
  L3_INLINE static bool any(Records mask) { return _mm512_test_epi32_mask(native(mask), native(mask)) != 0; }
  L3_INLINE static uint32_t record_bits(Records mask) { return _mm512_movepi16_mask(native(mask)); }
  L3_INLINE static Records at_most_255(Records a) {
    return records(_mm512_min_epu16(native(a), _mm512_set1_epi16(255)));
  }
  L3_INLINE static Records value_distances(Records a, Records b) {
    const __m512i distance =
        _mm512_sub_epi16(_mm512_max_epi16(native(a), native(b)), _mm512_min_epi16(native(a), native(b)));
    return records(_mm512_min_epu16(distance, _mm512_set1_epi16(0x7FFF)));
  }
  L3_INLINE static Records error_magnitudes(Records a) { return records(_mm512_abs_epi16(native(a))); }
  L3_INLINE static Records token_errors(Records value, Records p) {
    return records(_mm512_max_epi16(_mm512_subs_epi16(native(flipped(value)), native(flipped(p))),
                                    _mm512_set1_epi16(-kMaxTokenError)));
  }

  L3_INLINE static Records lower_halves_of(const Sums& sums) {
    return records(_mm512_packus_epi32((__m512i)sums.low, (__m512i)sums.high));
  }
  template <class V>
  L3_INLINE static V larger_words(const V& a, const V& b) {
    return (V)_mm512_max_epi32((__m512i)a, (__m512i)b);
  }
  template <class V>
  L3_INLINE static V lesser_words(const V& a, const V& b) {
    return (V)_mm512_min_epi32((__m512i)a, (__m512i)b);
  }
  // A shuffle gives 0 for an index with its top bit set, so the upper bytes stay 0.
  L3_INLINE static Records look_up_16(const uint8_t* table, Records index) {
    const __m512i bytes = _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(table)));
    return records(
        _mm512_shuffle_epi8(bytes, _mm512_or_si512(native(index), _mm512_set1_epi16(static_cast<int16_t>(0x8000)))));
  }
  L3_INLINE static Records look_up_64(const uint8_t* table, Records index) {
    const __m256i* const halves = reinterpret_cast<const __m256i*>(table);
    return records(_mm512_permutex2var_epi16(_mm512_cvtepu8_epi16(_mm256_load_si256(halves)), native(index),
                                             _mm512_cvtepu8_epi16(_mm256_load_si256(halves + 1))));
  }

  // Every processor with these instructions is quick at it.
  L3_INLINE static uint64_t extract(uint64_t word, uint64_t bits) { return _pext_u64(word, bits); }

  L3_INLINE static Records load_bytes(const uint8_t* from) {
    return records(_mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))));
  }
  L3_INLINE static void choose_bytes(uint8_t* to, uint32_t bits, uint8_t zero, uint8_t one) {
    avx2::choose_bytes(to, bits, zero, one);
  }
  L3_INLINE static void look_up_bytes(const uint8_t* table, const uint8_t* bytes, uint32_t count, uint8_t* to) {
    avx2::look_up_bytes(table, bytes, count, to);
  }

  L3_INLINE static void widen(Records a, Lanes* words) {
    words[0] = lanes(half<0>(native(a)));
    words[1] = lanes(half<1>(native(a)));
  }
  L3_INLINE static void widen(ByteRecords a, Lanes* words) {
    words[0] = lanes(_mm512_cvtepu8_epi32(_mm256_castsi256_si128(bytes_of(a))));
    words[1] = lanes(_mm512_cvtepu8_epi32(_mm256_extracti128_si256(bytes_of(a), 1)));
  }
  L3_INLINE static void widen(ByteRecords a, ByteRecords b, Lanes* words) {
    const __m512i both =
        _mm512_or_si512(_mm512_slli_epi16(_mm512_cvtepu8_epi16(bytes_of(a)), 5), _mm512_cvtepu8_epi16(bytes_of(b)));
    words[0] = lanes(half<0>(both));
    words[1] = lanes(half<1>(both));
  }
  L3_INLINE static ByteRecords narrow_to_bytes(const Lanes* words) {
    return byte_records(
        _mm256_set_m128i(_mm512_cvtepi32_epi8(native(words[1])), _mm512_cvtepi32_epi8(native(words[0]))));
  }
  L3_INLINE static ByteRecords mask_bytes(const Mask* masks) {
    return byte_records(_mm256_movm_epi8(masks[0] | static_cast<__mmask32>(masks[1]) << 16));
  }
  L3_INLINE static ByteRecords packed(const Records* a) { return byte_records(_mm512_cvtepi16_epi8(native(a[0]))); }
  L3_INLINE static Records wide_mask(const ByteRecords* masks, uint32_t) {
    return records(_mm512_cvtepi8_epi16(bytes_of(masks[0])));
  }
  L3_INLINE static void channels_of(const Lanes* words, ByteRecords* channels, uint32_t stride) {
    const __m512i turn = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    const __m512i a = _mm512_shuffle_epi8(native(words[0]), turn), b = _mm512_shuffle_epi8(native(words[1]), turn);
    // Each register has four words of four channels, the channels of four lanes together.
    const __m512i even = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29);
    const __m512i two = _mm512_permutex2var_epi32(a, even, b);
    const __m512i others = _mm512_permutex2var_epi32(a, _mm512_add_epi32(even, _mm512_set1_epi32(2)), b);
    channels[0] = byte_records(_mm512_castsi512_si256(two));
    channels[stride] = byte_records(_mm512_extracti64x4_epi64(two, 1));
    channels[2 * stride] = byte_records(_mm512_castsi512_si256(others));
    channels[3 * stride] = byte_records(_mm512_extracti64x4_epi64(others, 1));
  }
  L3_INLINE static void words_of(const ByteRecords* channels, uint32_t stride, uint32_t count, Lanes* words) {
    const auto two = [&](uint32_t c) __attribute__((always_inline)) {
      const __m512i first = _mm512_cvtepu8_epi16(bytes_of(channels[c * stride]));
      if (c + 1 >= count) return first;
      return _mm512_or_si512(first, _mm512_slli_epi16(_mm512_cvtepu8_epi16(bytes_of(channels[(c + 1) * stride])), 8));
    };
    const __m512i low = two(0), high = count > 2 ? two(2) : _mm512_setzero_si512();
    words[0] = lanes(_mm512_or_si512(half<0>(low), _mm512_slli_epi32(half<0>(high), 16)));
    words[1] = lanes(_mm512_or_si512(half<1>(low), _mm512_slli_epi32(half<1>(high), 16)));
  }
  L3_INLINE static Records narrow(const Lanes* words) {
    const __m512i packed = _mm512_packus_epi32(native(words[0]), native(words[1]));
    return records(_mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), packed));
  }
  L3_INLINE static Records mask_records(const Mask* masks) {
    return records(_mm512_movm_epi16(masks[0] | static_cast<__mmask32>(masks[1]) << 16));
  }
  L3_INLINE static Mask lane_mask(const ByteRecords* masks, uint32_t part) {
    return static_cast<Mask>(static_cast<uint32_t>(_mm256_movemask_epi8(bytes_of(masks[0]))) >> (16 * part));
  }
  L3_INLINE static Mask lane_mask(const Records* masks, uint32_t part) {
    return static_cast<Mask>(_mm512_movepi16_mask(native(masks[0])) >> (16 * part));
  }
};

}  // namespace

Fault decode_tokens_avx512(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                           const TokenTables& model) {
  // Wide vectors do not pay for few lanes, nor for label maps, of whose lanes few decode at a time.
  const bool is_few = dense_lanes(entry.parameters) <= Avx512TokenWarp::kPartLanes || (model.literal && !model.follow);
  return (model.engine_channels == 1 && is_few) || shape.width * shape.height <= kSmallTile
             ? decode_tokens_avx2(shape, entry, out, model)
             : decode_tokens<Avx512TokenWarp>(shape, entry, out, model);
}

Fault decode_bits_avx512(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                         const BitTables& model) {
  return dense_lanes(entry.parameters) <= Avx512TokenWarp::kPartLanes
             ? decode_bits_avx2(shape, entry, out, model)
             : decode_bits<Avx512TokenWarp>(shape, entry, out, model);
}

}  // namespace l3
