// Writes the pixels of tiles with a bit model: one of two colours for each bit.
#pragma once

#include <cstring>

#include "engine/skewed_rows.h"
#include "models/bits.h"

namespace l3 {

// Here a lane's number of a step whose number is 15 modulo 16 has its bits of the last 16 steps, the first one on top.
template <class W>
class BitRows : public SkewedRows<BitRows<W>, W, uint16_t, 1> {
  using Base = SkewedRows<BitRows<W>, W, uint16_t, 1>;

 public:
  static constexpr uint32_t kRun = 16;  // steps of a number

  L3_INLINE BitRows(const TileOutput& out, const BitTables& tables) : Base(out) {
    const uint32_t sample_bytes = tables.bits > 8 ? 2 : 1;
    pixel_bytes_ =
        out.colours != nullptr ? out.colour_bytes : tables.channels * sample_bytes + uint32_t{out.has_fourth};
    for (uint32_t bit = 0; bit < 2; ++bit) {
      if (out.colours != nullptr) {
        std::memcpy(colours_[bit], out.colours + 4 * (tables.sample_of(0, bit) & 0xFF), 4);
        continue;
      }
      for (uint32_t c = 0; c < tables.channels; ++c) {
        const uint16_t sample = static_cast<uint16_t>(tables.sample_of(c, bit));
        const uint8_t byte = static_cast<uint8_t>(sample);
        std::memcpy(colours_[bit] + c * sample_bytes, sample_bytes == 1 ? static_cast<const void*>(&byte) : &sample,
                    sample_bytes);
      }
      if (out.has_fourth) colours_[bit][3] = out.fourth;
    }
  }

  void turn() {
    static_assert(Base::kMostSteps == 4 * kRun);
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      uint64_t word = 0;
      for (uint32_t i = 0; i < 4; ++i) word = word << kRun | this->place(kRun * i + kRun - 1)[lane];
      words_[lane] = word;
    }
  }
  // Gives the pixels of a row the second colour where a shape has ones: bit i of them is column x + i. `row` and x may
  // be outside the tile, which has so many columns.
  void put_ones(int32_t row, int32_t x, uint64_t ones, uint32_t width) const {
    const TileOutput& out = this->out_;
    const auto x0 = static_cast<int32_t>(out.x0), end = static_cast<int32_t>(smaller(width, out.x1));
    if (out.pixels == nullptr || row < static_cast<int32_t>(out.y0) || row >= static_cast<int32_t>(out.y1)) return;
    if (x < x0) {
      ones = x0 - x < 64 ? ones >> (x0 - x) : 0;
      x = x0;
    }
    if (x >= end) return;
    ones &= lowest_bits_of_64(static_cast<uint32_t>(end - x));
    uint8_t* const to = out.pixels + (static_cast<uint32_t>(row) - out.y0) * out.stride +
                        size_t{static_cast<uint32_t>(x - x0)} * pixel_bytes_;
    if (pixel_bytes_ == 1) return put_ones_of_bytes(to, static_cast<uint32_t>(end - x), ones);
    for (; ones != 0; ones &= ones - 1) std::memcpy(to + lowest_of_64(ones) * pixel_bytes_, colours_[1], pixel_bytes_);
  }
  L3_INLINE void store(uint8_t* row, uint32_t at, uint32_t count, uint32_t lane, uint32_t step) const {
    const uint64_t bits = words_[lane] << step;  // that of the first pixel is on top
    uint8_t* const to = row + size_t{at} * pixel_bytes_;
    switch (pixel_bytes_) {
      case 1: return put_bytes(to, count, bits);
      case 2: return put<2>(to, count, bits);
      case 3: return put<3>(to, count, bits);
      case 4: return put<4>(to, count, bits);
      case 6: return put<6>(to, count, bits);
      default: return put<8>(to, count, bits);
    }
  }

 private:
  void put_ones_of_bytes(uint8_t* to, uint32_t count, uint64_t ones) const {
    constexpr uint64_t kEach = 0x0101010101010101u;
    const uint64_t colour = colours_[1][0] * kEach;
    for (; count >= 8 && ones != 0; count -= 8, to += 8, ones >>= 8) {
      // A bit of each byte, then all bits of those bytes.
      const uint64_t bits = (ones & 0xFF) * kEach & 0x8040201008040201;
      const uint64_t mask = ((bits + 0x7F * kEach) >> 7 & kEach) * 0xFF;
      store_u64(to, (load_u64(to) & ~mask) | (colour & mask));
    }
    for (; ones != 0; ones &= ones - 1) to[lowest_of_64(ones)] = colours_[1][0];
  }
  // Puts pixels of one byte, eight at once.
  L3_INLINE void put_bytes(uint8_t* to, uint32_t count, uint64_t bits) const {
    constexpr uint64_t kEach = 0x0101010101010101u;
    const uint64_t differ = uint64_t{colours_[0][0]} ^ colours_[1][0], zeros = colours_[0][0] * kEach;
    if constexpr (requires { W::choose_bytes(to, uint32_t{}, uint8_t{}, uint8_t{}); }) {
      for (; count >= 32; count -= 32, to += 32, bits <<= 32) {
        W::choose_bytes(to, static_cast<uint32_t>(bits >> 32), colours_[0][0], colours_[1][0]);
      }
    }
    const auto eight = [&] {
      // The product has the byte eight times, each time one bit further from the byte that it is in.
      const uint64_t spread = (bits >> 56) * 0x8040201008040201u >> 7 & kEach;
      bits <<= 8;
      return spread * differ ^ zeros;
    };
    for (; count >= 8; count -= 8, to += 8) store_u64(to, eight());
    if (count == 0) return;
    uint8_t last[8];
    store_u64(last, eight());
    std::memcpy(to, last, count);
  }
  template <uint32_t kBytes>
  L3_INLINE void put(uint8_t* to, uint32_t count, uint64_t bits) const {
    for (uint32_t i = 0; i < count; ++i, to += kBytes, bits <<= 1) std::memcpy(to, colours_[bits >> 63], kBytes);
  }

  uint32_t pixel_bytes_;
  uint8_t colours_[2][2 * kMaxChannels] = {};
  uint64_t words_[kLanes];
};

}  // namespace l3
