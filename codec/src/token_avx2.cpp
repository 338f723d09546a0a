// Decoding with token models, compiled for AVX2.
#include "target.h"
#include "token_body.h"
#include "word_warp_avx2.h"

namespace l3 {

Fault decode_tokens_avx2(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                         const TokenTables& model) {
  return decode_tokens<TokenWarp<Avx2WordWarp>>(shape, entry, out, model);
}

}  // namespace l3
