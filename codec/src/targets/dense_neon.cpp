// Decodes dense tiles with NEON.
#include "engine/dense_body.h"
#include "targets/target.h"
#include "targets/word_warp_neon.h"

namespace l3 {
namespace {

struct DenseNeonWarp : NeonWordWarp<DenseNeonWarp> {};

}  // namespace

Fault decode_dense_neon(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                        const DenseTables& model) {
  return decode_dense<DenseNeonWarp>(shape, entry, out, model);
}

}  // namespace l3
