// Decodes dense tiles with AVX2.
#include "engine/dense_body.h"
#include "targets/dense_warp_avx2.h"
#include "targets/target.h"

namespace l3 {

Fault decode_dense_avx2(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                        const DenseTables& model) {
  return decode_dense<Avx2DenseWarp>(shape, entry, out, model);
}

}  // namespace l3
