// Decodes tiles of token models. Compiled with AVX2.
#include "engine/token_body.h"
#include "targets/target.h"
#include "targets/word_warp_avx2.h"

namespace l3 {
namespace {

struct Avx2TokenWarp : TokenWarp<Avx2TokenWarp, Avx2WordWarp> {
  L3_INLINE static Lanes at_least_zero(Lanes a) { return lanes(_mm256_max_epi32(native(a), _mm256_setzero_si256())); }
  L3_INLINE static Lanes at_most(Lanes a, Lanes b) { return lanes(_mm256_min_epi32(native(a), native(b))); }
  L3_INLINE static Lanes distance_pairs(Lanes a, Lanes b) {
    const __m256i distance =
        _mm256_sub_epi16(_mm256_max_epi16(native(a), native(b)), _mm256_min_epi16(native(a), native(b)));
    return lanes(_mm256_min_epu16(distance, native(splat(constant<0x7FFF7FFF>))));
  }
};

static_assert(TokenMethodWarp<Avx2TokenWarp>);

}  // namespace

Fault decode_tokens_avx2(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                         const TokenTables& model) {
  return decode_tokens_of_few<Avx2TokenWarp>(shape, entry, out, model);
}

}  // namespace l3
