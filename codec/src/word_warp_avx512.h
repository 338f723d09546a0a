// The dense method's warp in AVX-512 registers: two parts of 16 lanes.
#pragma once

#include <immintrin.h>

#include "word_warp_avx2.h"

namespace l3 {

// Without optimization the gathers are macros, and convert their masks' signs.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"

struct Avx512WordWarp : WordWarp<64> {
  using Mask = __mmask16;
  L3_INLINE static __m512i native(Lanes a) { return (__m512i)a.v; }
  L3_INLINE static Lanes lanes(__m512i v) { return {(Vector)v}; }

  L3_INLINE static Lanes to_byte(Lanes a) {
    return lanes(_mm512_min_epi32(_mm512_max_epi32(native(a), _mm512_setzero_si512()), _mm512_set1_epi32(255)));
  }
  L3_INLINE static Lanes to_error(Lanes a) {
    return lanes(
        _mm512_min_epi32(_mm512_max_epi32(native(a), _mm512_set1_epi32(kLeastError)), _mm512_set1_epi32(kMostError)));
  }

  L3_INLINE static Mask less(Lanes a, uint32_t b) { return less_small(a, splat(b)); }
  L3_INLINE static Mask less_small(Lanes a, Lanes b) { return _mm512_cmplt_epu32_mask(native(a), native(b)); }
  L3_INLINE static Mask below_floor(Lanes state) { return less(state, kStateFloor); }
  L3_INLINE static Mask greater_signed(Lanes a, int32_t b) {
    return _mm512_cmpgt_epi32_mask(native(a), _mm512_set1_epi32(b));
  }
  L3_INLINE static Mask equal(Lanes a, uint32_t b) { return _mm512_cmpeq_epi32_mask(native(a), native(splat(b))); }
  L3_INLINE static Mask both(Mask a, Mask b) { return static_cast<Mask>(a & b); }
  L3_INLINE static Mask either(Mask a, Mask b) { return static_cast<Mask>(a | b); }
  L3_INLINE static Lanes select(Mask mask, Lanes a, Lanes b) {
    return lanes(_mm512_mask_blend_epi32(mask, native(b), native(a)));
  }
  L3_INLINE static Lanes all_bits(Mask mask) { return lanes(_mm512_movm_epi32(mask)); }
  L3_INLINE static uint32_t bits(Mask mask) { return mask; }

  // One instruction multiplies unsigned bytes with signed ones, so weights stay in bytes. Errors are signed: they are
  // taken 128 higher, and Weights::start() makes up for it.
  struct SignedFour {
    Lanes bytes;
  };
  L3_INLINE static SignedFour signed_four(Lanes a) { return {a}; }
  L3_INLINE static Lanes dot(Lanes a, const SignedFour& b, Lanes sum) {
    return lanes(_mm512_dpbusd_epi32(native(sum), native(a), native(b.bytes)));
  }
  L3_INLINE static Lanes dot(const SignedFour& a, const SignedFour& b, Lanes sum) {
    return dot(a.bytes ^ constant<0x80808080>, b, sum);
  }
  L3_INLINE static Lanes dot_magnitudes(const SignedFour& a, const SignedFour& b, Lanes sum) {
    return dot(lanes(_mm512_abs_epi8(native(a.bytes))), b, sum);
  }

  template <uint32_t kChannels>
  class Weights {
   public:
    L3_INLINE explicit Weights(const DenseTables& tables) : tables_(tables) {
      for (uint32_t c = 0; c < kChannels; ++c) {
        for (uint32_t k = 0; k < tables.classes[c]; ++k) {
          int32_t sum = 0;
          for (uint32_t word = kErrorWord; word < kCrossWord; ++word) {
            for (int byte = 0; byte < 4; ++byte) sum += static_cast<int8_t>(tables.weights[c][k][word] >> (8 * byte));
          }
          start_[c][k] = (1u << kWeightShift >> 1) - 128u * static_cast<uint32_t>(sum);
        }
        for (uint32_t word = 0; word < kActivityWords; ++word) activity_[c][word] = {splat(tables.activity[c][word])};
      }
    }
    L3_INLINE void enter(uint32_t part, uint32_t entering, Lanes block, const Classes& classes) {
      for (; entering != 0; entering &= entering - 1) {
        const uint32_t i = static_cast<uint32_t>(__builtin_ctz(entering));
        const uint32_t of_block = classes[block.v[i]];
        const uint32_t lane = part * kPartLanes + i;
        for (uint32_t c = 0; c < kChannels; ++c) {
          const uint32_t k = of_block >> (8 * c) & 0xFF;
          starts_[c][lane] = start_[c][k];
          for (uint32_t word = 0; word < tap_words(c); ++word) lanes_[c][word][lane] = tables_.weights[c][k][word];
        }
      }
    }
    L3_INLINE Lanes start(uint32_t channel, uint32_t part) const { return load(starts_[channel] + part * kPartLanes); }
    L3_INLINE SignedFour word(uint32_t channel, uint32_t i, uint32_t part) const {
      return {load(lanes_[channel][i] + part * kPartLanes)};
    }

