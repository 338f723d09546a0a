// Decodes dense tiles with NEON.
#include "engine/dense_body.h"
#include "targets/dense_warp_neon.h"
#include "targets/target.h"

namespace l3 {
namespace {

struct DenseNeonWarp : NeonDenseWarp<DenseNeonWarp> {};

}  // namespace

Fault decode_dense_neon(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                        const DenseTables& model) {
  return decode_dense<DenseNeonWarp>(shape, entry, out, model);
}

}  // namespace l3
