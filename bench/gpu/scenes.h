// Drawn images, for machines that have no real ones: a street as a car's camera sees it, its label map and its depth.
// What counts is that they cost about as many bits as real ones: edges, fine texture, and a sensor's noise, which the
// channels share in part and demosaicing has smoothed.
#pragma once

#include <cstdint>

#include "formats/image.h"
#include "parallel.h"

namespace gpu_bench {

// RGB, 8 bits.
formats::Image draw_street(uint32_t width, uint32_t height, uint64_t seed, tools::Parallel& parallel);

// What is where: gray of 8 bits, or with a palette.
formats::Image draw_labels(uint32_t width, uint32_t height, uint64_t seed, bool with_palette);

// Gray, 16 bits; 0 where nothing was measured.
formats::Image draw_depth(uint32_t width, uint32_t height, uint64_t seed);

}  // namespace gpu_bench
