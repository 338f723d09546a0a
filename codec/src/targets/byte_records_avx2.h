// Records of bytes of token tiles in AVX2 registers, the bytes of all 32 lanes in one: with AVX-512, too.
#pragma once

#include <immintrin.h>

#include "engine/token_warp.h"

namespace l3 {

// `Base` is a TokenWarp.
template <class Base>
struct Avx2ByteRecords : Base {
  using Base::select, Base::any, Base::record_bits, Base::repeat_two, Base::shift_up_one, Base::shift_up_two,
      Base::not_less;
  using typename Base::ByteRecords;
  static_assert(Base::kByteParts == 1);

  L3_INLINE static __m256i bytes_of(ByteRecords a) { return (__m256i)a.v; }
  L3_INLINE static ByteRecords byte_records(__m256i v) { return {(decltype(ByteRecords::v))v}; }

  L3_INLINE static ByteRecords select(ByteRecords mask, ByteRecords a, ByteRecords b) {
    return byte_records(_mm256_blendv_epi8(bytes_of(b), bytes_of(a), bytes_of(mask)));
  }
  L3_INLINE static ByteRecords not_less(ByteRecords a, ByteRecords b) {
    return byte_records(_mm256_cmpeq_epi8(_mm256_max_epu8(bytes_of(a), bytes_of(b)), bytes_of(a)));
  }
  L3_INLINE static bool any(ByteRecords mask) { return _mm256_testz_si256(bytes_of(mask), bytes_of(mask)) == 0; }
  L3_INLINE static uint32_t record_bits(ByteRecords mask) {
    return static_cast<uint32_t>(_mm256_movemask_epi8(bytes_of(mask)));
  }
  L3_INLINE static ByteRecords repeat_two(const uint8_t* two) {
    int16_t both;
    std::memcpy(&both, two, 2);
    return byte_records(_mm256_set1_epi16(both));
  }
  L3_INLINE static ByteRecords shift_up_one(ByteRecords a, ByteRecords before) {
    return byte_records(_mm256_alignr_epi8(bytes_of(a), middle(a, before), 15));
  }
  L3_INLINE static ByteRecords shift_up_two(ByteRecords a, ByteRecords before) {
    return byte_records(_mm256_alignr_epi8(bytes_of(a), middle(a, before), 14));
  }

 private:
  // The upper half of `before` and the lower half of `a`.
  L3_INLINE static __m256i middle(ByteRecords a, ByteRecords before) {
    return _mm256_permute2x128_si256(bytes_of(before), bytes_of(a), 0x21);
  }
};

}  // namespace l3
