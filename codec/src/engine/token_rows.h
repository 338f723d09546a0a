// Writes the pixels of tiles with a token model: maps values to samples.
#pragma once

#include <cstring>

#include "engine/skewed_rows.h"
#include "models/token.h"

namespace l3 {

template <class W, uint32_t kWords>
class TokenRows : public SkewedRows<TokenRows<W, kWords>, W, kWords> {
 public:
  L3_INLINE TokenRows(const TileOutput& out, const TokenTables& tables)
      : SkewedRows<TokenRows, W, kWords>(out), tables_(tables) {
    has_bytes_ = tables.channels == 1 && tables.bits <= 8 && tables.depth[0] <= 8;
    for (uint32_t v = 0; v < 256 && has_bytes_; ++v) bytes_[v] = static_cast<uint8_t>(tables.sample_of(0, v));
  }

  L3_INLINE void store(uint8_t* row, uint32_t at, uint32_t count, uint32_t lane, uint32_t step) const {
    const TileOutput& out = this->out_;
    if (out.colours != nullptr) {
      row += size_t{at} * out.colour_bytes;
      for (uint32_t i = 0; i < count; ++i, row += out.colour_bytes) {
        const uint32_t index = tables_.sample_of(0, value(0, lane, step + i));
        for (uint32_t c = 0; c < out.colour_bytes; ++c) row[c] = out.colours[4 * (index & 0xFF) + c];
      }
    } else if (tables_.bits > 8) {
      put_samples(reinterpret_cast<uint16_t*>(row) + size_t{at} * tables_.channels, count, lane, step);
    } else {
      put_samples(row + size_t{at} * tables_.channels, count, lane, step);
    }
  }

 private:
  L3_INLINE uint32_t value(uint32_t channel, uint32_t lane, uint32_t step) const {
    return (*this->words(channel / 2, lane, step) >> (16 * (channel % 2)) & 0xFFFF) ^ kValueBias;
  }

  template <class Sample>
  L3_INLINE void put_samples(Sample* to, uint32_t count, uint32_t lane, uint32_t step) const {
    const uint32_t channels = tables_.channels;
    if (has_bytes_) {
      put_mapped(to, constant<1>, count, 0, lane, step, [&](uint32_t v) { return bytes_[v & 0xFF]; });
    } else if (tables_.listing == Listing::none) {
      for (uint32_t c = 0; c < channels; ++c) {
        for (uint32_t i = 0; i < count; ++i) to[i * channels + c] = static_cast<Sample>(value(c, lane, step + i));
      }
    } else if (tables_.listing == Listing::colours) {
      const uint32_t listed = tables_.value_count[0];
      for (uint32_t c = 0; c < channels; ++c) {
        const uint16_t* const list = tables_.values + c;
        put_mapped(to + c, channels, count, 0, lane, step,
                   [=](uint32_t v) { return v < listed ? list[size_t{v} * channels] : 0; });
      }
    } else {
      for (uint32_t c = 0; c < channels; ++c) {
        const uint32_t listed = tables_.value_count[c];
        const uint16_t* const list = tables_.values + tables_.first_value[c];
        const auto sample = [=](uint32_t v) { return v < listed ? list[v] : 0; };
        if (channels == 1) {
          put_mapped(to, constant<1>, count, 0, lane, step, sample);
        } else {
          put_mapped(to + c, channels, count, c, lane, step, sample);
        }
      }
    }
  }
  // Puts what a function makes of a channel's values to every `stride`-th place.
  template <class Sample, class Stride, class F>
  L3_INLINE void put_mapped(Sample* to, Stride stride, uint32_t count, uint32_t channel, uint32_t lane, uint32_t step,
                            const F& map) const {
    const uint32_t* words = this->words(channel / 2, lane, step);
    const uint32_t* const end = words + count;
    const uint32_t shift = 16 * (channel % 2);
    const auto sample = [&](uint32_t i) __attribute__((always_inline)) {
      return static_cast<Sample>(map((words[i] >> shift & 0xFFFF) ^ kValueBias));
    };
    // Reads four before writing any: the compiler must assume that a write may change the next value.
    for (; words + 4 <= end; words += 4, to += step_of(4, stride)) {
      const Sample four[] = {sample(0), sample(1), sample(2), sample(3)};
      for (uint32_t k = 0; k < 4; ++k) to[step_of(k, stride)] = four[k];
    }
    for (; words < end; ++words, to += step_of(1, stride)) *to = sample(0);
  }
  L3_INLINE static size_t step_of(uint32_t count, uint32_t stride) { return size_t{count} * stride; }
  template <uint32_t kStride>
  L3_INLINE static size_t step_of(uint32_t count, Constant<kStride>) {
    return count * kStride;
  }

  const TokenTables& tables_;
  bool has_bytes_;
  uint8_t bytes_[256];  // the sample of each value, if both have at most 8 bits
};

}  // namespace l3
