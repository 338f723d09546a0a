// Writes the pixels of tiles with a model of kind 0.
#pragma once

#include "engine/skewed_rows.h"

namespace l3 {

template <class W, uint32_t kChannels>
class DenseRows : public SkewedRows<DenseRows<W, kChannels>, W, uint32_t, 1> {
 public:
  using Base = SkewedRows<DenseRows, W, uint32_t, 1>;
  using typename Base::Lanes;

  L3_INLINE explicit DenseRows(const TileOutput& out)
      : Base(out), pixel_bytes_(out.colours != nullptr ? out.colour_bytes : kChannels + out.has_fourth) {}

  L3_INLINE void put(uint32_t step, uint32_t part, Lanes pixels) {
    W::store(this->place(step) + part * W::kPartLanes, pixels);
  }
  L3_INLINE void end_step(uint32_t step) {
    Base::end_step(step);
    this->fetch(step + 1, pixel_bytes_);
  }

  L3_INLINE void store(uint8_t* row, uint32_t at, uint32_t count, uint32_t lane, uint32_t step) const {
    const uint32_t* const pixels = this->numbers(0, lane, step);
    const TileOutput& out = this->out_;
    if constexpr (kChannels == 1) {
      if (out.colours != nullptr) {
        uint32_t words[Base::kMostSteps];
        for (uint32_t i = 0; i < count; ++i) words[i] = load_u32(out.colours + 4 * (pixels[i] & 0xFF));
        row += size_t{at} * out.colour_bytes;
        if (out.colour_bytes == 4) return W::template store_pixels<4>(row, words, count);
        if (out.colour_bytes == 3) return W::template store_pixels<3>(row, words, count);
        return W::template store_pixels<2>(row, words, count);
      }
    }
    if constexpr (kChannels == 3) {
      if (out.has_fourth) return this->template store_with_fourth<W>(row + size_t{at} * 4, pixels, count);
    }
    W::template store_pixels<kChannels>(row + size_t{at} * kChannels, pixels, count);
  }

 private:
  const uint32_t pixel_bytes_;
};

}  // namespace l3
