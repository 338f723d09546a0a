// Draws images for the tests of the codec. They are equal on every machine.
#pragma once

#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "l3/l3.h"

namespace drawing {

using Bytes = std::vector<uint8_t>;

// splitmix64.
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  // 0 to sides - 1.
  uint32_t roll(uint64_t sides) { return static_cast<uint32_t>((next() >> 32) * sides >> 32); }
  uint8_t byte() { return static_cast<uint8_t>(next() >> 56); }
  bool chance(uint32_t one_in) { return roll(one_in) == 0; }
  Bytes bytes(size_t count) {
    Bytes result(count);
    for (uint8_t& b : result) b = byte();
    return result;
  }
  template <class Container>
  auto& pick(Container& from) {
    return from[roll(std::size(from))];
  }

 private:
  uint64_t state_;
};

struct Size {
  uint32_t width, height;
};

struct Type {
  l3_colour colour;
  uint32_t bits;
};

enum class Pattern { flat, noise, gradient, extremes, natural, outliers, labels };

inline constexpr Pattern kPatterns[] = {Pattern::flat,    Pattern::noise,    Pattern::gradient, Pattern::extremes,
                                        Pattern::natural, Pattern::outliers, Pattern::labels};

inline constexpr Size kSizes[] = {{1, 1},  {1, 7},   {1, 131}, {7, 1},   {131, 1},  {3, 5},     {31, 33},   {32, 8},
                                  {33, 9}, {34, 17}, {63, 7},  {64, 64}, {65, 127}, {128, 128}, {129, 257}, {300, 40}};

// Every colour with the depths of common images.
inline std::vector<Type> common_types() {
  std::vector<Type> types;
  for (const uint32_t bits : {1u, 2u, 4u, 8u, 10u, 12u, 16u}) {
    for (const l3_colour colour : {L3_COLOUR_GRAY, L3_COLOUR_GRAY_ALPHA, L3_COLOUR_RGB, L3_COLOUR_RGB_ALPHA}) {
      types.push_back({colour, bits});
    }
    if (bits <= 8) types.push_back({L3_COLOUR_PALETTE, bits});
  }
  return types;
}

// Every colour with every depth that it can have.
inline std::vector<Type> all_types() {
  std::vector<Type> types;
  for (uint32_t bits = 1; bits <= 16; ++bits) {
    for (uint32_t colour = 0; colour <= (bits <= 8 ? 4u : 3u); ++colour) {
      types.push_back({static_cast<l3_colour>(colour), bits});
    }
  }
  return types;
}

inline const char* name_of(l3_colour colour) {
  constexpr const char* kNames[] = {"gray", "gray_alpha", "rgb", "rgba", "palette"};
  return kNames[colour];
}

inline const char* name_of(Pattern pattern) {
  constexpr const char* kNames[] = {"flat", "noise", "gradient", "extremes", "natural", "outliers", "labels"};
  return kNames[static_cast<int>(pattern)];
}

// An image and the memory behind it.
struct Drawing {
  uint32_t width, height, bits;
  l3_colour colour;
  l3_alpha alpha;
  Bytes pixels;  // rows without padding
  Bytes palette, transparency, colour_space, icc, exif, metadata;

  uint32_t channels() const { return colour == L3_COLOUR_PALETTE ? 1 : static_cast<uint32_t>(colour) + 1; }
  uint32_t sample_bytes() const { return bits > 8 ? 2 : 1; }
  uint32_t pixel_bytes() const { return channels() * sample_bytes(); }
  size_t row_bytes() const { return size_t{width} * pixel_bytes(); }
  uint32_t maximum() const { return (1u << bits) - 1; }

  uint32_t sample(uint32_t x, uint32_t y, uint32_t c) const {
    const uint8_t* at = pixels.data() + y * row_bytes() + x * pixel_bytes() + c * sample_bytes();
    if (bits <= 8) return *at;
    uint16_t value;
    std::memcpy(&value, at, 2);
    return value;
  }
  void set_sample(uint32_t x, uint32_t y, uint32_t c, uint32_t value) {
    uint8_t* at = pixels.data() + y * row_bytes() + x * pixel_bytes() + c * sample_bytes();
    if (bits <= 8) {
      *at = static_cast<uint8_t>(value);
    } else {
      const uint16_t wide = static_cast<uint16_t>(value);
      std::memcpy(at, &wide, 2);
    }
  }

  l3_image image() const {
    const auto pointer = [](const Bytes& bytes) { return bytes.empty() ? nullptr : bytes.data(); };
    l3_image result = l3_image_init();
    result.width = width;
    result.height = height;
    result.bits = bits;
    result.colour = colour;
    result.alpha = alpha;
    result.pixels = pixels.data();
    result.palette = pointer(palette);
    result.palette_entries = static_cast<uint32_t>(palette.size() / 3);
    result.transparency = pointer(transparency);
    result.transparency_size = static_cast<uint32_t>(transparency.size());
    result.colour_space = pointer(colour_space);
    result.icc = pointer(icc);
    result.icc_size = icc.size();
    result.exif = pointer(exif);
    result.exif_size = exif.size();
    result.metadata = pointer(metadata);
    result.metadata_size = metadata.size();
    return result;
  }
  std::string name() const {
    return std::to_string(width) + "x" + std::to_string(height) + " " + name_of(colour) + " " + std::to_string(bits);
  }
};

