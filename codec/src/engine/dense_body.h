// Decodes dense tiles with a warp type W. Included by one source file for each warp type.
#pragma once

#include "engine/dense_loop.h"
#include "engine/dense_rows.h"

namespace l3 {

template <class W, uint32_t kChannels>
Fault decode_dense_as(const TileShape& shape, const TileEntry& entry, const TileOutput& out, const DenseTables& model) {
  using Rows = DenseRows<W, kChannels>;
  Rows rows(out);
  typename W::Classes classes;
  return DenseLoop<W, kChannels, Rows>(shape, entry, model, rows, classes).decode();
}

template <class W>
Fault decode_dense(const TileShape& shape, const TileEntry& entry, const TileOutput& out, const DenseTables& model) {
  using Function = Fault (*)(const TileShape&, const TileEntry&, const TileOutput&, const DenseTables&);
  constexpr Function kFunctions[kMaxChannels] = {decode_dense_as<W, 1>, decode_dense_as<W, 2>, decode_dense_as<W, 3>,
                                                 decode_dense_as<W, 4>};
  return kFunctions[shape.channels - 1](shape, entry, out, model);
}

}  // namespace l3
