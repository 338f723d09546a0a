// Checks of images that callers pass in.
#pragma once

#include "container/reason.h"

namespace l3 {

// Whether an image can be encoded. Does not look at its samples.
Reason check_image(const l3_image& image);

inline uint32_t channels_of(const l3_image& image) { return image.colour == L3_COLOUR_PALETTE ? 1 : image.colour + 1; }

// row_bytes(): the size of a row without padding. stride_of(): the distance from one row to the next.
uint64_t row_bytes(const l3_image& image);
inline uint64_t stride_of(const l3_image& image) { return image.stride != 0 ? image.stride : row_bytes(image); }
// From the first byte of the samples to the end of the last row.
inline uint64_t bytes_of(const l3_image& image) { return stride_of(image) * (image.height - 1) + row_bytes(image); }

// Whether all samples are at most 2^bits - 1.
bool samples_in_range(const l3_image& image);

}  // namespace l3
