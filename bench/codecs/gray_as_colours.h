// Gray for codecs that know colours alone: each sample three times. Samples keep their values, whatever their bits.
#pragma once

#include "codec.h"

namespace bench {

// The colours that hold `image`'s channels: 3, or 4 where there is alpha.
uint32_t colour_channels(const formats::Image& image);

// Pixels of so many channels. Points into `image` where it has as many, else into `room`.
const uint8_t* as_colours(const formats::Image& image, bridge::Buffer& room);

// Where decoded colours are to go for `take_colours`: into `image`'s own pixels where it has as many channels, else
// into `room`. Makes the room for them.
uint8_t* colours_of(formats::Image& image, bridge::Buffer& room);

// Makes `image`'s pixels of them.
void take_colours(formats::Image& image, const bridge::Buffer& room);

// What such codecs with 8 bits cannot hold: deeper samples, and edges beyond `max_edge`.
std::string not_eight_bits(const formats::Image& image, uint32_t max_edge);

}  // namespace bench
