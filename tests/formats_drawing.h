// Shared by the tests of formats/: drawn images, and calls that must succeed or must be refused.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "formats/formats.h"

namespace formats_drawing {

using formats::Chunk;
using formats::Colour;
using formats::Format;
using formats::Image;
using formats::ReadOptions;
using formats::WriteOptions;
using Bytes = std::vector<uint8_t>;

// xorshift: the same drawing on every machine.
class Dice {
 public:
  uint32_t roll(uint32_t sides) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<uint32_t>((state_ >> 20) % sides);
  }

 private:
  uint64_t state_ = 0x9E3779B97F4A7C15;
};

inline Image drawn(uint32_t width, uint32_t height, uint32_t bits, Colour colour) {
  Dice dice;
  Image image;
  image.width = width;
  image.height = height;
  image.bits = bits;
  image.colour = colour;
  const size_t samples = size_t{width} * height * formats::channels(colour);
  image.pixels.resize(samples * formats::bytes_per_sample(bits));
  for (size_t i = 0; i < samples; ++i) {
    const uint16_t sample = static_cast<uint16_t>(dice.roll(1U << bits));
    if (bits > 8) {
      std::memcpy(image.pixels.data() + 2 * i, &sample, 2);
    } else {
      image.pixels[i] = static_cast<uint8_t>(sample);
    }
  }
  if (colour == Colour::palette) {
    image.palette.resize(size_t{3} << bits);
    for (uint8_t& byte : image.palette) byte = static_cast<uint8_t>(dice.roll(256));
  }
  return image;
}

inline Bytes bytes(std::string_view text) { return Bytes(text.begin(), text.end()); }

inline Chunk chunk(const char* type, uint8_t place, Bytes data) {
  Chunk made;
  std::copy_n(type, 4, made.type.begin());
  made.place = place;
  made.data = std::move(data);
  return made;
}

inline Bytes written(Format format, const Image& image, const WriteOptions& options = {}) {
  auto file = formats::write(format, image, options);
  EXPECT_TRUE(file) << file.error().reason;
  return file ? *std::move(file) : Bytes();
}

inline Image read_back(const Bytes& file, const ReadOptions& options = {}) {
  auto image = formats::read(file, options);
  EXPECT_TRUE(image) << image.error().reason << " at " << image.error().offset;
  return image ? *std::move(image) : Image();
}

inline std::string refusal(const Bytes& file, const ReadOptions& options = {}) {
  const auto image = formats::read(file, options);
  return image ? "read" : image.error().reason;
}

inline std::string write_refusal(Format format, const Image& image) {
  const auto file = formats::write(format, image);
  return file ? "written" : file.error().reason;
}

inline bool mentions(const std::string& text, std::string_view what) { return text.find(what) != text.npos; }

#define EXPECT_REASON(reason, what)            \
  do {                                         \
    const std::string said = (reason);         \
    EXPECT_TRUE(mentions(said, what)) << said; \
  } while (false)

struct Size {
  uint32_t width, height;
};

inline const Size kSizes[] = {{1, 1}, {1, 9}, {7, 1}, {3, 5}, {8, 8}, {17, 31}, {65, 33}, {301, 7}};

}  // namespace formats_drawing
