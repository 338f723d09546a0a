// Stores gray images in codecs that support only colour: each sample three times. The values do not change.
#pragma once

#include "codec.h"

namespace bench {

// Returns the number of colour channels for `image`: 3, or 4 with alpha.
uint32_t colour_channels(const formats::Image& image);

// Returns pixels with that many channels. The result points into `image` if it has them already, otherwise into `room`.
const uint8_t* as_colours(const formats::Image& image, bridge::Buffer& room);

// Returns where to decode colours for `take_colours`: the pixels of `image` if it has as many channels, otherwise
// `room`. Allocates that memory.
uint8_t* colours_of(formats::Image& image, bridge::Buffer& room);

// Converts the decoded colours to the pixels of `image`.
void take_colours(formats::Image& image, const bridge::Buffer& room);

// Returns why a codec with 8 bits cannot store the image: deeper samples, or an edge over `max_edge`.
std::string not_eight_bits(const formats::Image& image, uint32_t max_edge);

}  // namespace bench
