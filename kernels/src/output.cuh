// Writes pixels in the caller's type and layout.
#pragma once

#include "batch.h"
#include "cuda_warp.cuh"

namespace l3 {

// The part of a region that lies in a tile.
struct TilePlace {
  const Output* out;
  const uint32_t* colours;  // of the image, or null
  int32_t x, y;             // the tile's first pixel in the region; below 0 if the region begins inside the tile
  uint32_t x0, y0, x1, y1;  // the requested columns and rows of the tile

  L3_INLINE uint8_t* address(uint32_t column, uint32_t row) const {
    return out->first + (x + static_cast<int32_t>(column)) * out->pixel_step +
           static_cast<uint64_t>(static_cast<uint32_t>(y + static_cast<int32_t>(row))) * out->row_step;
  }
};

L3_INLINE TilePlace place_of(const ImageState& state, const uint32_t* colours, uint32_t column, uint32_t row,
                             const TileShape& shape) {
  TilePlace place;
  place.out = &state.out;
  place.colours = state.out.as_colours != 0 ? colours : nullptr;
  place.x = static_cast<int32_t>(column * state.tile_width) - static_cast<int32_t>(state.x);
  place.y = static_cast<int32_t>(row * state.tile_height) - static_cast<int32_t>(state.y);
  place.x0 = place.x < 0 ? static_cast<uint32_t>(-place.x) : 0;
  place.y0 = place.y < 0 ? static_cast<uint32_t>(-place.y) : 0;
  place.x1 = smaller(shape.width, static_cast<uint32_t>(static_cast<int32_t>(state.region_width) - place.x));
  place.y1 = smaller(shape.height, static_cast<uint32_t>(static_cast<int32_t>(state.region_height) - place.y));
  return place;
}

// Converts a sample of a channel to the output type, in the lowest bits of the result.
L3_INLINE uint32_t converted(const Output& out, uint32_t channel, uint32_t sample) {
  if (out.type <= L3_CUDA_U16) return sample;
  const float value = __fmaf_rn(static_cast<float>(sample), out.scale[channel], out.bias[channel]);
  if (out.type == L3_CUDA_F32) return __float_as_uint(value);
  return out.type == L3_CUDA_F16 ? half_of(value) : bfloat_of(value);
}

L3_INLINE void store_converted(const Output& out, uint32_t channel, uint8_t* pixel, uint32_t sample) {
  uint8_t* const to = pixel + channel * out.channel_step;
  const uint32_t value = converted(out, channel, sample);
  if (out.type == L3_CUDA_U8) {
    store_global_byte(to, value);
  } else if (out.type == L3_CUDA_F32) {
    store_global(to, value);
  } else {
    store_global_half(to, value);
  }
}

// Stores four adjacent samples of a channel at once. The caller has checked the alignment.
L3_INLINE void store_four_converted(const Output& out, uint32_t channel, uint8_t* to, uint32_t a, uint32_t b,
                                    uint32_t c, uint32_t d) {
  a = converted(out, channel, a);
  b = converted(out, channel, b);
  c = converted(out, channel, c);
  d = converted(out, channel, d);
  if (out.type == L3_CUDA_U8) {
    store_global(to, a | b << 8 | c << 16 | d << 24);
  } else if (out.type == L3_CUDA_F32) {
    store_global_four(to, make_uint4(a, b, c, d));
  } else {
    store_global_two(to, uint2{a | b << 16, c | d << 16});
  }
}

// Calls use(channel, sample) for each channel of the image. coded(e) returns the sample of coded channel e; there are
// kCoded of them, or fewer. A sample of a channel that is not coded is multiplied by `ones`, for several in a word.
template <uint32_t kCoded, class Coded, class Use>
L3_INLINE void for_channels(const Output& out, const Coded& coded, uint32_t ones, const Use& use) {
  for (uint32_t c = 0; c < out.channels; ++c) {
    const uint32_t source = out.map.source[c];
    uint32_t sample = out.map.constant[c] * ones;
#pragma unroll
    for (uint32_t e = 0; e < kCoded; ++e) {
      if (source == e) sample = coded(e);
    }
    use(c, sample);
  }
}

// Writes a pixel. `pixel` holds its samples, each with the same number of bits.
template <class Pixel>
L3_INLINE void put_pixel(const TilePlace& place, uint32_t x, uint32_t y, Pixel pixel, uint32_t bits) {
  const Output& out = *place.out;
  uint8_t* const to = place.address(x, y);
  for (uint32_t c = 0; c < out.channels; ++c) {
    const uint32_t source = out.is_mapped != 0 ? out.map.source[c] : c;
    const uint32_t coded = static_cast<uint32_t>(pixel >> (bits * (source & 3))) & ((1u << bits) - 1);
    store_converted(out, c, to, source == kNoSource ? out.map.constant[c] : coded);
  }
}
// Writes the pixels in columns x to x + 3, if GroupRange allows it.
L3_INLINE void put_four_pixels(const TilePlace& place, uint32_t x, uint32_t y, uint32_t a, uint32_t b, uint32_t c,
                               uint32_t d, uint32_t bits) {
  const Output& out = *place.out;
  const bool mirrored = out.pixel_step < 0;
  if (mirrored) {
    const uint32_t first = a, second = b;
    a = d;
    b = c;
    c = second;
    d = first;
  }
  const uint32_t sample = (1u << bits) - 1;
  uint8_t* to = place.address(mirrored ? x + 3 : x, y);
  for (uint32_t channel = 0; channel < out.channels; ++channel) {
    if (out.is_mapped != 0) {
      const uint32_t source = out.map.source[channel], constant = out.map.constant[channel];
      const auto of = [&](uint32_t pixel) {
        return source == kNoSource ? constant : pixel >> (bits * source) & sample;
      };
      store_four_converted(out, channel, to, of(a), of(b), of(c), of(d));
      to += out.channel_step;
      continue;
    }
    store_four_converted(out, channel, to, a & sample, b & sample, c & sample, d & sample);
    a >>= bits;
    b >>= bits;
    c >>= bits;
    d >>= bits;
    to += out.channel_step;
  }
}
// Packs four adjacent pixels: the lowest kChannels bytes of each word.
template <uint32_t kChannels>
L3_INLINE void words_of_four(uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t* words) {
  if constexpr (kChannels == 1) {
    words[0] = __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
  } else if constexpr (kChannels == 2) {
    words[0] = __byte_perm(a, b, 0x5410);
    words[1] = __byte_perm(c, d, 0x5410);
  } else if constexpr (kChannels == 3) {
    words[0] = __byte_perm(a, b, 0x4210);
    words[1] = __byte_perm(b, c, 0x5421);
    words[2] = __byte_perm(c, d, 0x6542);
  } else {
    words[0] = a;
    words[1] = b;
    words[2] = c;
    words[3] = d;
  }
}
// Writes them at a multiple of 4.
template <uint32_t kChannels>
L3_INLINE void store_four_in_order(uint8_t* to, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  uint32_t words[kChannels];
  words_of_four<kChannels>(a, b, c, d, words);
  for (uint32_t i = 0; i < kChannels; ++i) store_global(to + 4 * i, words[i]);
}

// The columns of a tile that can be written four at a time: from `from` up to `to`, both multiples of four.
struct GroupRange {
  uint32_t from = kMaxTileEdge, to = 0;

