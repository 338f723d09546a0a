// Implements coded_image.h.
#include "encode/coded_image.h"

#include <cstring>

#include "encode/image_check.h"

namespace l3 {
namespace {

// Calls use(first, stride) with the type of a sample. The stride is in samples.
template <class Use>
auto with_samples(const l3_image& image, const Use& use) {
  const size_t stride = stride_of(image);
  if (image.bits > 8) return use(static_cast<const uint16_t*>(image.pixels), stride / 2);
  return use(static_cast<const uint8_t*>(image.pixels), stride);
}

// Which channels may still be left out, after some rows.
struct Redundant {
  uint32_t constant = 0;             // a bit for each channel that has the sample of the first pixel everywhere
  uint32_t same[kMaxChannels] = {};  // for each channel, a bit for each channel before it that equals it everywhere

  bool any(uint32_t channels) const {
    uint32_t all = constant;
    for (uint32_t c = 0; c < channels; ++c) all |= same[c];
    return all != 0;
  }
};

template <uint32_t kChannels, class Sample>
void look_at_row(const Sample* row, uint32_t width, const Sample* first, Redundant& redundant) {
  // Bits in which samples differ: from the first pixel's, and from those of channels before.
  uint32_t from_first[kChannels] = {}, from_other[kChannels][kChannels] = {};
  for (uint32_t x = 0; x < width; ++x, row += kChannels) {
    for (uint32_t c = 0; c < kChannels; ++c) {
      from_first[c] |= uint32_t{row[c]} ^ first[c];
      for (uint32_t b = 0; b < c; ++b) from_other[c][b] |= uint32_t{row[c]} ^ row[b];
    }
  }
  for (uint32_t c = 0; c < kChannels; ++c) {
    if (from_first[c] != 0) redundant.constant &= ~(1u << c);
    for (uint32_t b = 0; b < c; ++b) {
      if (from_other[c][b] != 0) redundant.same[c] &= ~(1u << b);
    }
  }
}

template <uint32_t kChannels>
Redundant find_redundant(const l3_image& image) {
  Redundant redundant;
  redundant.constant = (1u << kChannels) - 1;
  for (uint32_t c = 0; c < kChannels; ++c) redundant.same[c] = (1u << c) - 1;
  with_samples(image, [&](const auto* first, size_t stride) {
    for (uint32_t y = 0; y < image.height && redundant.any(kChannels); ++y) {
      look_at_row<kChannels>(first + y * stride, image.width, first, redundant);
    }
  });
  return redundant;
}

}  // namespace

std::optional<ChannelMap> find_channel_map(const l3_image& image) {
  const uint32_t channels = channels_of(image);
  if (channels == 1) return {};
  const Redundant redundant = channels == 2   ? find_redundant<2>(image)
                              : channels == 3 ? find_redundant<3>(image)
                                              : find_redundant<4>(image);
  ChannelMap map;
  for (uint32_t c = 0; c < channels; ++c) {
    if ((redundant.constant >> c & 1) != 0) {
      map.source[c] = kNoSource;
      with_samples(image, [&](const auto* first, size_t) { map.constant[c] = first[c]; });
    } else {
      const uint32_t same = redundant.same[c];
      map.source[c] = same != 0 ? map.source[__builtin_ctz(same)] : static_cast<uint8_t>(map.coded++);
    }
  }
  // An image of one colour has constant tiles.
  return map.coded == 0 || map.coded == channels ? std::nullopt : std::optional(map);
}

CodedImage::CodedImage(const Request& request, const ChannelMap& map)
    : mapped_{map, request.channels(), request.image.colour, request.image.alpha}, request_(request) {
  const l3_image& image = request.image;
  l3_image& coded = request_.image;
  const uint32_t channels = mapped_.channels;
  const size_t samples = size_t{image.width} * image.height * map.coded;
  pixels_ = std::make_unique_for_overwrite<uint8_t[]>(samples * (image.bits > 8 ? 2 : 1));
  with_samples(image, [&](const auto* first, size_t stride) {
    uint8_t* to = pixels_.get();
    for (uint32_t y = 0; y < image.height; ++y) {
      const auto* pixel = first + y * stride;
      for (uint32_t x = 0; x < image.width; ++x, pixel += channels) {
        // The sources of coded channels rise.
        for (uint32_t c = 0, next = 0; c < channels; ++c) {
          if (map.source[c] != next) continue;
          std::memcpy(to, pixel + c, sizeof(*pixel));
          to += sizeof(*pixel);
          ++next;
        }
      }
    }
  });
  coded.pixels = pixels_.get();
  coded.stride = 0;
  coded.colour = map.coded == 1 ? L3_COLOUR_GRAY : map.coded == 2 ? L3_COLOUR_GRAY_ALPHA : L3_COLOUR_RGB;
  coded.alpha = map.coded == 2 ? L3_ALPHA_STRAIGHT : L3_ALPHA_NONE;
  request_.mapped = &mapped_;
}

}  // namespace l3
