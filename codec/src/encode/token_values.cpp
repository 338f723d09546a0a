// Implements token_values.h.
#include "encode/token_values.h"

#include <algorithm>
#include <unordered_map>

namespace l3 {
namespace {

constexpr uint32_t kMaxColours = 8192;

// Packs all samples of a pixel into one number.
uint64_t joined(const uint32_t* samples, uint32_t channels) {
  uint64_t all = 0;
  for (uint32_t c = 0; c < channels; ++c) all |= uint64_t{samples[c]} << (16 * c);
  return all;
}

// Calls use(pixel, repeats) for each pixel of a tile. `pixel` has all its samples in one number. `repeats` says
// whether it equals its left or upper neighbour.
template <class Use>
void for_repeats(const TileSource& source, uint64_t tile, const Use& use) {
  const uint32_t channels = source.channels();
  std::vector<uint64_t> above(source.shape(tile).width, UINT64_MAX);
  uint64_t before = UINT64_MAX;
  for_pixels(source, tile, [&](const uint32_t* samples, uint32_t x, uint32_t) {
    const uint64_t pixel = joined(samples, channels);
    use(pixel, (pixel == before && x > 0) || pixel == above[x]);
    before = above[x] = pixel;
  });
}

}  // namespace

std::vector<Colour> colours_of(const TileSource& source) {
  std::unordered_map<uint64_t, uint64_t> times;
  const size_t maximum = std::min(kMaxColours, kMaxValues / source.channels());
  for (uint64_t tile = 0; tile < source.tile_count(); ++tile) {
    // A pixel that repeats a neighbour is coded as a match, not by its colour's number.
    for_repeats(source, tile, [&](uint64_t pixel, bool repeats) {
      if (!repeats && times.size() <= maximum) ++times[pixel];
    });
    if (times.size() > maximum) return {};
  }
  std::vector<Colour> colours;
  for (const auto& [samples, count] : times) colours.push_back({samples, count});
  std::sort(colours.begin(), colours.end(), [](const Colour& a, const Colour& b) {
    return a.times != b.times ? a.times > b.times : a.samples < b.samples;
  });
  return colours;
}

void ranks_of(const TileSource& source, std::vector<uint16_t>* values) {
  const uint32_t channels = source.channels();
  std::vector<uint8_t> seen(size_t{channels} << 16);
  for (uint64_t tile = 0; tile < source.tile_count(); ++tile) {
    for_pixels(source, tile, [&](const uint32_t* samples, uint32_t, uint32_t) {
      for (uint32_t c = 0; c < channels; ++c) seen[size_t{c} << 16 | samples[c]] = 1;
    });
  }
  for (uint32_t c = 0; c < channels; ++c) {
    values[c].clear();
    for (uint32_t v = 0; v < 1u << 16; ++v) {
      if (seen[size_t{c} << 16 | v] != 0) values[c].push_back(static_cast<uint16_t>(v));
    }
  }
}

ValueMap::ValueMap(const TokenModel& model) : listing_(model.listing), channels_(model.channels) {
  if (listing_ == Listing::ranks) {
    for (uint32_t c = 0; c < channels_; ++c) {
      rank_of_[c].assign(1u << 16, -1);
      for (size_t i = 0; i < model.values[c].size(); ++i) rank_of_[c][model.values[c][i]] = static_cast<int32_t>(i);
    }
  }
  if (listing_ == Listing::colours) {
    uint32_t samples[kMaxChannels];
    for (uint32_t i = 0; i < model.values[0].size() / channels_; ++i) {
      for (uint32_t c = 0; c < channels_; ++c) samples[c] = model.values[0][size_t{i} * channels_ + c];
      colours_.emplace_back(joined(samples, channels_), i);
    }
    std::stable_sort(colours_.begin(), colours_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  }
}

int32_t ValueMap::value_of(uint32_t channel, const uint32_t* samples) const {
  if (listing_ == Listing::none) return static_cast<int32_t>(samples[channel]);
  if (listing_ == Listing::ranks) return rank_of_[channel][samples[channel]];
  const uint64_t pixel = joined(samples, channels_);
  const auto at = std::lower_bound(colours_.begin(), colours_.end(), pixel,
                                   [](const auto& entry, uint64_t wanted) { return entry.first < wanted; });
  return at != colours_.end() && at->first == pixel ? static_cast<int32_t>(at->second) : -1;
}

double share_of_repeats(const TileSource& source) {
  uint64_t repeated = 0;
  for (uint64_t tile = 0; tile < source.tile_count(); ++tile) {
    for_repeats(source, tile, [&](uint64_t, bool repeats) { repeated += repeats; });
  }
  return static_cast<double>(repeated) / static_cast<double>(source.pixels());
}

}  // namespace l3