  // The range for groups of four that take `bytes` bytes: samples of a channel, or whole pixels.
  L3_INLINE static GroupRange of(const TilePlace& place, uint32_t bytes) {
    const Output& out = *place.out;
    const bool mirrored = out.pixel_step < 0;
    // Test the group at column 0, even if it is outside. The other groups are a multiple of four columns away.
    const uint64_t places = reinterpret_cast<uint64_t>(place.address(mirrored ? 3 : 0, place.y0)) | out.row_step;
    GroupRange range;
    if ((mirrored ? -out.pixel_step : out.pixel_step) == bytes && places % (4 * bytes) == 0) {
      range.from = (place.x0 + 3) & ~3u;
      range.to = place.x1 & ~3u;
    }
    return range;
  }
  L3_INLINE static GroupRange of_channels(const TilePlace& place) {
    const uint32_t bytes = bytes_of_type(place.out->type);
    return place.out->channel_step % (4 * bytes) == 0 || place.out->channels == 1 ? of(place, bytes) : GroupRange{};
  }
  // The range for whole pixels that are written as words, which need only the alignment of a word.
  L3_INLINE static GroupRange of_words(const TilePlace& place) {
    const uint64_t places = reinterpret_cast<uint64_t>(place.address(0, place.y0)) | place.out->row_step;
    GroupRange range;
    if (places % 4 == 0) {
      range.from = (place.x0 + 3) & ~3u;
      range.to = place.x1 & ~3u;
    }
    return range;
  }
  L3_INLINE bool has(uint32_t column) const { return column >= from && column < to; }
};

// Writes four pixels of a lane, given as a word per channel, of samples up to 8 bits.
template <uint32_t kChannels>
class FourPixels {
 public:
  L3_INLINE explicit FourPixels(const TilePlace& place)
      : place_(place),
        in_order_(place.out->in_order != 0),
        groups_(in_order_ ? GroupRange::of_words(place) : GroupRange::of_channels(place)),
        words_(in_order_ ? groups_ : GroupRange{}),
        first_(place.address(0, place.y0)),
        row_bytes_(place.out->row_step) {}

