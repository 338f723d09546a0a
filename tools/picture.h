// An image as a screen shows it: what l3 show draws.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "failure.h"
#include "formats/image.h"
#include "l3/l3.h"
#include "loader/geometry.h"

namespace tools {

struct OpaqueImage {
  uint32_t width = 0, height = 0;
  std::vector<uint8_t> pixels;  // red, green and blue of 8 bits, row after row
};

// Each step of the work changes the image in place.

// Gives an image samples of 8 bits, in gray or colours, with alpha if any of its pixels may be transparent. Samples are
// scaled by their bits. `stretches`: the least sample becomes 0, the greatest 255. Above 8 bits 0 is not the least one
// then, because depth maps have it where there is no value. `is_premultiplied`: alpha has weighted the colours.
void make_visible(formats::Image& image, bool stretches, bool is_premultiplied);

// Turns the image upright as its EXIF says, and makes it so small that it fits `room`. It never becomes larger.
std::optional<Failure> fit(const std::string& name, loader::Size room, const l3_limits& limits, formats::Image& image);

// Puts a visible image on a checkerboard of grays, which shows where it is transparent.
OpaqueImage on_checkerboard(const formats::Image& image);

}  // namespace tools
