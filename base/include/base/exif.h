// The orientation in EXIF data: bytes that begin with a TIFF header.
#pragma once

#include <cstddef>
#include <cstdint>

namespace base {

// From 1, which is upright, to 8. It is 1 if the data names no orientation or is damaged. Null is the same as no data.
uint32_t orientation_of(const uint8_t* exif, size_t size);

// Changes the orientation that orientation_of() finds to 1. Does nothing if it is 1 already.
void set_upright(uint8_t* exif, size_t size);

}  // namespace base
