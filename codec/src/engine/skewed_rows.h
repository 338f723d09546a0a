// Collects the pixels of a wavefront into image rows: in one step, each lane is in a different row and column.
#pragma once

#include "container/dense.h"
#include "container/tile.h"

namespace l3 {

// `Self` is the derived sink. Its store() writes pixels of one row. A pixel takes kNumbers numbers.
template <class Self, class W, class Number, uint32_t kNumbers>
class SkewedRows {
 public:
  using Lanes = typename W::Lanes;

  L3_INLINE void begin(uint32_t width, uint32_t height, uint32_t lanes) {
    width_ = width;
    height_ = height;
    lanes_ = lanes;
    period_ = dense_period(width, lanes);
    steps_ = dense_steps(width, height, lanes);
    for (uint32_t lane = 0; lane < kLanes; ++lane) next_[lane] = {lane, 0};
  }

  L3_INLINE void save_states(uint32_t stage, uint32_t taken, const Lanes (&states)[W::kParts]) const {
    if (out_.states == nullptr) return;
    out_.states[stage].taken = taken;
    for (uint32_t part = 0; part < W::kParts; ++part) {
      W::store(out_.states[stage].of + part * W::kPartLanes, states[part]);
    }
  }

  // Where a number of each lane's pixel in a step is to be put.
  L3_INLINE Number* place(uint32_t step, uint32_t number = 0) { return pixels_[number][step % kSteps]; }
  // The steps from this one on whose places lie side by side, kLanes numbers each.
  L3_INLINE static uint32_t steps_to_flush(uint32_t step) { return kSteps - step % kSteps; }
  // Puts a row at once. For each row this is used, or the two functions above.
  void put_row(uint32_t row, const Number* numbers) {
    if (out_.pixels == nullptr) return;
    const uint32_t first = out_.x0, end = smaller(width_, out_.x1);
    if (row < out_.y0 || row >= out_.y1) return;
    static_cast<const Self&>(*this).store_numbers(out_.pixels + (row - out_.y0) * out_.stride, end - first,
                                                  numbers + first);
  }
  L3_INLINE void end_step(uint32_t step) {
    if (step % kSteps == kSteps - 1 || step + 1 == steps_) flush(step / kSteps * kSteps, step + 1);
  }

 protected:
  L3_INLINE explicit SkewedRows(const TileOutput& out) : out_(out) {}

  // Fetches memory that the next flush will write: in every second step, what it writes of a lane. The rows are far
  // apart, and a flush would wait for them.
  L3_INLINE void fetch(uint32_t step, uint32_t pixel_bytes) const {
    static_assert(kSteps == 2 * kLanes);
    if (step % 2 != 0 || out_.pixels == nullptr) return;
    const Place& next = next_[step % kSteps / 2];
    // Numbers, not pointers: they may be outside the image.
    const uintptr_t first =
        reinterpret_cast<uintptr_t>(out_.pixels) - size_t{out_.y0} * out_.stride - size_t{out_.x0} * pixel_bytes;
    const uintptr_t row = first + next.row * out_.stride,
                    next_row = row + lanes_ * out_.stride - size_t{period_} * pixel_bytes;
    for (uint32_t column = next.column + kSteps / 4 - 1; column < next.column + kSteps; column += kSteps / 4) {
      const uintptr_t at = (column < period_ ? row : next_row) + size_t{column} * pixel_bytes;
      __builtin_prefetch(reinterpret_cast<void*>(at), 1);
    }
  }

  // A number of each of a lane's pixels, starting with a step since the last flush.
  L3_INLINE const Number* numbers(uint32_t number, uint32_t lane, uint32_t step) const {
    return &turned_[number][lane][step];
  }

  // Stores pixels of three bytes, each with out_.fourth after it.
  template <class Warp>
  L3_INLINE void store_with_fourth(uint8_t* to, const uint32_t* pixels, uint32_t count) const {
    const uint32_t fourth = uint32_t{out_.fourth} << 24;
    uint32_t words[kMostSteps];
    for (uint32_t i = 0; i < count; ++i) words[i] = pixels[i] | fourth;
    Warp::template store_pixels<4>(to, words, count);
  }

  static constexpr uint32_t kMostSteps = kNumbers == 1 ? 64 : 32;  // between two flushes; stack is scarce
  const TileOutput& out_;

  // Brings what place() has into the order of rows. Derived sinks may have another one.
  L3_INLINE void turn() {
    if constexpr (sizeof(Number) == 1) {
      for (uint32_t i = 0; i < kNumbers; ++i) {
        for (uint32_t step = 0; step < kSteps; step += 16) {
          W::turn_bytes(pixels_[i][step], lanes_, &turned_[i][0][step], kSteps);
        }
      }
    } else {
      for (uint32_t i = 0; i < kNumbers; ++i) {
        for (uint32_t step = 0; step < kSteps; step += 8) {
          for (uint32_t lane = 0; lane < lanes_; lane += 8) {
            W::transpose(&pixels_[i][step][lane], kLanes, &turned_[i][lane][step], kSteps);
          }
        }
      }
    }
  }

 private:
  static constexpr uint32_t kSteps = kMostSteps;
  struct Place {
    uint32_t row, column;
  };

  // Writes the pixels of steps `from` to `to` - 1. Not inlined, since decoders call it in several places.
  __attribute__((noinline)) void flush(uint32_t from, uint32_t to) {
    if (out_.pixels == nullptr) return;
    static_cast<Self&>(*this).turn();
    for (uint32_t lane = 0; lane < lanes_ && 2 * lane < to; ++lane) {
      uint32_t step = from > 2 * lane ? from : 2 * lane;
      Place& next = next_[lane];
      while (step < to) {
        const uint32_t count = smaller(to - step, period_ - next.column);
        if (next.row < height_ && next.column < width_) {
          write(next.row, next.column, smaller(next.column + count, width_), lane, step - from);
        }
        step += count;
        next.column += count;
        if (next.column == period_) next = {next.row + lanes_, 0};
      }
    }
  }

  // Writes those of the columns `first` to `end` - 1 that are requested.
  L3_INLINE void write(uint32_t row, uint32_t first, uint32_t end, uint32_t lane, uint32_t step) const {
    if (row < out_.y0 || row >= out_.y1) return;
    if (first < out_.x0) {
      if (end <= out_.x0) return;
      step += out_.x0 - first;
      first = out_.x0;
    }
    end = smaller(end, out_.x1);
    if (first >= end) return;
    static_cast<const Self&>(*this).store(out_.pixels + (row - out_.y0) * out_.stride, first - out_.x0, end - first,
                                          lane, step);
  }

  uint32_t width_ = 0, height_ = 0, lanes_ = 1, period_ = 2, steps_ = 0;
  Place next_[kLanes];  // the position of each lane in the next step to be written
  alignas(64) Number pixels_[kNumbers][kSteps][kLanes];
  alignas(64) Number turned_[kNumbers][kLanes][kSteps];
};

}  // namespace l3
