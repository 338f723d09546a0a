// The values of an image that token models list, and how its pixels repeat.
#pragma once

#include "encode/tile_source.h"
#include "encode/token_tile.h"

namespace l3 {

// A colour that occurs in an image.
struct Colour {
  uint64_t samples;  // 16 bits each; the first channel is lowest
  uint64_t times;
};

// A list of colours that finds the number of a colour.
class ColourList {
 public:
  // There may be at most this many colours.
  explicit ColourList(size_t maximum);

  // The number of a colour, the first one if it is listed twice, or -1.
  int32_t find(uint64_t samples) const { return static_cast<int32_t>(slots_[slot_of(samples)]) - 1; }
  void append(const Colour& colour);
  std::vector<Colour>& all() { return all_; }

 private:
  // Where a colour is, or would be added.
  size_t slot_of(uint64_t samples) const;

  uint32_t shift_;
  std::vector<uint32_t> slots_;  // a number plus 1, or 0
  std::vector<Colour> all_;
};

// All colours, by how often they differ from their left and upper neighbours, most often first. Empty if there are too
// many.
std::vector<Colour> colours_of(const TileSource& source);
// The values that occur in each channel, in rising order.
void ranks_of(const TileSource& source, std::vector<uint16_t>* values);

// How many values occur in the channels of an image, and how many lie between the least and the greatest of them.
struct ValueCounts {
  size_t listed = 0, range = 0;

  ValueCounts(const std::vector<uint16_t>* ranks, uint32_t channels);
  // Whether so many values do not occur that a model may list those that do.
  bool has_gaps() const { return listed * 5 < range * 4; }
};

// Maps samples to values: the inverse of a model's listing.
class ValueMap {
 public:
  ValueMap() = default;
  ValueMap(const TokenModel& model);

  // The value of a sample of the first channel, or -1 if the model does not list it.
  int32_t value_of(uint32_t sample) const;
  // Loads a tile. Returns null if the model does not list some value.
  std::unique_ptr<TokenTile> load(const TileSource& source, uint64_t tile, const TokenModel& model) const;

 private:
  // Loads a row of a tile. Returns all its values joined by or.
  template <uint32_t kChannels, class Sample>
  int32_t load_row(const Sample* from, uint32_t y, TokenTile& tile) const;

  Listing listing_ = Listing::none;
  std::vector<int32_t> rank_of_[kMaxChannels];  // by sample
  ColourList colours_{1};
};

// The share of pixels that equal their left or upper neighbour.
double share_of_repeats(const TileSource& source);
// How much a source contributes to the size of a file, roughly, as a number of pixels that do not repeat. What it is
// for: to conclude from a sample, whose pixels may repeat more or less often than others.
inline double content_of(double repeats, uint64_t pixels) {
  constexpr double kContentOfRepeat = 1.0 / 32;
  return static_cast<double>(pixels) * (1 - repeats + kContentOfRepeat);
}

}  // namespace l3
