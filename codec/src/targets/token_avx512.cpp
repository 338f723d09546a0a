// Decodes tiles of token models with the registers of AVX2 and the instructions of AVX-512. Compiled for Cascade Lake
// and later.
#include "engine/token_body.h"
#include "targets/target.h"
#include "targets/token_warp_avx2.h"
#include "targets/word_warp_avx512.h"

namespace l3 {
namespace {

struct Avx512TokenWarp : Avx2TokenWarpOf<Avx512TokenWarp> {
  L3_INLINE static void refill(Lanes& state, Mask mask, const uint8_t* payload, uint32_t& at) {
    refill_by_expanding(state, mask, payload, at);
  }
};

}  // namespace

Fault decode_tokens_avx512(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                           const TokenTables& model) {
  return decode_tokens<Avx512TokenWarp>(shape, entry, out, model);
}

}  // namespace l3
