// Decodes tiles of token models and of bit models with SSE4.2 and SSSE3.
#include "engine/bit_loop.h"
#include "engine/token_body.h"
#include "targets/target.h"
#include "targets/token_warp_sse.h"

namespace l3 {
namespace {

struct Sse4TokenWarp : SseTokenWarp<Sse4TokenWarp> {};

}  // namespace

Fault decode_tokens_sse4(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                         const TokenTables& model) {
  return decode_tokens<Sse4TokenWarp>(shape, entry, out, model);
}

Fault decode_bits_sse4(const TileShape& shape, const TileEntry& entry, const TileOutput& out, const BitTables& model) {
  return decode_bits<Sse4TokenWarp>(shape, entry, out, model);
}

}  // namespace l3
