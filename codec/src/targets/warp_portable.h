// The fast method's warp on any processor, in vectors of 16 bytes.
#pragma once

#include "engine/vector_encode_warp.h"
#include "engine/warp_concepts.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace l3 {

#if defined(__SSE2__)
// Uses SSE2, which every x86-64 processor has. Compilers recognise these instructions for NEON, but not for SSE2.
struct PortableWarp : VectorEncodeWarp<16> {
  L3_INLINE static Lanes average(Lanes a, const Lanes& b) {
    for (int i = 0; i < kVectors; ++i) a.v[i] = (Vector)_mm_avg_epu16((__m128i)a.v[i], (__m128i)b.v[i]);
    return a;
  }
  L3_INLINE static Lanes shift_up(const Lanes& a, const Lanes& before) {
    Lanes r;
    for (int i = 0; i < kVectors; ++i) {
      const __m128i left = (__m128i)(i == 0 ? before.v[kVectors - 1] : a.v[i - 1]);
      r.v[i] = (Vector)_mm_or_si128(_mm_slli_si128((__m128i)a.v[i], 2), _mm_srli_si128(left, 14));
    }
    return r;
  }
  L3_INLINE static Lanes shift_down(const Lanes& a) {
    Lanes r;
    for (int i = 0; i < kVectors; ++i) {
      const __m128i own = (__m128i)a.v[i];
      const __m128i right =
          i + 1 < kVectors ? _mm_slli_si128((__m128i)a.v[i + 1], 14) : _mm_slli_si128(_mm_srli_si128(own, 14), 14);
      r.v[i] = (Vector)_mm_or_si128(_mm_srli_si128(own, 2), right);
    }
    return r;
  }
};
#else
struct PortableWarp : VectorEncodeWarp<16> {};
#endif

static_assert(FastMethodWarp<PortableWarp>);

}  // namespace l3
