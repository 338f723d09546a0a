// PNG files, for those codecs that read what libpng wrote.
#pragma once

#include "codec.h"

namespace bench {

// By libpng, at zlib's level 0 to 9, or -1 for libpng's own choice.
std::optional<formats::Error> encode_png(const formats::Image& image, int level, bridge::Buffer& file);

// The depths that PNG has not.
std::string png_cannot_hold(const formats::Image& image);

bool is_png(std::span<const uint8_t> supplied);

}  // namespace bench
