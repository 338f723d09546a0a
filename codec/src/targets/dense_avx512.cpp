// Decodes dense tiles with AVX-512. Compiled for Cascade Lake and later: uses VNNI, but not VBMI.
#include "engine/dense_body.h"
#include "targets/target.h"
#include "targets/word_warp_avx512.h"

namespace l3 {

Fault decode_dense_avx512(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                          const DenseTables& model) {
  return shape.width * shape.height <= kSmallTile ? decode_dense_avx2(shape, entry, out, model)
                                                  : decode_dense<Avx512WordWarp>(shape, entry, out, model);
}

}  // namespace l3
