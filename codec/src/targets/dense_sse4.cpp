// Decodes dense tiles with SSE4.2 and SSSE3.
#include "engine/dense_body.h"
#include "targets/target.h"
#include "targets/word_warp_sse.h"

namespace l3 {
namespace {

struct Sse4WordWarp : SseWordWarp<Sse4WordWarp> {};

}  // namespace

Fault decode_dense_sse4(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                        const DenseTables& model) {
  return decode_dense<Sse4WordWarp>(shape, entry, out, model);
}

}  // namespace l3
