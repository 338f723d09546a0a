// The dense method's decoder in AVX-512 registers, for all targets that have it.
#pragma once

#include "dense_tables.h"
#include "tile.h"

namespace l3 {

Fault decode_dense_avx512(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                          const DenseTables& model);

}  // namespace l3
