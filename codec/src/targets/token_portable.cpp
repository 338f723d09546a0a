// Decodes tiles of token models. Compiled without processor-specific options.
#include "engine/token_body.h"
#include "targets/target.h"

namespace l3 {

Fault decode_tokens_portable(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                             const TokenTables& model) {
  return decode_tokens<PortableTokenWarp>(shape, entry, out, model);
}

}  // namespace l3
