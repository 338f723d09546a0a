// Images that a caller hands in.
#pragma once

#include "reason.h"

namespace l3 {

// Whether an image is one that can be encoded; its samples are not looked at.
Reason check_image(const l3_image& image);

inline uint32_t channels_of(const l3_image& image) { return image.colour == L3_COLOUR_PALETTE ? 1 : image.colour + 1; }

// Whether all samples are within the image's bits.
bool samples_in_range(const l3_image& image);

}  // namespace l3
