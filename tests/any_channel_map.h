// Makes files with channel maps (section 4 of the spec) of files without.
#pragma once

#include "by_hand.h"
#include "drawing.h"

namespace by_hand {

constexpr uint32_t kChannelMapFeature = 4, kChannelMapType = 7, kOneSample = 255;

// Any map of `channels` channels of which `coded` are coded: source and sample of each.
struct AnyMap {
  uint32_t source[4] = {}, sample[4] = {};

  AnyMap(drawing::Dice& dice, uint32_t channels, uint32_t coded, uint32_t bits) {
    uint32_t there = 0;
    for (uint32_t c = 0; c < channels; ++c) {
      const bool must_be_new = coded - there == channels - c;
      if (must_be_new || (there < coded && dice.chance(2))) {
        source[c] = there++;
      } else if (there == 0 || dice.chance(2)) {
        source[c] = kOneSample;
        sample[c] = dice.chance(2) ? (1u << bits) - 1 : dice.roll(1u << bits);
      } else {
        source[c] = dice.roll(there);
      }
    }
  }
  Bytes bytes(uint32_t channels) const {
    Bytes result(4 * channels);
    for (uint32_t c = 0; c < channels; ++c) {
      result[4 * c] = static_cast<uint8_t>(source[c]);
      put(&result[4 * c + 2], 2, sample[c]);
    }
    return result;
  }
};

// Makes the channels of a file the coded channels of an image of more. Returns the map, or nothing if the file has a
// palette, a transparency, four channels or a map already.
inline std::optional<AnyMap> add_channel_map(drawing::Dice& dice, Parts& parts) {
  const uint32_t coded = parts.header[36] + 1u, bits = parts.header[35];
  if (coded > 3 || bits == 0 || bits > 16 || parts.sections.size() > 15) return {};
  for (const SectionPart& section : parts.sections) {
    if (section.type == 1 || section.type == 2 || section.type == kChannelMapType) return {};
  }
  const uint32_t channels = coded + 1 + dice.roll(4 - coded);
  put(&parts.header[32], 2, channels);
  parts.header[36] = static_cast<uint8_t>(channels - 1);
  parts.header[37] = channels % 2 == 0;
  parts.header[12] |= kChannelMapFeature;
  const AnyMap map(dice, channels, coded, bits);
  auto at = parts.sections.begin();
  while (at != parts.sections.end() && at->type < kChannelMapType) ++at;
  parts.sections.insert(at, {kChannelMapType, map.bytes(channels)});
  return map;
}

}  // namespace by_hand
