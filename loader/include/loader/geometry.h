// What happens to the pixels of one image: the steps from the stored image to the output, as numbers.
#pragma once

#include "loader/resample.h"

namespace loader {

struct Size {
  uint32_t width = 0, height = 0;
  bool operator==(const Size&) const = default;
};

struct Box {
  uint32_t x = 0, y = 0, width = 0, height = 0;
};

// In this order: turn the stored image upright, take a box of it, resize the box, take a window of the result, pad it,
// mirror it, turn it.
struct Steps {
  Size stored;
  uint32_t orientation = 1;    // of EXIF: 1 to 8
  Box box;                     // of the upright image
  Size resized;                // what the box becomes
  Box window;                  // of the resized box
  uint32_t left = 0, top = 0;  // padding
  Size padded;
  uint32_t pad_mode = L3_PAD_VALUE;
  bool mirrored_x = false, mirrored_y = false;
  uint32_t turns = 0;  // by 90 degrees, counterclockwise

  Size output() const { return turns % 2 == 0 ? padded : Size{padded.height, padded.width}; }
};

// How a stored image of an EXIF orientation lies: which of its axes run against those of the upright image, and whether
// its rows are the upright image's columns.
struct Lie {
  bool columns_reversed, rows_reversed, is_transposed;
};
inline Lie lie_of(uint32_t orientation) {
  const uint32_t o = orientation;
  return {o == 2 || o == 3 || o == 7 || o == 8, o == 3 || o == 4 || o == 6 || o == 7, o >= 5};
}

inline Size upright(Size stored, uint32_t orientation) {
  return orientation >= 5 ? Size{stored.height, stored.width} : stored;
}

// The size of an image of size `from` after resizing. `width` and `height` as in l3_loader_options.
Size resized_size(uint32_t resize, Size from, uint32_t width, uint32_t height);

// The largest size of the same shape that has at most so many pixels and is not larger than `from`.
Size size_of_pixels(Size from, uint64_t pixels);

Geometry geometry_of(const Steps& steps, base::Filter filter);

// Draws the steps of an image. `random` is the random number of its unit, `given` its box if the options give one.
// Returns null, or why the image does not fit the options.
const char* draw_steps(const l3_loader_options& options, Size stored, uint32_t orientation, uint64_t random,
                       const l3_box* given, Steps& steps);

// Draws how the colours of a unit change: factors of brightness, contrast and saturation, and a turn of the hue as a
// part of a circle.
struct Jitter {
  float brightness = 1, contrast = 1, saturation = 1, hue = 0;
};
Jitter draw_jitter(const l3_loader_options& options, uint64_t random);

// The change of colours from `channels` channels of samples of `bits` bits to those of a tensor. `channels` are those
// that libl3 decodes.
Colours colours_of(const l3_tensor_options& wanted, uint32_t channels, uint32_t bits, uint32_t out_bits,
                   const Jitter& jitter);
// The channels of such a tensor.
uint32_t channels_of(const l3_tensor_options& wanted, uint32_t channels);

}  // namespace loader
