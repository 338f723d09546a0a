// Collects the pixels of a wavefront into image rows: in one step, each lane is in a different row and column.
#pragma once

#include <cstring>

#include "container/dense.h"
#include "container/tile.h"

namespace l3 {

template <class W, uint32_t kChannels>
class SkewedRows {
 public:
  using Lanes = typename W::Lanes;
  using Mask = typename W::Mask;

  L3_INLINE explicit SkewedRows(const TileOutput& out) : out_(out) {}

  L3_INLINE void begin(uint32_t width, uint32_t height, uint32_t lanes) {
    width_ = width;
    height_ = height;
    lanes_ = lanes;
    period_ = dense_period(width, lanes);
    steps_ = dense_steps(width, height, lanes);
    for (uint32_t lane = 0; lane < lanes; ++lane) next_[lane] = {lane, 0};
  }

  // Called for each decoded symbol, with its frequency in each active lane. Only the sink in measure.cpp uses it.
  template <uint32_t kBuckets>
  L3_INLINE void on_symbol(Lanes, Mask) {}

  L3_INLINE void put(uint32_t step, uint32_t part, Lanes, Lanes, Lanes pixels, Mask) {
    W::store(pixels_[step % kSteps] + part * W::kPartLanes, pixels);
  }
  L3_INLINE void end_step(uint32_t step) {
    if (step % kSteps == kSteps - 1 || step + 1 == steps_) flush(step / kSteps * kSteps, step + 1);
  }

 private:
  static constexpr uint32_t kSteps = 64;

  // Writes the pixels of steps `from` to `to` - 1.
  L3_INLINE void flush(uint32_t from, uint32_t to) {
    if (out_.pixels == nullptr) return;
    for (uint32_t step = 0; step < kSteps; step += 8) {
      for (uint32_t lane = 0; lane < lanes_; lane += 8) {
        W::transpose(&pixels_[step][lane], kLanes, &turned_[lane][step], kSteps);
      }
    }
    for (uint32_t lane = 0; lane < lanes_ && 2 * lane < to; ++lane) {
      uint32_t step = from > 2 * lane ? from : 2 * lane;
      Place& next = next_[lane];
      while (step < to) {
        const uint32_t count = smaller(to - step, period_ - next.column);
        if (next.row < height_ && next.column < width_) {
          write(next.row, next.column, smaller(next.column + count, width_), &turned_[lane][step - from]);
        }
        step += count;
        next.column += count;
        if (next.column == period_) next = {next.row + lanes_, 0};
      }
    }
  }

  L3_INLINE void write(uint32_t row, uint32_t first, uint32_t end, const uint32_t* pixel) const {
    if (row < out_.y0 || row >= out_.y1) return;
    if (first < out_.x0) {
      if (end <= out_.x0) return;
      pixel += out_.x0 - first;
      first = out_.x0;
    }
    end = smaller(end, out_.x1);
    if (first >= end) return;
    uint8_t* to = out_.pixels + (row - out_.y0) * out_.stride;
    const uint32_t at = first - out_.x0;
    const uint32_t count = end - first;
    if constexpr (kChannels == 1) {
      if (out_.colours != nullptr) {
        to += size_t{at} * out_.colour_bytes;
        for (uint32_t i = 0; i < count; ++i, to += out_.colour_bytes) {
          std::memcpy(to, out_.colours + 4 * (pixel[i] & 0xFF), out_.colour_bytes);
        }
        return;
      }
    }
    W::template store_pixels<kChannels>(to + size_t{at} * kChannels, pixel, count);
  }

  struct Place {
    uint32_t row, column;
  };

  const TileOutput& out_;
  uint32_t width_ = 0, height_ = 0, lanes_ = 1, period_ = 2, steps_ = 0;
  Place next_[kLanes];  // the position of each lane in the next step to be written
  alignas(64) uint32_t pixels_[kSteps][kLanes];
  alignas(64) uint32_t turned_[kLanes][kSteps];
};

}  // namespace l3
