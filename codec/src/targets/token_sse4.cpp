// Decodes tiles of token models with SSE4.2 and SSSE3.
#include "engine/token_body.h"
#include "targets/target.h"
#include "targets/word_warp_sse.h"

namespace l3 {
namespace {

struct Sse4TokenWarp : TokenWarp<Sse4TokenWarp, SseWordWarp<Sse4TokenWarp>> {
  L3_INLINE static Lanes at_least_zero(Lanes a) { return lanes(_mm_max_epi32(native(a), _mm_setzero_si128())); }
  L3_INLINE static Lanes at_most(Lanes a, Lanes b) { return lanes(_mm_min_epi32(native(a), native(b))); }
  L3_INLINE static Lanes distance_pairs(Lanes a, Lanes b) {
    const __m128i distance = _mm_sub_epi16(_mm_max_epi16(native(a), native(b)), _mm_min_epi16(native(a), native(b)));
    return lanes(_mm_min_epu16(distance, _mm_set1_epi16(0x7FFF)));
  }
};

}  // namespace

Fault decode_tokens_sse4(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                         const TokenTables& model) {
  return decode_tokens<Sse4TokenWarp>(shape, entry, out, model);
}

}  // namespace l3
