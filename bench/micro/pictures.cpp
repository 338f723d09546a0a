#include "pictures.h"

#include <algorithm>
#include <cstring>

// Integers only: compilers and libraries do not agree on the last bit of the others.
namespace micro {
namespace {

// splitmix64's last steps.
uint32_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return static_cast<uint32_t>((z ^ (z >> 31)) >> 32);
}

// 0 to 255, of a point.
int32_t grain(uint32_t x, uint32_t y, uint32_t seed) {
  return static_cast<int32_t>(mix((uint64_t{seed} << 48 | uint64_t{y} << 24 | x) * 0x9E3779B97F4A7C15) >> 24);
}

// 0 to 255, smooth: a random value at each corner of a grid, blended in between.
int32_t waves(uint32_t x, uint32_t y, uint32_t cell, uint32_t seed) {
  const auto ease = [cell](uint32_t at) {
    const auto t = static_cast<int32_t>(at % cell * 256 / cell);
    return t * t * (768 - 2 * t) >> 16;
  };
  const uint32_t column = x / cell, row = y / cell;
  const int32_t across = ease(x), down = ease(y);
  const auto blend = [](int32_t a, int32_t b, int32_t t) { return a + ((b - a) * t >> 8); };
  const int32_t top = blend(grain(column, row, seed), grain(column + 1, row, seed), across);
  const int32_t bottom = blend(grain(column, row + 1, seed), grain(column + 1, row + 1, seed), across);
  return blend(top, bottom, down);
}

Picture blank(uint32_t width, uint32_t height, uint32_t bits, l3_colour colour) {
  Picture picture{width, height, bits, colour, {}, {}};
  picture.pixels.resize(size_t{width} * height * (bits > 8 ? 2 : 1) * (colour == L3_COLOUR_RGB ? 3 : 1));
  return picture;
}

// Scattered centres, each of which has the points that are nearest to it.
class Patches {
 public:
  Patches(uint32_t width, uint32_t height) {
    for (uint32_t i = 0; i < kCount; ++i) {
      columns_[i] = static_cast<int32_t>(mix(2 * i + 1000) % width);
      rows_[i] = static_cast<int32_t>(mix(2 * i + 1001) % height);
    }
  }

  uint32_t at(uint32_t x, uint32_t y) const {
    // Shaken a little, so that borders are ragged.
    const int32_t column =
        static_cast<int32_t>(x) + (waves(x, y, 12, 71) - 128) / 12 + (grain(x, y / 2, 73) - 128) / 90;
    const int32_t row = static_cast<int32_t>(y) + (waves(x, y, 12, 72) - 128) / 12;
    uint32_t nearest = 0;
    int32_t minimum = INT32_MAX;
    for (uint32_t i = 0; i < kCount; ++i) {
      const int32_t across = column - columns_[i], down = row - rows_[i];
      const int32_t distance = across * across + down * down;
      if (distance >= minimum) continue;
      minimum = distance;
      nearest = i;
    }
    return nearest;
  }

 private:
  static constexpr uint32_t kCount = 40;
  int32_t columns_[kCount], rows_[kCount];
};

}  // namespace

l3_image Picture::image() const {
  l3_image image = l3_image_init();
  image.width = width;
  image.height = height;
  image.bits = bits;
  image.colour = colour;
  image.pixels = pixels.data();
  if (!palette.empty()) {
    image.palette = palette.data();
    image.palette_entries = static_cast<uint32_t>(palette.size() / 3);
  }
  return image;
}

Picture draw_photo(uint32_t width, uint32_t height, bool clean) {
  Picture photo = blank(width, height, 8, L3_COLOUR_RGB);
  const Patches patches(width, height);
  size_t at = 0;
  for (uint32_t y = 0; y < height; ++y) {
    for (uint32_t x = 0; x < width; ++x) {
      // Each patch is a thing with a brightness of its own; half of them have a texture.
      const uint32_t thing = patches.at(x, y);
      int32_t light = static_cast<int32_t>(mix(thing) % 120) + waves(x, y, 96, 1) / 2;
      if (thing % 2 == 0) light += (waves(x, y, 16, 2) - 128) / 8 + (waves(x, y, 7, 3) - 128) / 10;
      if (thing % 4 == 0) light += (waves(x, y, 3, 4) - 128) / 6;
      for (uint32_t c = 0; c < 3; ++c) {
        const int32_t tint = (waves(x, y, 80, 10 + c) - 128) / 6 + static_cast<int32_t>(mix(thing * 3 + c) % 24);
        const int32_t noise = clean ? 0 : (grain(x, y, 20 + c) + grain(x, y, 30 + c) - 255) / 80;
        photo.pixels[at++] = static_cast<uint8_t>(std::clamp(light + tint + noise, 0, 255));
      }
    }
  }
  return photo;
}

Picture draw_labels(uint32_t width, uint32_t height) {
  Picture labels = blank(width, height, 8, L3_COLOUR_PALETTE);
  for (uint32_t i = 0; i < 20 * 3; ++i) labels.palette.push_back(static_cast<uint8_t>(grain(i, 0, 40)));
  const Patches patches(width, height);
  size_t at = 0;
  for (uint32_t y = 0; y < height; ++y) {
    for (uint32_t x = 0; x < width; ++x) labels.pixels[at++] = static_cast<uint8_t>(patches.at(x, y) % 20);
  }
  return labels;
}

Picture draw_page(uint32_t width, uint32_t height) {
  Picture page = blank(width, height, 1, L3_COLOUR_GRAY);
  const Patches patches(width, height);
  size_t at = 0;
  for (uint32_t y = 0; y < height; ++y) {
    for (uint32_t x = 0; x < width; ++x) {
      const uint32_t here = patches.at(x, y);
      const bool is_ink = patches.at(x + 2, y) != here || patches.at(x, y + 2) != here || grain(x, y, 90) == 0;
      page.pixels[at++] = is_ink ? 0 : 1;
    }
  }
  return page;
}

Picture draw_depth(uint32_t width, uint32_t height) {
  Picture depth = blank(width, height, 16, L3_COLOUR_GRAY);
  const Patches patches(width, height);
  size_t at = 0;
  for (uint32_t y = 0; y < height; ++y) {
    for (uint32_t x = 0; x < width; ++x) {
      const uint32_t plane = patches.at(x, y);
      const uint32_t slant = x * (mix(plane + 50) % 9) + y * (mix(plane + 60) % 17);
      const auto noise = static_cast<uint32_t>(grain(x, y, 50) / 16);
      uint32_t distance = 2000 + mix(plane + 70) % 20000 + slant + noise;
      if (waves(x, y, 20, 51) < 40) distance = 0;
      const auto sample = static_cast<uint16_t>(distance);
      std::memcpy(depth.pixels.data() + at, &sample, sizeof(sample));
      at += sizeof(sample);
    }
  }
  return depth;
}

Picture draw_noise(uint32_t width, uint32_t height) {
  Picture noise = blank(width, height, 7, L3_COLOUR_GRAY);
  size_t at = 0;
  for (uint32_t y = 0; y < height; ++y) {
    for (uint32_t x = 0; x < width; ++x) noise.pixels[at++] = static_cast<uint8_t>(grain(x, y, 60) >> 1);
  }
  return noise;
}

}  // namespace micro
