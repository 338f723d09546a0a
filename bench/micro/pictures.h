// Drawn images: the same ones on every machine, since what a loop costs depends on what it works on.
#pragma once

#include <cstdint>
#include <vector>

#include "l3/l3.h"

namespace micro {

struct Picture {
  uint32_t width = 0, height = 0, bits = 8;
  l3_colour colour = L3_COLOUR_GRAY;
  std::vector<uint8_t> pixels;   // as l3_image takes them, rows without padding
  std::vector<uint8_t> palette;  // red, green, blue of each entry, or none

  // As libl3 takes it: valid as long as the picture is.
  l3_image image() const;
};

// RGB of 8 bits: soft shapes, edges, texture on many scales, and a sensor's grain unless it is clean: then many pixels
// equal a neighbour.
Picture draw_photo(uint32_t width, uint32_t height, bool clean = false);
// Indices of classes: patches with ragged edges.
Picture draw_labels(uint32_t width, uint32_t height);
// Gray of 1 bit: the ragged outlines of patches, and specks.
Picture draw_page(uint32_t width, uint32_t height);
// Grey of 16 bits: slanted planes, some noise, and holes without a distance.
Picture draw_depth(uint32_t width, uint32_t height);
// Grey of 7 bits, all of it noise: what no method makes smaller.
Picture draw_noise(uint32_t width, uint32_t height);

}  // namespace micro
