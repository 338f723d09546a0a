// Implements tile_source.h.
#include "encode/tile_source.h"

namespace l3 {

uint64_t TileSource::pixels() const {
  if (head_ != nullptr) return uint64_t{head_->width} * head_->height;
  uint64_t sum = 0;
  for (const SampleTile& tile : *tiles_) sum += uint64_t{tile.shape.width} * tile.shape.height;
  return sum;
}

TileShape TileSource::shape(uint64_t tile) const {
  return head_ != nullptr ? head_->tile_shape(tile) : (*tiles_)[tile].shape;
}

TileInput TileSource::input(uint64_t tile) const {
  if (head_ == nullptr) {
    const SampleTile& copy = (*tiles_)[tile];
    return {copy.samples.data(), copy.samples.size() / copy.shape.height};
  }
  const uint64_t x = tile % head_->tiles_across * head_->tile_width;
  const uint64_t y = tile / head_->tiles_across * head_->tile_height;
  return {pixels_ + y * stride_ + x * head_->pixel_bytes(), stride_};
}

}  // namespace l3
