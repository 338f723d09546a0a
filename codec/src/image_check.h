// Images that a caller hands in.
#pragma once

#include "reason.h"

namespace l3 {

// Whether an image is one that can be encoded; its samples are not looked at.
Reason check_image(const l3_image& image);

inline uint32_t channels_of(const l3_image& image) { return image.colour == L3_COLOUR_PALETTE ? 1 : image.colour + 1; }

// Bytes from one row to the next, and of a row. Of an image that was checked.
uint64_t row_bytes(const l3_image& image);
inline uint64_t stride_of(const l3_image& image) { return image.stride != 0 ? image.stride : row_bytes(image); }
// From the first byte of the samples to the last.
inline uint64_t bytes_of(const l3_image& image) { return stride_of(image) * (image.height - 1) + row_bytes(image); }

// Whether all samples are within the image's bits.
bool samples_in_range(const l3_image& image);

}  // namespace l3
