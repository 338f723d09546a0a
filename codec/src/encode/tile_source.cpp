// Implements tile_source.h.
#include "encode/tile_source.h"

#include <algorithm>
#include <cstring>

namespace l3 {

uint64_t TileSource::pixels() const {
  if (tiles_ == nullptr) return uint64_t{head_.width} * head_.height;
  uint64_t sum = 0;
  for (const SampleTile& tile : *tiles_) sum += uint64_t{tile.shape.width} * tile.shape.height;
  return sum;
}

TileShape TileSource::shape(uint64_t tile) const {
  return tiles_ == nullptr ? head_.tile_shape(tile) : (*tiles_)[tile].shape;
}

TileInput TileSource::input(uint64_t tile) const {
  if (tiles_ != nullptr) return (*tiles_)[tile].input();
  const uint64_t x = tile % head_.tiles_across * head_.tile_width;
  const uint64_t y = tile / head_.tiles_across * head_.tile_height;
  return {pixels_ + y * stride_ + x * head_.pixel_bytes(), stride_};
}

std::vector<SampleTile> pieces_of(const TileSource& source, uint64_t pixels) {
  constexpr uint32_t kEdge = 64;
  const uint64_t count = std::max<uint64_t>(pixels / (kEdge * kEdge), 1);
  std::vector<SampleTile> pieces;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t tile = (2 * i + 1) * source.tile_count() / (2 * count);
    const TileShape whole = source.shape(tile);
    const TileShape shape{smaller(kEdge, whole.width), smaller(kEdge, whole.height), whole.channels, whole.bits};
    // Places inside the tiles differ from piece to piece, in steps of a block.
    const uint32_t turn = static_cast<uint32_t>(i) * 0x9E3779B1u;
    const uint32_t x = (turn >> 16) % ((whole.width - shape.width) / kBlockEdge + 1) * kBlockEdge;
    const uint32_t y = (turn >> 8) % ((whole.height - shape.height) / kBlockEdge + 1) * kBlockEdge;
    const TileInput input = source.input(tile);
    const size_t pixel = shape.channels * (shape.bits > 8 ? 2 : 1), row = shape.width * pixel;
    SampleTile piece{shape, std::vector<uint8_t>(row * shape.height)};
    for (size_t r = 0; r < shape.height; ++r) {
      std::memcpy(piece.samples.data() + r * row, input.pixels + (y + r) * input.stride + x * pixel, row);
    }
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

}  // namespace l3
