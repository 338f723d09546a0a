// Whether shapes recur in an image of two colours, as glyphs of rendered text do, but not those of scanned pages.
#pragma once

#include "encode/bit_tile.h"

namespace l3 {

// The share of the pieces of an image that are equal to another piece. The bit 1 should be that of the shapes.
double share_of_recurring(const TileSource& source, const BitColours& colours);

}  // namespace l3
