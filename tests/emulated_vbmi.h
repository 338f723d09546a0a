// Emulates the four instructions of AVX-512 VBMI, so that a processor with the rest of AVX-512 can test the avx512
// target. It is slow, and only for tests. L3_EMULATE_VBMI includes it before everything else.
#pragma once

#include <immintrin.h>

namespace emulated_vbmi {

union Bytes {
  __m512i vector;
  unsigned char bytes[64];
  unsigned long long quads[8];
};

inline __m512i permute(__m512i index, __m512i a) {
  Bytes from{a}, at{index}, to{};
  for (int i = 0; i < 64; ++i) to.bytes[i] = from.bytes[at.bytes[i] & 63];
  return to.vector;
}

inline __m512i permute2(__m512i a, __m512i index, __m512i b) {
  Bytes first{a}, second{b}, at{index}, to{};
  for (int i = 0; i < 64; ++i) {
    to.bytes[i] = ((at.bytes[i] & 64) != 0 ? second : first).bytes[at.bytes[i] & 63];
  }
  return to.vector;
}

inline __m512i permute2_some(__mmask64 mask, __m512i a, __m512i index, __m512i b) {
  Bytes to{permute2(a, index, b)};
  for (int i = 0; i < 64; ++i) {
    if ((mask >> i & 1) == 0) to.bytes[i] = 0;
  }
  return to.vector;
}

inline __m512i multishift(__m512i control, __m512i a) {
  Bytes from{a}, by{control}, to{};
  for (int i = 0; i < 64; ++i) {
    const unsigned shift = by.bytes[i] & 63;
    const unsigned long long quad = from.quads[i / 8];
    to.bytes[i] = static_cast<unsigned char>(shift == 0 ? quad : quad >> shift | quad << (64 - shift));
  }
  return to.vector;
}

}  // namespace emulated_vbmi

#define _mm512_permutexvar_epi8(index, a) ::emulated_vbmi::permute(index, a)
#define _mm512_permutex2var_epi8(a, index, b) ::emulated_vbmi::permute2(a, index, b)
#define _mm512_maskz_permutex2var_epi8(mask, a, index, b) ::emulated_vbmi::permute2_some(mask, a, index, b)
#define _mm512_multishift_epi64_epi8(control, a) ::emulated_vbmi::multishift(control, a)
