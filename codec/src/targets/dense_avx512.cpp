// Decodes dense tiles with the registers of AVX2 and the instructions of AVX-512. Compiled for Cascade Lake and later.
#include "engine/dense_body.h"
#include "targets/dense_warp_avx2.h"
#include "targets/target.h"

namespace l3 {
namespace {

struct Avx512DenseWarp : Avx2DenseWarpOf<Avx512DenseWarp> {
  L3_INLINE static void refill(Lanes& state, Mask mask, const uint8_t* payload, uint32_t& at) {
    const __mmask8 set = _mm256_movepi32_mask(native(mask));
    const __m256i words = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(payload + at)));
    const __m256i taken = _mm256_maskz_expand_epi32(set, words);
    state = lanes(_mm256_mask_or_epi32(native(state), set, _mm256_slli_epi32(native(state), 16), taken));
    at += 2 * static_cast<uint32_t>(__builtin_popcount(set));
  }
};

}  // namespace

Fault decode_dense_avx512(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                          const DenseTables& model) {
  return decode_dense<Avx512DenseWarp>(shape, entry, out, model);
}

}  // namespace l3
