// What the tests of the paper's scheme share.
#pragma once

#include <gtest/gtest.h>

#include "codec_testing.h"
#include "drawing.h"
#include "paper_l3.h"

namespace paper_l3_testing {

using codec_testing::Exact;
using drawing::Bytes;
using drawing::Dice;
using paper::Reason;
using paper::Shape;

inline constexpr l3_colour kColours[] = {L3_COLOUR_GRAY, L3_COLOUR_GRAY_ALPHA, L3_COLOUR_RGB, L3_COLOUR_RGB_ALPHA};

// Those of the other tests, and the edges of patches.
inline std::vector<drawing::Size> sizes() {
  std::vector<drawing::Size> result(std::begin(drawing::kSizes), std::end(drawing::kSizes));
  result.insert(result.end(), {{63, 63}, {64, 65}, {65, 64}, {127, 2}, {193, 1}});
  return result;
}

inline Shape shape_of(const drawing::Drawing& d) { return {d.width, d.height, d.channels()}; }

// Rows of noise that takes from 0 to 8 bits.
inline drawing::Drawing every_width() {
  drawing::Drawing d = drawing::blank({100, 140}, {L3_COLOUR_RGB, 8});
  Dice dice(3);
  for (uint32_t y = 0; y < d.height; ++y) {
    for (uint32_t x = 0; x < 3 * d.width; ++x) {
      d.pixels[3 * d.width * y + x] = static_cast<uint8_t>(200 + dice.roll(uint64_t{1} << y / 5 % 9));
    }
  }
  return d;
}

inline Bytes encode(const drawing::Drawing& d) {
  const Exact room(paper::encode_bound(shape_of(d)));
  const uint64_t size = paper::encode(shape_of(d), d.pixels.data(), room.data());
  EXPECT_LE(size, room.size());
  return {room.data(), room.data() + size};
}

struct Decoded {
  Reason reason;
  Bytes pixels;
};

// What becomes of a file that is expected to have a shape.
inline Decoded decode(const Exact& file, const Shape& expected) {
  const std::span<const uint8_t> bytes(file.data(), file.size());
  Shape shape;
  Decoded result{paper::read_head(bytes, shape), {}};
  if (result.reason == Reason::head) return result;
  if (shape.width != expected.width || shape.height != expected.height || shape.channels != expected.channels) {
    return {Reason::head, {}};
  }
  if (result.reason != Reason::none) return result;
  result.pixels.resize(shape.pixel_bytes());
  result.reason = paper::decode(bytes, shape, result.pixels.data());
  return result;
}

// A file with something wrong in it, most often behind its head.
inline Bytes damaged(Bytes file, const Shape& shape, Dice& dice) {
  const size_t start = shape.payload_start();
  switch (dice.roll(5)) {
    case 0: file[dice.roll(start)] ^= static_cast<uint8_t>(1u << dice.roll(8)); break;
    case 1: {  // sizes that still add up
      uint8_t* const a = &file[paper::kHeadBytes + 2 * dice.roll(shape.patches() * shape.channels)];
      uint8_t* const b = &file[paper::kHeadBytes + 2 * dice.roll(shape.patches() * shape.channels)];
      const uint8_t by = static_cast<uint8_t>(std::min({1 + dice.roll(9), uint32_t{*a}, 255u - *b}));
      *a = static_cast<uint8_t>(*a - by);
      *b = static_cast<uint8_t>(*b + by);
      break;
    }
    case 2: file.resize(dice.roll(file.size())); break;
    case 3: file[start + dice.roll(file.size() - start)] ^= static_cast<uint8_t>(1u << dice.roll(8)); break;
    default:
      for (size_t i = start + dice.roll(file.size() - start); i < file.size(); ++i) file[i] = dice.byte();
  }
  return file;
}

}  // namespace paper_l3_testing
