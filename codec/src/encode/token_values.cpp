// Implements token_values.h.
#include "encode/token_values.h"

#include <algorithm>

#include "encode/pixel_types.h"

namespace l3 {
namespace {

constexpr size_t kMaxColours = 8192;

// Calls use(pixel, channels, repeats) for each pixel of a tile. `repeats` says whether it equals its left or upper
// neighbour.
template <class Use>
void for_repeats(const TileSource& source, uint64_t tile, const Use& use) {
  const TileShape shape = source.shape(tile);
  with_types(source, tile, [&](const auto* first, auto channels, size_t stride) {
    const auto equal = [&](const auto* a, const auto* b) {
      uint32_t same = 1;
      for (uint32_t c = 0; c < channels(); ++c) same &= a[c] == b[c];
      return same;
    };
    for (uint32_t y = 0; y < shape.height; ++y) {
      const auto* pixel = first + y * stride;
      use(pixel, channels, y > 0 && equal(pixel, pixel - stride) != 0);
      const size_t above = y > 0 ? stride : channels();
      for (uint32_t x = 1; x < shape.width; ++x) {
        pixel += channels();
        use(pixel, channels, (equal(pixel, pixel - channels()) | equal(pixel, pixel - above)) != 0);
      }
    }
  });
}

// Like colours_of() for one channel, but in rising order.
std::vector<Colour> shades_of(const TileSource& source) {
  std::vector<uint64_t> times(1u << 16);
  for (uint64_t tile = 0; tile < source.tile_count(); ++tile) {
    for_repeats(source, tile, [&](const auto* pixel, auto, bool repeats) { times[*pixel] += !repeats; });
  }
  std::vector<Colour> shades;
  for (size_t v = 0; v < times.size(); ++v) {
    if (times[v] > 0) shades.push_back({v, times[v]});
  }
  return shades;
}

}  // namespace

ColourList::ColourList(size_t maximum) : shift_(62) {
  while (size_t{1} << (64 - shift_) < 3 * maximum) --shift_;
  slots_.resize(size_t{1} << (64 - shift_));
}

size_t ColourList::slot_of(uint64_t samples) const {
  size_t slot = samples * 0x9E3779B97F4A7C15u >> shift_;
  while (slots_[slot] != 0 && all_[slots_[slot] - 1].samples != samples) slot = (slot + 1) % slots_.size();
  return slot;
}

void ColourList::append(const Colour& colour) {
  uint32_t& number = slots_[slot_of(colour.samples)];
  all_.push_back(colour);
  if (number == 0) number = static_cast<uint32_t>(all_.size());
}

std::vector<Colour> colours_of(const TileSource& source) {
  const size_t maximum = std::min<size_t>(kMaxColours, kMaxValues / source.channels());
  ColourList list(maximum + 1);
  std::vector<Colour>& colours = list.all();
  if (source.channels() == 1) colours = shades_of(source);
  for (uint64_t tile = 0; tile < source.tile_count() && source.channels() > 1; ++tile) {
    // A pixel that repeats a neighbour is coded as a match, not by its colour's number.
    for_repeats(source, tile, [&](const auto* pixel, auto channels, bool repeats) {
      if (repeats || colours.size() > maximum) return;
      const uint64_t samples = joined<channels()>(pixel);
      const int32_t known = list.find(samples);
      if (known < 0) list.append({samples, 0});
      ++colours[known < 0 ? colours.size() - 1 : static_cast<size_t>(known)].times;
    });
    if (colours.size() > maximum) break;
  }
  if (colours.size() > maximum) return {};
  std::sort(colours.begin(), colours.end(), [](const Colour& a, const Colour& b) {
    return a.times != b.times ? a.times > b.times : a.samples < b.samples;
  });
  return std::move(colours);
}

void ranks_of(const TileSource& source, std::vector<uint16_t>* values) {
  const uint32_t count = source.channels();
  std::vector<uint8_t> seen(size_t{count} << 16);
  for (uint64_t tile = 0; tile < source.tile_count(); ++tile) {
    const TileShape shape = source.shape(tile);
    with_types(source, tile, [&](const auto* first, auto channels, size_t stride) {
      for (uint32_t y = 0; y < shape.height; ++y) {
        const auto* sample = first + y * stride;
        for (uint32_t x = 0; x < shape.width; ++x) {
          for (uint32_t c = 0; c < channels(); ++c) seen[size_t{c} << 16 | *sample++] = 1;
        }
      }
    });
  }
  for (uint32_t c = 0; c < count; ++c) {
    values[c].clear();
    for (uint32_t v = 0; v < 1u << source.bits(); ++v) {
      if (seen[size_t{c} << 16 | v] != 0) values[c].push_back(static_cast<uint16_t>(v));
    }
  }
}

ValueMap::ValueMap(const TokenModel& model) : listing_(model.listing) {
  const uint32_t channels = model.channels;
  for (uint32_t c = 0; c < channels && listing_ == Listing::ranks; ++c) {
    rank_of_[c].assign(1u << 16, -1);
    for (size_t i = 0; i < model.values[c].size(); ++i) rank_of_[c][model.values[c][i]] = static_cast<int32_t>(i);
  }
  if (listing_ != Listing::colours) return;
  colours_ = ColourList(model.values[0].size() / channels);
  for (size_t i = 0; i < model.values[0].size(); i += channels) {
    uint64_t samples = 0;
    for (uint32_t c = 0; c < channels; ++c) samples |= uint64_t{model.values[0][i + c]} << (16 * c);
    colours_.append({samples, 0});
  }
}

int32_t ValueMap::value_of(uint32_t sample) const {
  if (listing_ == Listing::none) return static_cast<int32_t>(sample);
  if (listing_ == Listing::ranks) return rank_of_[0][sample];
  return colours_.find(sample);
}

template <uint32_t kChannels, class Sample>
int32_t ValueMap::load_row(const Sample* from, uint32_t y, TokenTile& tile) const {
  const uint32_t width = tile.planes().width;
  int32_t seen = 0;
  if (listing_ == Listing::colours) {
    int32_t* const to = tile.row(0, y);
    for (uint32_t x = 0; x < width; ++x, from += kChannels) {
      const bool repeats = x > 0 && std::equal(from, from + kChannels, from - kChannels);
      to[x] = repeats ? to[x - 1] : colours_.find(joined<kChannels>(from));
      seen |= to[x];
    }
    return seen;
  }
  for (uint32_t c = 0; c < kChannels; ++c) {
    int32_t* const to = tile.row(c, y);
    const int32_t* const rank_of = rank_of_[c].data();
    if (listing_ == Listing::none) {
      for (uint32_t x = 0; x < width; ++x) seen |= to[x] = from[size_t{x} * kChannels + c];
    } else {
      for (uint32_t x = 0; x < width; ++x) seen |= to[x] = rank_of[from[size_t{x} * kChannels + c]];
    }
  }
  return seen;
}

std::unique_ptr<TokenTile> ValueMap::load(const TileSource& source, uint64_t tile, const TokenModel& model) const {
  const TileShape shape = source.shape(tile);
  auto loaded = std::make_unique<TokenTile>(shape.width, shape.height, model.engine_channels, hole_of(model));
  int32_t seen = 0;
  with_types(source, tile, [&](const auto* first, auto channels, size_t stride) {
    for (uint32_t y = 0; y < shape.height; ++y) seen |= load_row<channels()>(first + y * stride, y, *loaded);
  });
  if (seen < 0 || (listing_ == Listing::none && seen >> model.bits != 0)) return nullptr;
  loaded->finish();
  return loaded;
}

ValueCounts::ValueCounts(const std::vector<uint16_t>* ranks, uint32_t channels) {
  for (uint32_t c = 0; c < channels; ++c) {
    listed += ranks[c].size();
    range += size_t{ranks[c].back()} - ranks[c].front() + 1;
  }
}

double share_of_repeats(const TileSource& source) {
  uint64_t repeated = 0;
  for (uint64_t tile = 0; tile < source.tile_count(); ++tile) {
    uint32_t of_tile = 0;
    for_repeats(source, tile, [&](const auto*, auto, bool repeats) { of_tile += repeats; });
    repeated += of_tile;
  }
  return static_cast<double>(repeated) / static_cast<double>(source.pixels());
}

}  // namespace l3
