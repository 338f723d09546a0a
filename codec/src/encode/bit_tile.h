// The pixels of a tile as bits, and the contexts that a bit model gives them (section 24 of the spec).
#pragma once

#include <bit>
#include <vector>

#include "container/dense.h"
#include "encode/tile_source.h"
#include "models/bits.h"

namespace l3 {

// The colours that the bits stand for: the samples of a pixel, 16 bits each; the first channel is lowest.
struct BitColours {
  uint64_t of[2];
};

// Whether exactly two colours occur in a source. If so, sets them; the bit 0 is that of the first pixel.
bool find_two_colours(const TileSource& source, BitColours& colours);

// The pixels of a tile, row by row. Bit x % 64 of word x / 64 of a row is the bit of column x.
class BitPlane {
 public:
  // Loads a tile. Returns false if it has another colour.
  [[nodiscard]] bool load(const TileSource& source, uint64_t tile, const BitColours& colours);

  // Clears pixels of a row that are set: bit i of `ones` is column x + i.
  void clear(uint32_t x, uint32_t y, uint64_t ones) {
    uint64_t* const row = words_.data() + size_t{y} * row_words_ + x / 64;
    row[0] &= ~(ones << (x % 64));
    const uint64_t others = ones >> 1 >> (63 - x % 64);
    if (others != 0) row[1] &= ~others;
  }

  uint32_t width() const { return width_; }
  uint32_t height() const { return height_; }
  uint64_t ones() const {
    uint64_t sum = 0;
    for (const uint64_t word : words_) sum += static_cast<uint64_t>(std::popcount(word));
    return sum;
  }
  uint32_t row_words() const { return row_words_; }
  const uint64_t* row(uint32_t y) const { return words_.data() + size_t{y} * row_words_; }

 private:
  uint32_t width_ = 0, height_ = 0, row_words_ = 0;
  std::vector<uint64_t> words_;
};

constexpr uint32_t kBitBlock = 64;      // pixels that are looked at together
constexpr uint32_t kMaxBitPlanes = 16;  // neighbours, and the pixels themselves

// Which neighbours the bits of an index are. Bit 0 of an index is the pixel's own bit, bit i + 1 neighbour of[i].
struct BitPlaces {
  uint32_t count = 0;
  uint8_t of[kMaxBitPlanes - 1];
};

// The number of lanes of a tile that takes about `bits` bits, as a power of two. likely_log_lanes() guesses the bits.
uint32_t bit_log_lanes(uint32_t width, uint32_t height, double bits);
uint32_t likely_log_lanes(uint32_t width, uint32_t height);

// What each lane decodes in each step.
class BitHistory {
 public:
  BitHistory(const BitPlane& plane, uint32_t log_lanes);

  uint32_t lanes() const { return lanes_; }
  uint32_t steps() const { return steps_; }
  // The step in which the first pixel of a row is decoded.
  uint32_t first_step(uint32_t y) const { return y / lanes_ * period_ + 2 * (y % lanes_); }

  // The bits of a lane's pixels in 64 steps, and their neighbours with this number.
  uint64_t own(uint32_t lane, uint32_t step) const {
    return bits(static_cast<int32_t>(lane), static_cast<int32_t>(step));
  }
  uint64_t neighbours(uint32_t lane, uint32_t step, uint32_t q) const {
    return bits(static_cast<int32_t>(lane) - static_cast<int32_t>(q / kBitColumns),
                static_cast<int32_t>(step) - 1 - static_cast<int32_t>(q % kBitColumns));
  }
  // All neighbours of a pixel: neighbour q is bit 15 - q % 16 of 16 bits for each row.
  uint64_t around(uint32_t lane, uint32_t step) const {
    uint64_t all = 0;
    for (uint32_t row = 0; row < kBitRows; ++row) {
      all |= (neighbours(lane, step, row * kBitColumns + kBitColumns - 1) & 0xFFFF) << (16 * row);
    }
    return all;
  }

  // Calls use(lane, step, count, index) for the pixels of each row, at most 64 at once: `count` pixels that a lane
  // decodes from a step on. index(i) is the index of pixel i of them. Where all these pixels and their neighbours are
  // equal, calls use_flat(lane, step, count, index) with one index.
  template <class UseFlat, class Use>
  void for_indices(const BitPlane& plane, const BitPlaces& places, const UseFlat& use_flat, const Use& use) const;

 private:
  // 64 bits of a lane's history, from a step on; both may be below 0.
  uint64_t bits(int32_t lane, int32_t step) const {
    for (; lane < 0; lane += static_cast<int32_t>(lanes_)) step -= static_cast<int32_t>(period_ - 2 * lanes_);
    const uint32_t at = static_cast<uint32_t>(step + static_cast<int32_t>(before_ * 64));
    const uint64_t* const from = words_.data() + static_cast<size_t>(lane) * lane_words_ + at / 64;
    return from[0] >> (at % 64) | from[1] << 1 << (63 - at % 64);
  }

  const uint32_t lanes_, period_, steps_;
  const uint32_t before_;  // words of zeros before the first step
  const uint32_t lane_words_;
  std::vector<uint64_t> words_;
};

// Turns 16 rows of 64 bits: afterwards, bits 16 * k to 16 * k + 15 of row i are column 16 * k + i.
inline void turn_bits(uint64_t* rows) {
  const auto swap = [&](uint32_t distance, uint64_t mask) {
    for (uint32_t first = 0; first < kMaxBitPlanes; first += 2 * distance) {
      for (uint32_t i = first; i < first + distance; ++i) {
        const uint64_t change = (rows[i] >> distance ^ rows[i + distance]) & mask;
        rows[i + distance] ^= change;
        rows[i] ^= change << distance;
      }
    }
  };
  swap(8, 0x00FF00FF00FF00FF);
  swap(4, 0x0F0F0F0F0F0F0F0F);
  swap(2, 0x3333333333333333);
  swap(1, 0x5555555555555555);
}

template <class UseFlat, class Use>
void BitHistory::for_indices(const BitPlane& plane, const BitPlaces& places, const UseFlat& use_flat,
                             const Use& use) const {
  uint64_t rows[kMaxBitPlanes];
  for (uint32_t y = 0; y < plane.height(); ++y) {
    for (uint32_t x = 0; x < plane.width(); x += kBitBlock) {
      const uint32_t lane = y % lanes_, step = first_step(y) + x, count = smaller(kBitBlock, plane.width() - x);
      const uint64_t all = ~uint64_t{0} >> (64 - count);
      rows[0] = own(lane, step);
      uint64_t any = rows[0], every = rows[0];
      for (uint32_t i = 0; i < places.count; ++i) {
        rows[i + 1] = neighbours(lane, step, places.of[i]);
        any |= rows[i + 1];
        every &= rows[i + 1];
      }
      if ((any & all) == 0 || (every & all) == all) {
        use_flat(lane, step, count, (any & all) == 0 ? 0 : (2u << places.count) - 1);
        continue;
      }
      for (uint32_t i = places.count + 1; i < kMaxBitPlanes; ++i) rows[i] = 0;
      turn_bits(rows);
      use(lane, step, count, [&](uint32_t i) { return static_cast<uint32_t>(rows[i % 16] >> (i / 16 * 16)) & 0xFFFF; });
    }
  }
}

}  // namespace l3
