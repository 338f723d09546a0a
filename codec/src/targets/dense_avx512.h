// The decoder of dense tiles for the targets that have AVX-512.
#pragma once

#include "container/tile.h"
#include "models/dense_tables.h"

namespace l3 {

Fault decode_dense_avx512(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                          const DenseTables& model);

}  // namespace l3
