// Decodes tiles of token models with SSE4.2 and SSSE3.
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

}  // namespace l3
