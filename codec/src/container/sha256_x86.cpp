// Implements sha256_x86.h.
#include "container/sha256_x86.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

#include "container/sha256_block.h"

namespace l3 {

bool has_sha256_instructions() {
  uint32_t a, b, c, d;
  return __builtin_cpu_supports("sse4.1") && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_SHA) != 0;
}

// The instructions want the eight words of the state as A, B, E, F and C, D, G, H, the first one uppermost.
__attribute__((target("sse4.1,sha"))) void add_sha256_block_x86(uint32_t* state, const uint8_t* block) {
  const auto at = [](const void* p, uint32_t i) { return static_cast<const __m128i*>(p) + i; };
  const __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128(at(state, 0)), 0xB1),
                hgfe = _mm_shuffle_epi32(_mm_loadu_si128(at(state, 1)), 0x1B);
  __m128i abef = _mm_alignr_epi8(badc, hgfe, 8), cdgh = _mm_blend_epi16(hgfe, badc, 0xF0);
  const __m128i abef_before = abef, cdgh_before = cdgh;
  const __m128i order = _mm_set_epi64x(0x0C0D0E0F08090A0B, 0x0405060700010203);
  __m128i words[4];
  for (uint32_t i = 0; i < 16; ++i) {
    __m128i& w = words[i % 4];
    if (i < 4) {
      w = _mm_shuffle_epi8(_mm_loadu_si128(at(block, i)), order);
    } else {
      const __m128i &second = words[(i + 1) % 4], &third = words[(i + 2) % 4], &last = words[(i + 3) % 4];
      const __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(w, second), _mm_alignr_epi8(last, third, 4));
      w = _mm_sha256msg2_epu32(sum, last);
    }
    const __m128i added = _mm_add_epi32(w, _mm_loadu_si128(at(sha256_constants(), i)));
    cdgh = _mm_sha256rnds2_epu32(cdgh, abef, added);
    abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(added, 0x0E));
  }
  abef = _mm_add_epi32(abef, abef_before);
  cdgh = _mm_add_epi32(cdgh, cdgh_before);
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1B), dchg = _mm_shuffle_epi32(cdgh, 0xB1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state), _mm_blend_epi16(feba, dchg, 0xF0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state) + 1, _mm_alignr_epi8(dchg, feba, 8));
}

}  // namespace l3
#endif
