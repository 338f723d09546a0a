#include "picture.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "formats/formats.h"
#include "reshape.h"

namespace tools {
namespace {

using formats::Colour;
using formats::Image;
using loader::Size;

constexpr uint32_t kOpaque = 255;
constexpr uint32_t kSquare = 8;                      // pixels of an edge of the checkerboard's squares
constexpr uint8_t kLightGray = 160, kDarkGray = 96;  // of the checkerboard

bool has_alpha(Colour colour) { return colour == Colour::gray_alpha || colour == Colour::rgb_alpha; }

// What each sample becomes, so that `least` becomes 0 and `greatest` 255.
std::vector<uint8_t> scale(uint32_t bits, uint32_t least, uint32_t greatest) {
  std::vector<uint8_t> table(size_t{1} << bits);
  const uint32_t range = std::max(greatest - least, 1u);
  for (uint32_t value = 0; value < table.size(); ++value) {
    const uint32_t above = std::clamp(value, least, greatest) - least;
    table[value] = static_cast<uint8_t>((above * kOpaque + range / 2) / range);
  }
  return table;
}

template <class T>
std::vector<uint8_t> stretched_scale(const Image& image) {
  const uint32_t channels = formats::channels(image.colour), colours = channels - (has_alpha(image.colour) ? 1 : 0);
  const T* const samples = reinterpret_cast<const T*>(image.pixels.data());
  const size_t count = image.pixels.size() / sizeof(T);
  uint32_t least = UINT32_MAX, greatest = 0;
  for (size_t i = 0; i < count; i += channels) {
    for (uint32_t c = 0; c < colours; ++c) {
      const uint32_t value = samples[i + c];
      greatest = std::max(greatest, value);
      if (value != 0 || sizeof(T) == 1) least = std::min(least, value);
    }
  }
  if (least >= greatest) return scale(image.bits, 0, (1u << image.bits) - 1);  // one value: nothing to stretch
  return scale(image.bits, least, greatest);
}

// The colours of a palette image. An index beyond the palette is black.
Image colours_of(const Image& image) {
  Image out;
  const bool alpha = !image.transparency.empty();
  const size_t channels = alpha ? 4 : 3, entries = image.palette.size() / 3, pixels = image.pixels.size();
  out.colour = alpha ? Colour::rgb_alpha : Colour::rgb;
  out.pixels.assign(pixels * channels, 0);
  uint8_t* to = out.pixels.data();
  for (size_t i = 0; i < pixels; ++i, to += channels) {
    const size_t index = image.pixels[i];
    if (index < entries) std::copy_n(image.palette.data() + 3 * index, 3, to);
    if (alpha) to[3] = index < image.transparency.size() ? image.transparency[index] : uint8_t{kOpaque};
  }
  return out;
}

// The samples of the transparent colour. None if the image has none.
std::vector<uint32_t> transparent_colour(const Image& image) {
  std::vector<uint32_t> samples;
  if (image.transparency.size() != size_t{2} * formats::channels(image.colour)) return samples;
  for (size_t i = 0; i < image.transparency.size(); i += 2) {
    samples.push_back(image.transparency[i] * 256u + image.transparency[i + 1]);
  }
  return samples;
}

template <class T>
Image scaled(const Image& image, bool stretches, bool is_premultiplied) {
  const std::vector<uint8_t> plain = scale(image.bits, 0, (1u << image.bits) - 1);
  const std::vector<uint8_t> table = stretches ? stretched_scale<T>(image) : plain;
  const bool alpha = has_alpha(image.colour);
  const std::vector<uint32_t> transparent = alpha ? std::vector<uint32_t>{} : transparent_colour(image);
  const uint32_t channels = formats::channels(image.colour), colours = channels - (alpha ? 1 : 0);
  const uint32_t out_channels = colours + (alpha || !transparent.empty() ? 1 : 0);
  Image out;
  out.colour = out_channels == 1   ? Colour::gray
               : out_channels == 2 ? Colour::gray_alpha
               : out_channels == 3 ? Colour::rgb
                                   : Colour::rgb_alpha;
  const size_t pixels = image.pixels.size() / sizeof(T) / channels;
  out.pixels.resize(pixels * out_channels);
  const T* in = reinterpret_cast<const T*>(image.pixels.data());
  uint8_t* to = out.pixels.data();
  const uint64_t most = (1u << image.bits) - 1;
  for (size_t i = 0; i < pixels; ++i, in += channels, to += out_channels) {
    for (uint32_t c = 0; c < colours; ++c) {
      uint64_t value = in[c];
      if (is_premultiplied && alpha && in[colours] != 0) value = std::min(value * most / in[colours], most);
      to[c] = table[value];
    }
    if (alpha) {
      to[colours] = plain[in[colours]];
    } else if (!transparent.empty()) {
      to[colours] = std::equal(transparent.begin(), transparent.end(), in) ? 0 : uint8_t{kOpaque};
    }
  }
  return out;
}

// The largest size of the same shape in `room`.
Size size_in(Size room, Size size) {
  if (size.width <= room.width && size.height <= room.height) return size;
  const auto part = [](uint64_t length, uint64_t of, uint64_t whole) {
    return static_cast<uint32_t>(std::max<uint64_t>((length * of + whole / 2) / whole, 1));
  };
  if (uint64_t{size.width} * room.height > uint64_t{size.height} * room.width) {
    return {room.width, part(size.height, room.width, size.width)};
  }
  return {part(size.width, room.height, size.height), room.height};
}

}  // namespace

void make_visible(Image& image, bool stretches, bool is_premultiplied) {
  Image out = image.colour == Colour::palette ? colours_of(image)
              : image.bits > 8                ? scaled<uint16_t>(image, stretches, is_premultiplied)
                                              : scaled<uint8_t>(image, stretches, is_premultiplied);
  out.width = image.width;
  out.height = image.height;
  out.chunks = std::move(image.chunks);
  image = std::move(out);
}

std::optional<Failure> fit(const std::string& name, Size room, const l3_limits& limits, Image& image) {
  Reshaping wanted;
  wanted.orient = true;
  const Outcome<Reshaped> turned = reshape(name, wanted, "", limits, image);
  if (!turned) return turned.failure();
  wanted.orient = false;
  wanted.resize = Resize{Resize::Rule::exact, size_in(room, {image.width, image.height}), 0};
  const Outcome<Reshaped> resized = reshape(name, wanted, "", limits, image);
  if (!resized) return resized.failure();
  return std::nullopt;
}

OpaqueImage on_checkerboard(const Image& image) {
  OpaqueImage picture{image.width, image.height, {}};
  picture.pixels.resize(size_t{3} * image.width * image.height);
  const uint32_t channels = formats::channels(image.colour);
  const bool alpha = has_alpha(image.colour), gray = channels <= 2;
  const uint8_t* in = image.pixels.data();
  uint8_t* out = picture.pixels.data();
  for (uint32_t y = 0; y < image.height; ++y) {
    for (uint32_t x = 0; x < image.width; ++x, in += channels, out += 3) {
      const uint32_t below = (x / kSquare + y / kSquare) % 2 == 0 ? kLightGray : kDarkGray;
      const uint32_t opacity = alpha ? in[channels - 1] : kOpaque;
      for (uint32_t c = 0; c < 3; ++c) {
        const uint32_t mixed = in[gray ? 0 : c] * opacity + below * (kOpaque - opacity);
        out[c] = static_cast<uint8_t>((mixed + kOpaque / 2) / kOpaque);
      }
    }
  }
  return picture;
}

}  // namespace tools
