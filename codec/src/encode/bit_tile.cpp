// Implements bit_tile.h.
#include "encode/bit_tile.h"

#include <cstring>

#include "encode/pixel_types.h"
#include "encode/reverse_coder.h"

namespace l3 {
namespace {

// Such a tile has about one lane for so many bits.
constexpr double kBitsOfLane = 640, kLikelyBitsOfPixel = 1.0 / 16;
// From these numbers of pixels on, tiles have at least 8, 16 and 32 lanes: a step takes a processor's vector unit about
// the same time with fewer.
constexpr uint32_t kPixelsForEight = 1u << 12, kPixelsForSixteen = 1u << 14, kPixelsForAll = 1u << 18;

// Which of up to 64 pixels have the second colour. Clears `sound` if one has neither.
template <uint32_t kChannels, class Sample>
uint64_t bits_of(const Sample* pixels, uint32_t count, const BitColours& colours, bool& sound) {
  uint8_t is_second[kBitBlock] = {};
  uint8_t others = 0;
  if constexpr (kChannels == 1) {
    const auto first = static_cast<Sample>(colours.of[0]), second = static_cast<Sample>(colours.of[1]);
    for (uint32_t i = 0; i < count; ++i) {
      is_second[i] = pixels[i] == second;
      others |= static_cast<uint8_t>(pixels[i] != first) ^ is_second[i];
    }
  } else {
    for (uint32_t i = 0; i < count; ++i) {
      const uint64_t pixel = joined<kChannels>(pixels + size_t{i} * kChannels);
      is_second[i] = pixel == colours.of[1];
      others |= static_cast<uint8_t>(pixel != colours.of[0]) ^ is_second[i];
    }
  }
  sound = sound && others == 0;
  uint64_t bits = 0;
  for (uint32_t i = 0; i < kBitBlock / 8; ++i) {
    bits |= (load_u64(is_second + 8 * i) * 0x0102040810204080 >> 56) << (8 * i);
  }
  return bits;
}

// The first pixel in a source that differs from `colour`.
bool find_other(const TileSource& source, uint64_t colour, uint64_t& other) {
  for (uint64_t tile = 0; tile < source.tile_count(); ++tile) {
    const TileShape shape = source.shape(tile);
    const bool is_found = with_types(source, tile, [&](const auto* first, auto channels, size_t stride) {
      for (uint32_t y = 0; y < shape.height; ++y) {
        for (uint32_t x = 0; x < shape.width; ++x) {
          other = joined<channels()>(first + y * stride + size_t{x} * channels());
          if (other != colour) return true;
        }
      }
      return false;
    });
    if (is_found) return true;
  }
  return false;
}

// How many words of zeros a history needs before its first step.
uint32_t words_before(uint32_t period, uint32_t lanes) {
  return ceil_div(ceil_div(kBitRows - 1, lanes) * (period - 2 * lanes) + kBitColumns, 64);
}

}  // namespace

bool find_two_colours(const TileSource& source, BitColours& colours) {
  colours.of[0] =
      with_types(source, 0, [](const auto* first, auto channels, size_t) { return joined<channels()>(first); });
  if (!find_other(source, colours.of[0], colours.of[1])) return false;
  bool sound = true;
  for (uint64_t tile = 0; tile < source.tile_count() && sound; ++tile) {
    const TileShape shape = source.shape(tile);
    with_types(source, tile, [&](const auto* first, auto channels, size_t stride) {
      for (uint32_t y = 0; y < shape.height && sound; ++y) {
        for (uint32_t x = 0; x < shape.width; x += kBitBlock) {
          const auto* const pixels = first + y * stride + size_t{x} * channels();
          bits_of<channels()>(pixels, smaller(kBitBlock, shape.width - x), colours, sound);
        }
      }
    });
  }
  return sound;
}

uint32_t bit_log_lanes(uint32_t width, uint32_t height, double bits) {
  const uint32_t pixels = width * height;
  const uint32_t minimum = pixels >= kPixelsForAll       ? 5
                           : pixels >= kPixelsForSixteen ? 4
                           : pixels >= kPixelsForEight   ? 3
                                                         : 0;
  return log_lanes_for(width, height, bits, kBitsOfLane, minimum);
}

uint32_t likely_log_lanes(uint32_t width, uint32_t height) {
  return bit_log_lanes(width, height, kLikelyBitsOfPixel * width * height);
}

bool BitPlane::load(const TileSource& source, uint64_t tile, const BitColours& colours) {
  const TileShape shape = source.shape(tile);
  width_ = shape.width;
  height_ = shape.height;
  row_words_ = ceil_div(width_, 64);
  words_.resize(size_t{row_words_} * height_);
  bool sound = true;
  with_types(source, tile, [&](const auto* first, auto channels, size_t stride) {
    for (uint32_t y = 0; y < height_ && sound; ++y) {
      uint64_t* const to = words_.data() + size_t{y} * row_words_;
      for (uint32_t x = 0; x < width_; x += kBitBlock) {
        const auto* const pixels = first + y * stride + size_t{x} * channels();
        to[x / 64] = bits_of<channels()>(pixels, smaller(kBitBlock, width_ - x), colours, sound);
      }
    }
  });
  return sound;
}

BitHistory::BitHistory(const BitPlane& plane, uint32_t log_lanes)
    : lanes_(1u << log_lanes),
      period_(dense_period(plane.width(), lanes_)),
      steps_(dense_steps(plane.width(), plane.height(), lanes_)),
      before_(words_before(period_, lanes_)),
      lane_words_(before_ + ceil_div(steps_, 64) + 2),
      words_(size_t{lane_words_} * lanes_) {
  for (uint32_t y = 0; y < plane.height(); ++y) {
    const uint32_t at = before_ * 64 + first_step(y);
    uint64_t* to = words_.data() + size_t{y % lanes_} * lane_words_ + at / 64;
    const uint64_t* const from = plane.row(y);
    for (uint32_t i = 0; i < plane.row_words(); ++i) {
      to[i] |= from[i] << (at % 64);
      to[i + 1] |= from[i] >> 1 >> (63 - at % 64);
    }
  }
}

}  // namespace l3
