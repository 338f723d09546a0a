// Decodes tiles of token models and of bit models. Compiled with AVX2.
#include "engine/bit_loop.h"
#include "engine/token_body.h"
#include "targets/target.h"
#include "targets/token_warp_avx2.h"

namespace l3 {
namespace {

struct Avx2TokenWarp : Avx2TokenWarpOf<Avx2TokenWarp> {};

}  // namespace

Fault decode_tokens_avx2(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                         const TokenTables& model) {
  return decode_tokens<Avx2TokenWarp>(shape, entry, out, model);
}

Fault decode_bits_avx2(const TileShape& shape, const TileEntry& entry, const TileOutput& out, const BitTables& model) {
  return decode_bits<Avx2TokenWarp>(shape, entry, out, model);
}

}  // namespace l3
