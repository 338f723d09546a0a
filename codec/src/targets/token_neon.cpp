// Decodes tiles of token models with NEON.
#include "engine/token_body.h"
#include "targets/target.h"
#include "targets/word_warp_neon.h"

namespace l3 {
namespace {

struct TokenNeonWarp : TokenWarp<TokenNeonWarp, NeonWordWarp<TokenNeonWarp>> {
  L3_INLINE static Lanes at_least_zero(Lanes a) { return lanes(vmaxq_s32(signed_words(a), vdupq_n_s32(0))); }
  L3_INLINE static Lanes at_most(Lanes a, Lanes b) { return lanes(vminq_s32(signed_words(a), signed_words(b))); }
  L3_INLINE static Lanes distance_pairs(Lanes a, Lanes b) {
    const uint16x8_t distance = vreinterpretq_u16_s16(vabdq_s16(signed_shorts(a), signed_shorts(b)));
    return lanes(vminq_u16(distance, vdupq_n_u16(32767)));
  }
};

}  // namespace

Fault decode_tokens_neon(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                         const TokenTables& model) {
  return decode_tokens<TokenNeonWarp>(shape, entry, out, model);
}

}  // namespace l3
