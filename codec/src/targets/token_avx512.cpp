// Decodes tiles of token models with AVX-512. Compiled for Cascade Lake and later: uses VNNI, but not VBMI.
#include "engine/token_body.h"
#include "targets/target.h"
#include "targets/word_warp_avx512.h"

namespace l3 {
namespace {

struct Avx512TokenWarp : TokenWarp<Avx512TokenWarp, Avx512WordWarp> {
  L3_INLINE static Mask same(Lanes a, Lanes b) { return _mm512_cmpeq_epi32_mask(native(a), native(b)); }
  L3_INLINE static Mask not_less(Lanes a, Lanes b) { return _mm512_cmpge_epi32_mask(native(a), native(b)); }
  L3_INLINE static Mask without(Mask a, Mask b) { return static_cast<Mask>(a & ~b); }
  L3_INLINE static Lanes select_or_zero(Mask mask, Lanes a) { return lanes(_mm512_maskz_mov_epi32(mask, native(a))); }
  L3_INLINE static Lanes at_least_zero(Lanes a) { return lanes(_mm512_max_epi32(native(a), _mm512_setzero_si512())); }
  L3_INLINE static Lanes at_most(Lanes a, Lanes b) { return lanes(_mm512_min_epi32(native(a), native(b))); }
  L3_INLINE static Lanes magnitude_pairs(Lanes a) { return lanes(_mm512_abs_epi16(native(a))); }
  L3_INLINE static Lanes distance_pairs(Lanes a, Lanes b) {
    const __m512i distance =
        _mm512_sub_epi16(_mm512_max_epi16(native(a), native(b)), _mm512_min_epi16(native(a), native(b)));
    return lanes(_mm512_min_epu16(distance, _mm512_set1_epi16(0x7FFF)));
  }
};

static_assert(TokenMethodWarp<Avx512TokenWarp>);

}  // namespace

Fault decode_tokens_avx512(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                           const TokenTables& model) {
  // With one channel and few lanes, most time is spent on work that is done lane by lane, where wider vectors do not
  // help.
  const bool is_few = model.engine_channels == 1 && dense_lanes(entry.parameters) <= Avx512TokenWarp::kPartLanes;
  return is_few || shape.width * shape.height <= kSmallTile ? decode_tokens_avx2(shape, entry, out, model)
                                                            : decode_tokens<Avx512TokenWarp>(shape, entry, out, model);
}

}  // namespace l3
