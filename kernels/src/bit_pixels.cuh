// Writes the pixels of tiles with a bit model.
#pragma once

#include "models/bits.h"
#include "pixel_groups.cuh"

namespace l3 {

// The bits of a sample in a pixel of put_pixel().
L3_INLINE uint32_t sample_bits_of(const BitTables& model) { return model.bits <= 8 ? 8 : 16; }
// The pixel for a bit: its samples, or its colour.
L3_INLINE uint64_t pixel_of_bit(const TilePlace& place, const BitTables& model, uint32_t bit) {
  uint64_t pixel = 0;
#pragma unroll 1
  for (uint32_t c = 0; c < model.channels; ++c) {
    pixel |= uint64_t{model.sample_of(c, bit)} << (sample_bits_of(model) * c);
  }
  return place.colours != nullptr ? place.colours[pixel & 0xFF] : pixel;
}

// Puts the shapes of a tile whose bits are decoded and written. Returns false if their list is invalid.
L3_INLINE bool put_shapes(const uint8_t* list, uint32_t width, uint32_t height, const TilePlace& place,
                          const BitTables& model) {
  const uint64_t pixel = pixel_of_bit(place, model, 1);
  const uint32_t sample_bits = sample_bits_of(model);
  // All lanes read the list, and share the pixels of a shape.
  const auto put = [&](const BitShape& shape, int32_t x, int32_t top) {
    const uint64_t* const rows = model.shapes.rows + shape.first_row;
    const uint32_t pixels = uint32_t{shape.width} * shape.height;
    for (uint32_t i = lane_number(); i < pixels; i += kLanes) {
      const uint32_t of_shape = i % shape.width, row_of_shape = i / shape.width;
      if ((rows[row_of_shape] >> of_shape & 1) == 0) continue;
      const int32_t column = x + static_cast<int32_t>(of_shape), row = top + static_cast<int32_t>(row_of_shape);
      if (column < static_cast<int32_t>(place.x0) || column >= static_cast<int32_t>(place.x1) ||
          row < static_cast<int32_t>(place.y0) || row >= static_cast<int32_t>(place.y1)) {
        continue;
      }
      put_pixel(place, static_cast<uint32_t>(column), static_cast<uint32_t>(row), pixel, sample_bits);
    }
  };
  return ShapeList(list).read(model.shapes, width, height, put);
}

// Any part of a tile, in any type and layout.
class BitPixels : public PixelGroups<1> {
 public:
  L3_INLINE BitPixels(const TilePlace& place, const BitTables& model) : PixelGroups<1>(place), model_(model) {}

  L3_INLINE void begin(uint32_t, uint32_t, uint32_t) {
    begin_groups(model_.channels, model_.bits <= 8);
#pragma unroll
    for (uint32_t bit = 0; bit < 2; ++bit) {
      const uint64_t pixel = pixel_of_bit(place_, model_, bit);
      low_[bit] = CudaWordWarp::uniform(static_cast<uint32_t>(pixel));
      high_[bit] = CudaWordWarp::uniform(static_cast<uint32_t>(pixel >> 32));
    }
  }
  L3_INLINE void put(uint32_t, uint32_t, Lanes row, Lanes column, bool bit, bool active) {
    put_next(column.v, row.v, active,
             [&] { return uint64_t{bit ? high_[1] : high_[0]} << 32 | (bit ? low_[1] : low_[0]); });
  }

 private:
  const BitTables& model_;
  uint32_t low_[2] = {}, high_[2] = {};  // of the pixels for both bits
};

// Whole tiles of images of one channel with samples up to 8 bits, which are written unchanged and in order. A lane
// writes eight pixels at a time where they make an aligned word, however a row begins.
class BitSamples {
 public:
  using Lanes = CudaWordWarp::Lanes;

  L3_INLINE BitSamples(const TilePlace& place, const BitTables& model)
      : pixels_(place.address(0, 0)), stride_(static_cast<uint32_t>(place.out->row_step)), model_(model) {}

  L3_INLINE void begin(uint32_t width, uint32_t, uint32_t) {
    const uint32_t zero = model_.sample_of(0, 0);
    first_ = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(pixels_)) % kGroup;
    width_ = width;
    zeros_ = CudaWordWarp::uniform(zero * kEach);
    difference_ = CudaWordWarp::uniform(model_.sample_of(0, 1) - zero);
  }
  L3_INLINE void save_states(uint32_t, uint32_t, const Lanes (&)[1]) {}
  L3_INLINE void end_step(uint32_t) {}
  L3_INLINE void put(uint32_t, uint32_t, Lanes row, Lanes column, bool bit, bool active) {
    last_ = __funnelshift_r(last_, bit, 1);
    if (!active) return;
    const uint32_t x = column.v, in_group = (row.v * stride_ + first_ + x) % kGroup;
    const bool is_whole = in_group <= x && x - in_group + kGroup <= width_;
    if (is_whole && in_group != kGroup - 1) return;
    uint8_t* const to = multiply_add_wide(row.v, stride_, pixels_) + x;
    if (is_whole) {
      store_global_two(to - (kGroup - 1), make_uint2(four_of(last_ >> 24), four_of(last_ >> 28)));
    } else {
      store_global_byte(to, four_of(bit));
    }
  }

 private:
  static constexpr uint32_t kGroup = 8, kEach = 0x01010101;

  // The samples of four pixels, whose bits are the lowest ones.
  L3_INLINE uint32_t four_of(uint32_t bits) const {
    constexpr uint32_t kSpread = 1 | 1u << 7 | 1u << 14 | 1u << 21;
    return ((bits & 15) * kSpread & kEach) * difference_ + zeros_;
  }

  uint8_t* pixels_;
  uint32_t stride_;
  const BitTables& model_;
  uint32_t first_ = 0, width_ = 0;
  uint32_t zeros_ = 0, difference_ = 0;
  uint32_t last_ = 0;  // a lane's last bits, the newest one in the top bit
};

}  // namespace l3
