// Decodes tiles of token models and of bit models. Compiled without processor-specific options.
#include "engine/bit_loop.h"
#include "engine/token_body.h"
#include "targets/target.h"
#if defined(__SSE2__)
#include "targets/token_warp_sse.h"
#endif

namespace l3 {
namespace {

#if defined(__SSE2__)
struct PortableTokenWarp : SseTokenWarp<PortableTokenWarp> {};
#else
struct PortableTokenWarp
    : TokenWarp<PortableTokenWarp, DenseWarp<PortableTokenWarp, WordWarp<PortableTokenWarp, 16> > > {};
#endif

}  // namespace

Fault decode_tokens_portable(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                             const TokenTables& model) {
  return decode_tokens<PortableTokenWarp>(shape, entry, out, model);
}

Fault decode_bits_portable(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                           const BitTables& model) {
  return decode_bits<PortableTokenWarp>(shape, entry, out, model);
}

}  // namespace l3