  // Whether all pixels from x and y on are wanted and leave in order, as whole words.
  L3_INLINE bool takes_words(uint32_t x, uint32_t y, uint32_t columns, uint32_t rows) const {
    return x >= words_.from && x + columns <= words_.to && y >= place_.y0 && y + rows <= place_.y1;
  }
  // Writes such pixels: columns x to x + 3 of row y, and of each row that is row_step rows below.
  template <uint32_t kCount>
  L3_INLINE void put_words_of_rows(uint32_t x, uint32_t y, uint32_t row_step,
                                   const uint32_t (&fours)[kCount][kChannels]) const {
    uint8_t* to = first_ + (y - place_.y0) * row_bytes_ + x * kChannels;
    for (uint32_t i = 0; i < kCount; ++i, to += row_step * row_bytes_) put_words(to, fours[i]);
  }
  // Writes columns x to x + 3 of row y. Pixels outside the requested part are dropped.
  L3_INLINE void put(uint32_t x, uint32_t y, const uint32_t* four) const {
    if (y < place_.y0 || y >= place_.y1) return;
    if (!groups_.has(x)) {
      for (uint32_t i = 0; i < 4; ++i) {
        if (x + i >= place_.x0 && x + i < place_.x1) put_one(x + i, y, i, four);
      }
    } else if (in_order_) {
      put_words(place_.address(x, y), four);
    } else {
      put_group(x, y, four);
    }
  }

 private:
  L3_INLINE void put_one(uint32_t x, uint32_t y, uint32_t i, const uint32_t* four) const {
    const Output& out = *place_.out;
    uint8_t* const to = place_.address(x, y);
    if constexpr (kChannels == 1) {
      if (place_.colours != nullptr) {
        const uint32_t colour = place_.colours[four[0] >> (8 * i) & 0xFF];
        for (uint32_t c = 0; c < out.channels; ++c) store_converted(out, c, to, colour >> (8 * c) & 0xFF);
        return;
      }
    }
    const auto sample = [&](uint32_t c) { return four[c] >> (8 * i) & 0xFF; };
    const auto store = [&](uint32_t c, uint32_t of_channel) { store_converted(out, c, to, of_channel); };
    if (out.is_mapped != 0) return for_channels<kChannels>(out, sample, 1, store);
#pragma unroll
    for (uint32_t c = 0; c < kChannels; ++c) store(c, sample(c));
  }

  L3_INLINE static void put_words(uint8_t* to, const uint32_t* four) {
    if constexpr (kChannels == 1) {
      store_global(to, four[0]);
    } else if constexpr (kChannels == 2) {
      store_global(to, __byte_perm(four[0], four[1], 0x5140));
      store_global(to + 4, __byte_perm(four[0], four[1], 0x7362));
    } else if constexpr (kChannels == 3) {
      const uint32_t low = __byte_perm(four[0], four[1], 0x5140);   // r0 g0 r1 g1
      const uint32_t high = __byte_perm(four[0], four[1], 0x7362);  // r2 g2 r3 g3
      store_global(to, __byte_perm(low, four[2], 0x2410));
      store_global(to + 4, __byte_perm(__byte_perm(low, four[2], 0x0053), high, 0x5410));
      store_global(to + 8, __byte_perm(high, four[2], 0x7326));
    } else {
      const uint32_t low = __byte_perm(four[0], four[1], 0x5140), high = __byte_perm(four[0], four[1], 0x7362);
      const uint32_t low_2 = __byte_perm(four[2], four[3], 0x5140), high_2 = __byte_perm(four[2], four[3], 0x7362);
      store_global(to, __byte_perm(low, low_2, 0x5410));
      store_global(to + 4, __byte_perm(low, low_2, 0x7632));
      store_global(to + 8, __byte_perm(high, high_2, 0x5410));
      store_global(to + 12, __byte_perm(high, high_2, 0x7632));
    }
  }

  L3_INLINE void put_group(uint32_t x, uint32_t y, const uint32_t* four) const {
    const Output& out = *place_.out;
    const uint32_t order = out.pixel_step < 0 ? 0x0123 : 0x3210;
    uint8_t* const to = place_.address(out.pixel_step < 0 ? x + 3 : x, y);
    if constexpr (kChannels == 1) {
      if (place_.colours != nullptr) {
        const uint32_t indices = __byte_perm(four[0], 0, order);
        uint32_t colours[4];
#pragma unroll
        for (uint32_t i = 0; i < 4; ++i) colours[i] = place_.colours[indices >> (8 * i) & 0xFF];
        for (uint32_t c = 0; c < out.channels; ++c) {
          store_four_converted(out, c, to + c * out.channel_step, colours[0] >> (8 * c) & 0xFF,
                               colours[1] >> (8 * c) & 0xFF, colours[2] >> (8 * c) & 0xFF,
                               colours[3] >> (8 * c) & 0xFF);
        }
        return;
      }
    }
    const auto samples = [&](uint32_t c) { return __byte_perm(four[c], 0, order); };
    const auto store = [&](uint32_t c, uint32_t w) {
      store_four_converted(out, c, to + c * out.channel_step, w & 0xFF, w >> 8 & 0xFF, w >> 16 & 0xFF, w >> 24);
    };
    if (out.is_mapped != 0) return for_channels<kChannels>(out, samples, 0x01010101, store);
#pragma unroll
    for (uint32_t c = 0; c < kChannels; ++c) store(c, samples(c));
  }

  TilePlace place_;
  bool in_order_;
  GroupRange groups_;
  GroupRange words_;    // of the groups that leave in order
  uint8_t* first_;      // where the first pixel of row place_.y0 is or would be
  uint64_t row_bytes_;  // from a row to the next one
};

}  // namespace l3