// An image of zeros; with a palette of its own where the colour wants one, which leaves some indices of 8 bits without
// a colour.
inline Drawing blank(Size size, Type type) {
  Drawing d{};
  d.width = size.width;
  d.height = size.height;
  d.bits = type.bits;
  d.colour = type.colour;
  const bool has_alpha = type.colour == L3_COLOUR_GRAY_ALPHA || type.colour == L3_COLOUR_RGB_ALPHA;
  d.alpha = has_alpha ? L3_ALPHA_STRAIGHT : L3_ALPHA_NONE;
  d.pixels.resize(d.row_bytes() * d.height);
  if (type.colour == L3_COLOUR_PALETTE) {
    d.palette = Dice(type.bits).bytes(3 * (type.bits == 8 ? size_t{200} : size_t{1} << type.bits));
  }
  return d;
}

namespace shape {

// Up and down between 0 and 255.
inline uint32_t wave(uint32_t at, uint32_t period) {
  const uint32_t phase = at % (2 * period);
  return (phase < period ? phase : 2 * period - phase) * 255 / period;
}

inline uint32_t cell(uint32_t x, uint32_t y, uint32_t c, uint64_t seed) {
  return Dice(seed + x / 9 * 1009 + y / 7 * 31 + c * 7).roll(11);
}

}  // namespace shape

inline Drawing draw(Size size, Type type, Pattern pattern, uint64_t seed = 1) {
  Drawing d = blank(size, type);
  Dice dice(seed * 1000003 + type.bits * 101 + static_cast<uint64_t>(type.colour) * 11 + size.width);
  const uint32_t maximum = d.maximum();
  uint32_t flat[4];
  for (uint32_t& value : flat) value = dice.roll(uint64_t{maximum} + 1);
  for (uint32_t y = 0; y < size.height; ++y) {
    for (uint32_t x = 0; x < size.width; ++x) {
      const uint32_t grain = dice.roll(17);  // common to the channels
      for (uint32_t c = 0; c < d.channels(); ++c) {
        uint32_t value = flat[c];
        switch (pattern) {
          case Pattern::flat: break;
          case Pattern::noise: value = dice.roll(uint64_t{maximum} + 1); break;
          case Pattern::gradient: value = static_cast<uint32_t>(uint64_t{maximum} * (x * (c + 1) + 2 * y) / 701); break;
          case Pattern::extremes: value = ((x ^ y ^ c) & 1) != 0 ? maximum : 0; break;
          case Pattern::natural: {
            const uint32_t light = shape::wave(x + y / 3, 61 + c) + shape::wave(2 * y + x / 5, 47) + 2 * grain;
            value = static_cast<uint32_t>((uint64_t{maximum} * (light + dice.roll(5)) + 280) / 560);
            break;
          }
          case Pattern::outliers:
            if (dice.chance(97)) value = dice.roll(uint64_t{maximum} + 1);
            break;
          case Pattern::labels: value = shape::cell(x, y, c, seed); break;
        }
        d.set_sample(x, y, c, value & maximum);
      }
    }
  }
  return d;
}

// An image whose left third is natural, whose middle is flat and whose right third is noise: with tiles as wide as
// that, one of each method.
inline Drawing draw_mixed(Size third, Type type, uint64_t seed = 1) {
  Drawing d = draw({3 * third.width, third.height}, type, Pattern::natural, seed);
  Dice dice(seed);
  for (uint32_t y = 0; y < d.height; ++y) {
    for (uint32_t x = third.width; x < d.width; ++x) {
      for (uint32_t c = 0; c < d.channels(); ++c) {
        d.set_sample(x, y, c, x < 2 * third.width ? d.maximum() - c % 2 : dice.roll(uint64_t{d.maximum()} + 1));
      }
    }
  }
  return d;
}

// A record of the metadata.
inline Bytes record(const char* tag, uint8_t place, const Bytes& data) {
  Bytes result(12 + data.size());
  std::memcpy(result.data(), tag, 4);
  result[4] = place;
  for (uint32_t i = 0; i < 4; ++i) result[8 + i] = static_cast<uint8_t>(data.size() >> (8 * i));
  std::copy(data.begin(), data.end(), result.begin() + 12);
  return result;
}

inline Bytes joined(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// A colour space of these parts, bits 0 to 3.
inline Bytes colour_space(Dice& dice, uint32_t parts) {
  constexpr size_t kBytes[] = {4, 4, 1, 32};
  Bytes section = {static_cast<uint8_t>(parts)};
  for (uint32_t i = 0; i < 4; ++i) {
    if ((parts >> i & 1) != 0) section = joined(section, dice.bytes(kBytes[i]));
  }
  return section;
}

// Red, green, blue of the first entries of the colour map of PASCAL VOC, as its authors make it.
inline Bytes class_colours(uint32_t entries) {
  Bytes colours;
  for (uint32_t i = 0; i < entries; ++i) {
    uint8_t rgb[3] = {};
    uint32_t left = i;
    for (uint32_t shift = 8; shift-- > 0; left >>= 3) {
      for (uint32_t c = 0; c < 3; ++c) rgb[c] = static_cast<uint8_t>(rgb[c] | (left >> c & 1) << shift);
    }
    colours.insert(colours.end(), rgb, rgb + 3);
  }
  return colours;
}

// Gives an image all the sections that it may have.
inline Drawing with_sections(Drawing d, uint64_t seed = 5) {
  Dice dice(seed);
  if (d.colour == L3_COLOUR_PALETTE) d.transparency = dice.bytes(1 + dice.roll(d.palette.size() / 3));
  if (d.colour == L3_COLOUR_GRAY) d.transparency = dice.bytes(2);
  if (d.colour == L3_COLOUR_RGB) d.transparency = dice.bytes(6);
  d.colour_space = colour_space(dice, 1 + dice.roll(15));
  d.icc = dice.bytes(21);
  d.exif = dice.bytes(8);
  d.metadata = joined(record("tEXt", 0, {'T', 'i', 't', 'l', 'e', 0, 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x'}),
                      joined(record("pHYs", 1, dice.bytes(9)), record("tIME", 2, {})));
  return d;
}

}  // namespace drawing
