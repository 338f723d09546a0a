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
  const uint64_t tiles = source.tile_count();
  std::vector<uint64_t> first(tiles + 1);  // number of each tile's first piece
  for (uint64_t tile = 0; tile < tiles; ++tile) {
    const TileShape shape = source.shape(tile);
    first[tile + 1] = first[tile] + uint64_t{ceil_div(shape.width, kEdge)} * ceil_div(shape.height, kEdge);
  }
  const uint64_t all = first[tiles], count = std::clamp<uint64_t>(pixels / (kEdge * kEdge), 1, all);
  std::vector<SampleTile> pieces;
  for (uint64_t i = 0; i < count; ++i) {
    // One of each group of neighbours, not the same one each time: images have regular patterns.
    const uint64_t from = i * all / count, group = (i + 1) * all / count - from;
    const uint64_t piece = from + (i * 0x9E3779B97F4A7C15u >> 32) % group;
    const uint64_t tile = static_cast<uint64_t>(std::upper_bound(first.begin(), first.end(), piece) - first.begin()) - 1;
    const TileShape shape = source.shape(tile);
    const uint32_t across = ceil_div(shape.width, kEdge), in_tile = static_cast<uint32_t>(piece - first[tile]);
    const uint32_t x = in_tile % across * kEdge, y = in_tile / across * kEdge;
    TileShape own = shape;
    own.width = smaller(kEdge, shape.width - x);
    own.height = smaller(kEdge, shape.height - y);
    const size_t pixel = size_t{shape.channels} * (shape.bits > 8 ? 2 : 1), row = own.width * pixel;
    const TileInput input = source.input(tile);
    SampleTile copy{own, std::vector<uint8_t>(row * own.height)};
    for (uint32_t r = 0; r < own.height; ++r) {
      std::memcpy(&copy.samples[r * row], input.pixels + (y + r) * input.stride + x * pixel, row);
    }
    pieces.push_back(std::move(copy));
  }
  return pieces;
}

}  // namespace l3
