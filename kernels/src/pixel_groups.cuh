// Writes the pixels of a tile that lanes give one by one, in any type and layout.
#pragma once

#include "cuda_word_warp.cuh"
#include "output.cuh"

namespace l3 {

// If a pixel fits into a word (samples up to 8 bits, or one channel), a lane writes four pixels at a time where the
// alignment allows it. kChannels is the number of channels, or 1 where it is not known when this is compiled.
template <uint32_t kChannels>
class PixelGroups {
 public:
  using Lanes = CudaWordWarp::Lanes;

  L3_INLINE void save_states(uint32_t, uint32_t, const Lanes (&)[1]) {}
  L3_INLINE void end_step(uint32_t) {}

 protected:
  L3_INLINE explicit PixelGroups(const TilePlace& place) : place_(place) {}

  L3_INLINE void begin_groups(uint32_t channels, bool in_a_word) {
    const bool in_order = place_.out->in_order != 0;
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
  }
  // Takes a lane's next pixel: pixel_of() has its samples, with sample_bits_ bits each, or its colour.
  template <class PixelOf>
  L3_INLINE void put_next(uint32_t x, uint32_t y, bool active, const PixelOf& pixel_of) {
    uint64_t pixel = 0;
    if (active && y >= place_.y0 && y < place_.y1) {
      pixel = pixel_of();
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

  const TilePlace& place_;
  uint32_t sample_bits_ = 8;

 private:
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

  GroupRange groups_;
  uint32_t in_words_ = 0;  // bytes of a pixel, if pixels are written one after the other
  uint32_t before_[3] = {};
};

// Whether a tile is written whole, in order and with samples of the image's channels unchanged.
L3_INLINE bool is_whole_in_order(const TilePlace& place, const TileShape& shape) {
  return place.x0 == 0 && place.y0 == 0 && place.x1 == shape.width && place.y1 == shape.height &&
         place.out->in_order != 0 && place.out->row_step <= UINT32_MAX && place.colours == nullptr;
}

}  // namespace l3
