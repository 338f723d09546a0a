// Implements dense_tile.h: allocates the planes of a tile and loads its samples.
#include "encode/dense_tile.h"

namespace l3 {

DenseTile::DenseTile(const TileShape& shape, const TileInput& input) {
  DensePlanes& p = planes_;
  p.width = shape.width;
  p.height = shape.height;
  p.channels = shape.channels;
  p.bits = shape.bits;
  p.blocks_across = ceil_div(shape.width, kBlockEdge);
  p.blocks_down = ceil_div(shape.height, kBlockEdge);
  p.pitch = DensePlanes::pitch_of(shape.width);
  const size_t plane = p.pitch * p.height;
  numbers_.resize(plane * p.channels * 3);
  classes_.resize(size_t{p.block_count()} * p.channels);
  for (uint32_t c = 0; c < p.channels; ++c) {
    int16_t* const first = numbers_.data() + kMargin;
    p.samples[c] = first + plane * (3 * c);
    p.errors[c] = first + plane * (3 * c + 1);
    p.predicted[c] = first + plane * (3 * c + 2);
    p.classes[c] = classes_.data() + size_t{p.block_count()} * c;
  }
  for (uint32_t y = 0; y < p.height; ++y) {
    const uint8_t* from = input.pixels + y * input.stride;
    for (uint32_t c = 0; c < p.channels; ++c) {
      int16_t* to = p.samples[c] + y * p.pitch;
      for (uint32_t x = 0; x < p.width; ++x) to[x] = from[x * p.channels + c];
      fill_margins(to, p.width, p.pitch);
    }
  }
}

}  // namespace l3
