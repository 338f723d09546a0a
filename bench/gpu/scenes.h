// Draws images for machines without real ones: a street seen by a car's camera, its label map and its depth. They
// should compress about as well as real images. So they have edges, fine texture and sensor noise, which the channels
// partly share and which demosaicing has smoothed.
#pragma once

#include <cstdint>

#include "base/parallel.h"
#include "formats/image.h"

namespace gpu_bench {

// RGB, 8 bits.
formats::Image draw_street(uint32_t width, uint32_t height, uint64_t seed, base::Parallel& parallel);

// What is where: gray of 8 bits, or with a palette.
formats::Image draw_labels(uint32_t width, uint32_t height, uint64_t seed, bool with_palette);

// Gray, 16 bits; 0 where nothing was measured.
formats::Image draw_depth(uint32_t width, uint32_t height, uint64_t seed);

}  // namespace gpu_bench
