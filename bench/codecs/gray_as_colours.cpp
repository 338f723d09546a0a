#include "gray_as_colours.h"

namespace bench {
namespace {

bool is_colours(const formats::Image& image) { return formats::channels(image.colour) >= 3; }

uint64_t pixels_of(const formats::Image& image) { return uint64_t{image.width} * image.height; }

}  // namespace

uint32_t colour_channels(const formats::Image& image) {
  const uint32_t channels = formats::channels(image.colour);
  return channels % 2 == 0 ? 4 : 3;
}

const uint8_t* as_colours(const formats::Image& image, bridge::Buffer& room) {
  if (is_colours(image)) return image.pixels.data();
  const uint64_t pixels = pixels_of(image);
  const uint32_t out_channels = colour_channels(image);
  uint8_t* const start = room.reset(pixels * out_channels);
  uint8_t* out = start;
  const uint8_t* in = image.pixels.data();
  if (out_channels == 3) {
    for (uint64_t i = 0; i < pixels; ++i, out += 3) out[0] = out[1] = out[2] = in[i];
  } else {
    for (uint64_t i = 0; i < pixels; ++i, out += 4) {
      out[0] = out[1] = out[2] = in[2 * i];
      out[3] = in[2 * i + 1];
    }
  }
  return start;
}

uint8_t* colours_of(formats::Image& image, bridge::Buffer& room) {
  make_room(image);
  if (is_colours(image)) return image.pixels.data();
  return room.reset(pixels_of(image) * colour_channels(image));
}

void take_colours(formats::Image& image, const bridge::Buffer& room) {
  if (is_colours(image)) return;
  const uint64_t pixels = pixels_of(image);
  const uint8_t* in = room.bytes().data();
  uint8_t* const out = image.pixels.data();
  if (formats::channels(image.colour) == 1) {
    for (uint64_t i = 0; i < pixels; ++i) out[i] = in[3 * i + 1];
  } else {
    for (uint64_t i = 0; i < pixels; ++i) {
      out[2 * i] = in[4 * i + 1];
      out[2 * i + 1] = in[4 * i + 3];
    }
  }
}

std::string not_eight_bits(const formats::Image& image, uint32_t max_edge) {
  if (image.bits > 8) return std::to_string(image.bits) + " bits";
  if (image.width > max_edge || image.height > max_edge) return "an edge beyond " + std::to_string(max_edge);
  return "";
}

}  // namespace bench
