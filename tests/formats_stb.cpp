#define STBI_ONLY_BMP
#define STBI_ONLY_GIF
#define STBI_ONLY_PSD
#define STBI_ONLY_TGA
#define STBI_NO_STDIO
#define STBI_NO_LINEAR
#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#include <stb/stb_image.h>

#include "formats_stb.h"

namespace formats_drawing {
namespace {

// Eight-bit pixels as red, green, blue and alpha.
Bytes as_colours(const Image& image) {
  Bytes out;
  const size_t count = formats::channels(image.colour);
  const bool colours = image.colour == Colour::rgb || image.colour == Colour::rgb_alpha;
  for (size_t i = 0; i < image.pixels.size(); i += count) {
    const uint8_t* pixel = &image.pixels[i];
    if (image.colour == Colour::palette) {
      const size_t index = *pixel;
      const uint8_t alpha = index < image.transparency.size() ? image.transparency[index] : 255;
      add(out, {image.palette[3 * index], image.palette[3 * index + 1], image.palette[3 * index + 2], alpha});
    } else if (colours) {
      add(out, {pixel[0], pixel[1], pixel[2], count == 4 ? pixel[3] : uint8_t{255}});
    } else {
      add(out, {pixel[0], pixel[0], pixel[0], count == 2 ? pixel[1] : uint8_t{255}});
    }
  }
  return out;
}

}  // namespace

void expect_like_stb(const Bytes& file, bool colourless) {
  int width = 0, height = 0, channels = 0;
  uint8_t* pixels = stbi_load_from_memory(file.data(), static_cast<int>(file.size()), &width, &height, &channels, 4);
  ASSERT_NE(pixels, nullptr) << stbi_failure_reason();
  Bytes theirs(pixels, pixels + size_t{4} * static_cast<size_t>(width) * static_cast<size_t>(height));
  stbi_image_free(pixels);
  Bytes ours = as_colours(read_back(file));
  if (colourless) {
    for (size_t i = 0; i < ours.size(); i += 4) {
      if (ours[i + 3] == 0) std::fill_n(&ours[i], 3, uint8_t{0});
    }
  }
  EXPECT_EQ(ours, theirs);
}

void expect_like_stb_16(const Bytes& file, uint32_t channels) {
  const Image image = read_back(file);
  int width = 0, height = 0, found = 0;
  uint16_t* pixels = stbi_load_16_from_memory(file.data(), static_cast<int>(file.size()), &width, &height, &found,
                                              static_cast<int>(channels));
  ASSERT_NE(pixels, nullptr) << stbi_failure_reason();
  EXPECT_EQ(image.bits, 16U);
  ASSERT_EQ(image.pixels.size(), size_t{2} * channels * static_cast<size_t>(width) * static_cast<size_t>(height));
  EXPECT_EQ(std::memcmp(image.pixels.data(), pixels, image.pixels.size()), 0);
  stbi_image_free(pixels);
}

}  // namespace formats_drawing
