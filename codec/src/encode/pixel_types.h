// Gives encoders access to the pixels of a tile with the type of their samples.
#pragma once

#include <type_traits>

#include "encode/tile_source.h"

namespace l3 {

template <uint32_t kChannels>
using Channels = std::integral_constant<uint32_t, kChannels>;

// Calls use(first, channels, stride), with the type of a sample and the number of channels as a constant. The stride is
// in samples.
template <class Use>
auto with_types(const TileSource& source, uint64_t tile, const Use& use) {
  const TileInput input = source.input(tile);
  const auto with_sample = [&](const auto* first) {
    const size_t stride = input.stride / sizeof(*first);
    switch (source.channels()) {
      case 1: return use(first, Channels<1>(), stride);
      case 2: return use(first, Channels<2>(), stride);
      case 3: return use(first, Channels<3>(), stride);
      default: return use(first, Channels<4>(), stride);
    }
  };
  return source.bits() > 8 ? with_sample(reinterpret_cast<const uint16_t*>(input.pixels)) : with_sample(input.pixels);
}

// All samples of a pixel in one number, 16 bits each; the first channel is lowest.
template <uint32_t kChannels, class Sample>
uint64_t joined(const Sample* pixel) {
  uint64_t all = 0;
  for (uint32_t c = 0; c < kChannels; ++c) all |= uint64_t{pixel[c]} << (16 * c);
  return all;
}

}  // namespace l3