    L3_INLINE const SignedFour& activity(uint32_t channel, uint32_t word) const { return activity_[channel][word]; }

   private:
    const DenseTables& tables_;
    SignedFour activity_[kChannels][kActivityWords];
    uint32_t start_[kChannels][kMaxClasses];
    alignas(64) uint32_t starts_[kChannels][kLanes] = {};
    alignas(64) uint32_t lanes_[kChannels][kMaxTapWords][kLanes] = {};
  };

  L3_INLINE static Lanes distances(Lanes a, Lanes b) {
    return lanes(_mm512_or_si512(_mm512_subs_epu8(native(a), native(b)), _mm512_subs_epu8(native(b), native(a))));
  }
  L3_INLINE static Lanes at_least(Lanes a, Lanes b) {
    return lanes(_mm512_movm_epi8(_mm512_cmpge_epu8_mask(native(a), native(b))));
  }
  L3_INLINE static Lanes spread(Lanes a) {
    return lanes(_mm512_shuffle_epi8(native(a), _mm512_set4_epi32(0x0C0C0C0C, 0x08080808, 0x04040404, 0)));
  }

  L3_INLINE static Lanes shift_up(Lanes a, Lanes before) {
    return lanes(_mm512_alignr_epi32(native(a), native(before), 15));
  }

  L3_INLINE static void gather_buckets(const Bucket* buckets, Lanes index, Lanes& own, Lanes& other) {
    const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    const __m512i low = _mm512_i32gather_epi64(_mm512_castsi512_si256(native(index)), buckets, 8);
    const __m512i high = _mm512_i32gather_epi64(_mm512_extracti64x4_epi64(native(index), 1), buckets, 8);
    own = lanes(_mm512_permutex2var_epi32(low, even, high));
    other = lanes(_mm512_permutex2var_epi32(low, _mm512_or_si512(even, _mm512_set1_epi32(1)), high));
  }
  L3_INLINE static Lanes gather(const uint8_t* p, Lanes index) {
    return lanes(_mm512_i32gather_epi32(native(index), p, 1)) & constant<0xFF>;
  }
  L3_INLINE static Lanes row(const DenseTables& tables, uint32_t channel, Lanes zone, Lanes pattern) {
    // Tables of 16 and 64 bytes fit registers; the latter as words, so that an index needs 16 bits of its lane.
    const __m512i of_zone =
        _mm512_cvtepu8_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(tables.zone_row[channel])));
    const __m256i* patterns = reinterpret_cast<const __m256i*>(tables.pattern_row[channel]);
    const __m512i low = _mm512_cvtepu8_epi16(_mm256_load_si256(patterns));
    const __m512i high = _mm512_cvtepu8_epi16(_mm256_load_si256(patterns + 1));
    const Lanes of_pattern = lanes(_mm512_permutex2var_epi16(low, native(pattern), high)) & constant<0xFF>;
    return lanes(_mm512_permutexvar_epi32(native(zone), of_zone)) + of_pattern;
  }

  L3_INLINE static void refill(Lanes& state, Mask mask, const uint8_t* bytes, uint32_t& at) {
    const __m512i words = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes + at)));
    const __m512i taken = _mm512_maskz_expand_epi32(mask, words);
    state = lanes(_mm512_mask_or_epi32(native(state), mask, _mm512_slli_epi32(native(state), 16), taken));
    at += 2 * static_cast<uint32_t>(__builtin_popcount(mask));
  }

  L3_INLINE static void transpose(const uint32_t* from, size_t from_row, uint32_t* to, size_t to_row) {
    Avx2Pixels::transpose(from, from_row, to, to_row);
  }
  template <uint32_t kChannels>
  L3_INLINE static void store_pixels(uint8_t* to, const uint32_t* pixels, uint32_t count) {
    const uint32_t stored = Avx2Pixels::store_most<kChannels>(to, pixels, count);
    WordWarp<64>::store_pixels<kChannels>(to + size_t{stored} * kChannels, pixels + stored, count - stored);
  }
};

#pragma GCC diagnostic pop

}  // namespace l3
