// The values of an image that token models list, and how its pixels repeat.
#pragma once

#include "encode/tile_source.h"
#include "encode/token_model.h"

namespace l3 {

inline uint32_t sample_at(const uint8_t* pixels, uint32_t i, bool wide) {
  return wide ? reinterpret_cast<const uint16_t*>(pixels)[i] : pixels[i];
}

// Calls use(samples, x, y) for each pixel of a tile.
template <class Use>
void for_pixels(const TileSource& source, uint64_t tile, const Use& use) {
  const TileShape shape = source.shape(tile);
  const TileInput input = source.input(tile);
  uint32_t samples[kMaxChannels] = {};
  for (uint32_t y = 0; y < shape.height; ++y) {
    const uint8_t* row = input.pixels + y * input.stride;
    for (uint32_t x = 0, i = 0; x < shape.width; ++x) {
      for (uint32_t c = 0; c < shape.channels; ++c, ++i) samples[c] = sample_at(row, i, shape.bits > 8);
      use(samples, x, y);
    }
  }
}

// A colour that occurs in an image.
struct Colour {
  uint64_t samples;  // 16 bits each; the first channel is lowest
  uint64_t times;
};

// All colours, by how often they differ from their left and upper neighbours, most often first. Empty if there are too
// many.
std::vector<Colour> colours_of(const TileSource& source);
// The values that occur in each channel, in rising order.
void ranks_of(const TileSource& source, std::vector<uint16_t>* values);

// Maps samples to values: the inverse of a model's listing.
class ValueMap {
 public:
  ValueMap() = default;
  ValueMap(const TokenModel& model);

  // The value of a pixel in an engine channel, or -1 if the model does not list it.
  int32_t value_of(uint32_t channel, const uint32_t* samples) const;

 private:
  Listing listing_ = Listing::none;
  uint32_t channels_ = 0;
  std::vector<int32_t> rank_of_[kMaxChannels];          // by sample
  std::vector<std::pair<uint64_t, uint32_t>> colours_;  // a pixel's samples and its number, sorted by samples
};

// The share of pixels that equal their left or upper neighbour.
double share_of_repeats(const TileSource& source);
// For 8-bit samples, token models are tried only if at least this share of pixels repeats.
constexpr double kRepeatsForTokens = 0.15;

}  // namespace l3
