// Writes the pixels of tiles with a token model: converts values to samples, and samples to the output type.
#pragma once

#include "cuda_word_warp.cuh"
#include "models/token.h"
#include "output.cuh"

namespace l3 {

// Takes the pixels of kChannels engine channels, two values per word. If a pixel fits into a word (samples up to 8
// bits, or one channel), a lane writes four pixels at a time where the alignment allows it.
template <uint32_t kChannels>
class TokenPixels {
 public:
  using Lanes = CudaWordWarp::Lanes;

  L3_INLINE TokenPixels(const TilePlace& place, const TokenTables& model) : place_(place), model_(model) {}

  L3_INLINE void begin(uint32_t, uint32_t, uint32_t) {
    const bool in_order = place_.out->in_order != 0, in_a_word = model_.bits <= 8;
    const uint32_t channels = model_.channels;
    GroupRange range;
    if (in_order && channels > 1) {
      if (in_a_word) range = GroupRange::of_words(place_);
    } else if (in_a_word || channels == 1) {
      range = GroupRange::of_channels(place_);
    }
    groups_.from = CudaWordWarp::uniform(range.from);
    groups_.to = CudaWordWarp::uniform(range.to);
    sample_bits_ = CudaWordWarp::uniform(in_a_word ? 8 : 16);
    in_words_ = CudaWordWarp::uniform(in_order && channels > 1 ? channels : 0);
    listing_ = CudaWordWarp::uniform(static_cast<uint32_t>(model_.listing));
  }

  L3_INLINE void save_states(uint32_t, uint32_t, const Lanes (&)[1]) {}
  L3_INLINE void end_step(uint32_t) {}
  L3_INLINE void put(uint32_t, uint32_t, Lanes row, Lanes column, const Lanes* values, bool active) {
    const uint32_t x = column.v, y = row.v;
    uint64_t pixel = 0;
    if (active && y >= place_.y0 && y < place_.y1) {
      pixel = pixel_of(values);
      if (groups_.has(x)) {
        if ((x & 3) == 3) put_group(x - 3, y, static_cast<uint32_t>(pixel));
      } else if (x >= place_.x0 && x < place_.x1) {
        put_pixel(place_, x, y, pixel, sample_bits_);
      }
    }
    before_[2] = before_[1];
    before_[1] = before_[0];
    before_[0] = static_cast<uint32_t>(pixel);
  }

 private:
  L3_INLINE static uint32_t value(const Lanes* values, uint32_t c) {
    return (values[c / 2].v >> (16 * (c % 2)) & 0xFFFF) ^ kValueBias;
  }

  // Returns the samples of a pixel, with sample_bits_ bits each, or the colour for an index.
  L3_INLINE uint64_t pixel_of(const Lanes* values) const {
    uint64_t pixel = 0;
    const uint32_t samples = kChannels == 1 ? model_.channels : kChannels;
    if (kChannels == 1 && listing_ == static_cast<uint32_t>(Listing::colours)) {
      const uint32_t colour = value(values, 0);
      if (colour < model_.value_count[0]) {
        for (uint32_t c = 0; c < samples; ++c) {
          pixel |= uint64_t{model_.values[colour * samples + c]} << (sample_bits_ * c);
        }
      }
    } else {
#pragma unroll
      for (uint32_t c = 0; c < kChannels; ++c) {
        uint32_t sample = value(values, c);
        if (listing_ != static_cast<uint32_t>(Listing::none)) sample = model_.sample_of(c, sample);
        pixel |= uint64_t{sample} << (sample_bits_ * c);
      }
    }
    if (kChannels == 1 && place_.colours != nullptr) pixel = place_.colours[pixel & 0xFF];
    return pixel;
  }

  // Writes columns x to x + 3.
  L3_INLINE void put_group(uint32_t x, uint32_t y, uint32_t pixel) const {
    const uint32_t a = before_[2], b = before_[1], c = before_[0];
    if (in_words_ == 0) {
      put_four_pixels(place_, x, y, a, b, c, pixel, sample_bits_);
      return;
    }
    uint8_t* const to = place_.address(x, y);
    switch (kChannels == 1 ? in_words_ : kChannels) {
      case 2: store_four_in_order<2>(to, a, b, c, pixel); break;
      case 3: store_four_in_order<3>(to, a, b, c, pixel); break;
      default: store_four_in_order<4>(to, a, b, c, pixel); break;
    }
  }

  const TilePlace& place_;
  const TokenTables& model_;
  GroupRange groups_;
  uint32_t sample_bits_ = 8;
  uint32_t in_words_ = 0;  // bytes of a pixel, if pixels are written one after the other
  uint32_t listing_ = 0;
  uint32_t before_[3] = {};
};

}  // namespace l3
