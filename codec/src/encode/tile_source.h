// Gives encoders access to the tiles of an image, or to copies of tiles.
#pragma once

#include <vector>

#include "container/container_rules.h"

namespace l3 {

// A tile that was copied from an image.
struct SampleTile {
  TileShape shape;
  std::vector<uint8_t> samples;

  TileInput input() const { return {samples.data(), samples.size() / shape.height}; }
};

// One or more tiles, either of an image or copies from several images.
class TileSource {
 public:
  TileSource(const Head& head, const uint8_t* pixels, size_t stride) : head_(head), pixels_(pixels), stride_(stride) {}
  explicit TileSource(const std::vector<SampleTile>& tiles) : tiles_(&tiles) {}

  uint32_t channels() const { return tiles_ == nullptr ? head_.coded_channels() : tiles_->front().shape.channels; }
  uint32_t bits() const { return tiles_ == nullptr ? head_.bits : tiles_->front().shape.bits; }
  uint64_t tile_count() const { return tiles_ == nullptr ? head_.tile_count : tiles_->size(); }
  uint64_t pixels() const;
  TileShape shape(uint64_t tile) const;
  TileInput input(uint64_t tile) const;

 private:
  Head head_{};
  const uint8_t* pixels_ = nullptr;
  size_t stride_ = 0;
  const std::vector<SampleTile>* tiles_ = nullptr;
};

// Copies pieces of at most `edge` x `edge` pixels from tiles all over the source, with about `pixels` pixels in all.
std::vector<SampleTile> pieces_of(const TileSource& source, uint64_t pixels, uint32_t edge = 64);

}  // namespace l3
