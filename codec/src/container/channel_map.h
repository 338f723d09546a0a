// Channel maps (section 4 of the spec): images of which some channels are not coded.
#pragma once

#include "container/format.h"

namespace l3 {

constexpr uint32_t kNoSource = 255;     // of a channel with one sample everywhere
constexpr uint32_t kMapEntryBytes = 4;  // of a channel
constexpr uint32_t kMapConstantAt = 2;  // in an entry

struct ChannelMap {
  uint32_t coded = 0;  // how many channels are coded; 0: all of them, there is no map
  // Of each channel of the image: the coded channel that it equals, or kNoSource, and then its sample.
  uint8_t source[kMaxChannels] = {};
  uint16_t constant[kMaxChannels] = {};

  // Whether only the fourth channel is not coded, and has one sample everywhere: the alpha of an opaque image.
  L3_INLINE bool adds_fourth() const { return coded == 3 && source[3] == kNoSource && source[2] == 2; }

  // A sample of a channel of the image, by a function that returns the sample of a coded channel.
  template <class Coded>
  L3_INLINE uint32_t sample_of(uint32_t channel, const Coded& coded_sample) const {
    return source[channel] == kNoSource ? constant[channel] : coded_sample(source[channel]);
  }
  // All channels of a pixel, of up to 8 bits each, if one channel is coded. The first one is lowest.
  L3_INLINE uint32_t pixel_of(uint32_t sample, uint32_t channels) const {
    uint32_t pixel = 0;
    for (uint32_t c = 0; c < channels; ++c) pixel |= sample_of(c, [=](uint32_t) { return sample; }) << (8 * c);
    return pixel;
  }
};

// Reads a map for an image with these channels and bits. Returns where the first fault is, or `channels` times
// kMapEntryBytes if there is none.
L3_INLINE uint32_t read_channel_map(const uint8_t* bytes, uint32_t channels, uint32_t bits, ChannelMap& map) {
  uint32_t coded = 0;
  for (uint32_t c = 0; c < channels; ++c) {
    const uint32_t at = c * kMapEntryBytes, source = bytes[at], constant = load_u16(bytes + at + kMapConstantAt);
    if (source != kNoSource && source > coded) return at;
    if (bytes[at + 1] != 0) return at + 1;
    if (source != kNoSource ? constant != 0 : constant >> bits != 0) return at + kMapConstantAt;
    coded += source == coded;
    map.source[c] = static_cast<uint8_t>(source);
    map.constant[c] = static_cast<uint16_t>(constant);
  }
  map.coded = coded;
  return coded == 0 || coded == channels ? 0 : channels * kMapEntryBytes;
}

L3_INLINE void write_channel_map(const ChannelMap& map, uint32_t channels, uint8_t* out) {
  for (uint32_t c = 0; c < channels; ++c, out += kMapEntryBytes) {
    out[0] = map.source[c];
    out[1] = 0;
    store_u16(out + kMapConstantAt, map.constant[c]);
  }
}

}  // namespace l3
