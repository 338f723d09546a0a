// Finds the pixels of a tile that follow others (section 15.6 of the spec).
#pragma once

#include "engine/token_planes.h"

namespace l3 {

// The lanes of a tile whose pixels follow others, which must be known before.
uint32_t log_follow_lanes(uint32_t width, uint32_t height);

// Sets what each pixel follows, and the symbols of those that equal it and no neighbour. To be called after
// find_matches().
void find_follows(const TokenPlanes& planes);

}  // namespace l3
