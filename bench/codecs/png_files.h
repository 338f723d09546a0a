// Writes PNG files for the codecs that only read them.
#pragma once

#include "codec.h"

namespace bench {

// Encodes with libpng at zlib's level 0 to 9, or -1 for libpng's default.
std::optional<formats::Error> encode_png(const formats::Image& image, int level, bridge::Buffer& file);

// Returns why PNG cannot store the image: its depth does not exist in PNG.
std::string png_cannot_hold(const formats::Image& image);

bool is_png(std::span<const uint8_t> supplied);

}  // namespace bench
