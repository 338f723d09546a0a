// Collects the pixels of a token tile's wavefront into image rows, and maps values to samples.
#pragma once

#include <cstring>

#include "engine/wavefront.h"
#include "models/token.h"

namespace l3 {

template <class W, uint32_t kWords>
class TokenRows {
 public:
  using Lanes = typename W::Lanes;
  using Mask = typename W::Mask;

  L3_INLINE TokenRows(const TileOutput& out, const TokenTables& tables) : out_(out), tables_(tables) {
    has_bytes_ = tables.channels == 1 && tables.bits <= 8 && tables.depth[0] <= 8;
    for (uint32_t v = 0; v < 256 && has_bytes_; ++v) bytes_[v] = static_cast<uint8_t>(tables.sample_of(0, v));
  }

  L3_INLINE void begin(uint32_t width, uint32_t height, uint32_t lanes) {
    width_ = width;
    height_ = height;
    lanes_ = lanes;
    period_ = dense_period(width, lanes);
    steps_ = dense_steps(width, height, lanes);
    for (uint32_t lane = 0; lane < lanes; ++lane) next_[lane] = {lane, 0};
  }

  template <uint32_t kBuckets>
  L3_INLINE void on_symbol(Lanes, Mask) {}
  L3_INLINE void on_raw_bits(Lanes) {}

  L3_INLINE void put(uint32_t step, uint32_t part, Lanes, Lanes, const Lanes* pixels, Mask) {
    for (uint32_t word = 0; word < kWords; ++word) {
      W::store(pixels_[word][step % kSteps] + part * W::kPartLanes, pixels[word]);
    }
  }
  L3_INLINE void end_step(uint32_t step) {
    if (step % kSteps == kSteps - 1 || step + 1 == steps_) flush(step / kSteps * kSteps, step + 1);
  }

 private:
  static constexpr uint32_t kSteps = 64;
  struct Place {
    uint32_t row, column;
  };

  // Writes the pixels of steps `from` to `to` - 1.
  L3_INLINE void flush(uint32_t from, uint32_t to) {
    if (out_.pixels == nullptr) return;
    for (uint32_t word = 0; word < kWords; ++word) {
      for (uint32_t step = 0; step < kSteps; step += 8) {
        for (uint32_t lane = 0; lane < lanes_; lane += 8) {
          W::transpose(&pixels_[word][step][lane], kLanes, &turned_[word][lane][step], kSteps);
        }
      }
    }
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

  L3_INLINE uint32_t value(uint32_t channel, uint32_t lane, uint32_t step) const {
    return (turned_[channel / 2][lane][step] >> (16 * (channel % 2)) & 0xFFFF) ^ kValueBias;
  }

  L3_INLINE void write(uint32_t row, uint32_t first, uint32_t end, uint32_t lane, uint32_t step) const {
    if (row < out_.y0 || row >= out_.y1) return;
    if (first < out_.x0) {
      if (end <= out_.x0) return;
      step += out_.x0 - first;
      first = out_.x0;
    }
    end = smaller(end, out_.x1);
    if (first >= end) return;
    uint8_t* to = out_.pixels + (row - out_.y0) * out_.stride;
    const uint32_t at = first - out_.x0, count = end - first;
    if (out_.colours != nullptr) {
      to += size_t{at} * out_.colour_bytes;
      for (uint32_t i = 0; i < count; ++i, to += out_.colour_bytes) {
        const uint32_t index = tables_.sample_of(0, value(0, lane, step + i));
        for (uint32_t c = 0; c < out_.colour_bytes; ++c) to[c] = out_.colours[4 * (index & 0xFF) + c];
      }
    } else if (tables_.bits > 8) {
      put_samples(reinterpret_cast<uint16_t*>(to) + size_t{at} * tables_.channels, count, lane, step);
    } else {
      put_samples(to + size_t{at} * tables_.channels, count, lane, step);
    }
  }

  template <class Sample>
  L3_INLINE void put_samples(Sample* to, uint32_t count, uint32_t lane, uint32_t step) const {
    const uint32_t channels = tables_.channels;
    if (has_bytes_) {
      const uint32_t* const values = &turned_[0][lane][step];
      uint32_t i = 0;
      // Read four before writing any: the compiler must assume that a write may change the next value.
      for (; i + 4 <= count; i += 4) {
        const Sample four[] = {bytes_[values[i] & 0xFF], bytes_[values[i + 1] & 0xFF], bytes_[values[i + 2] & 0xFF],
                               bytes_[values[i + 3] & 0xFF]};
        std::memcpy(to + i, four, sizeof(four));
      }
      for (; i < count; ++i) to[i] = bytes_[values[i] & 0xFF];
    } else if (tables_.listing == Listing::none) {
      for (uint32_t c = 0; c < channels; ++c) {
        for (uint32_t i = 0; i < count; ++i) to[i * channels + c] = static_cast<Sample>(value(c, lane, step + i));
      }
    } else if (tables_.listing == Listing::colours) {
      for (uint32_t i = 0; i < count; ++i) {
        const uint32_t colour = value(0, lane, step + i);
        for (uint32_t c = 0; c < channels; ++c) *to++ = static_cast<Sample>(tables_.sample_of(c, colour));
      }
    } else {
      for (uint32_t i = 0; i < count; ++i) {
        for (uint32_t c = 0; c < channels; ++c) {
          *to++ = static_cast<Sample>(tables_.sample_of(c, value(c, lane, step + i)));
        }
      }
    }
  }

  const TileOutput& out_;
  const TokenTables& tables_;
  bool has_bytes_;
  uint8_t bytes_[256];  // the sample of each value, if both have at most 8 bits
  uint32_t width_ = 0, height_ = 0, lanes_ = 1, period_ = 2, steps_ = 0;
  Place next_[kLanes];  // the position of each lane in the next step to be written
  alignas(64) uint32_t pixels_[kWords][kSteps][kLanes];
  alignas(64) uint32_t turned_[kWords][kLanes][kSteps];
};

}  // namespace l3
