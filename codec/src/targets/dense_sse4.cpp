// Decodes dense tiles with SSE4.2 and SSSE3.
#include "engine/dense_body.h"
#include "targets/dense_warp_sse.h"
#include "targets/target.h"

namespace l3 {
namespace {

struct Sse4DenseWarp : SseDenseWarp<Sse4DenseWarp> {};

}  // namespace

Fault decode_dense_sse4(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                        const DenseTables& model) {
  return decode_dense<Sse4DenseWarp>(shape, entry, out, model);
}

}  // namespace l3
