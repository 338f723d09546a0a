// Writes the pixels of tiles with a token model: maps values to samples.
#pragma once

#include <cstring>

#include "engine/skewed_rows.h"
#include "models/token.h"

namespace l3 {

template <class W, uint32_t kChannels>
class TokenRows : public SkewedRows<TokenRows<W, kChannels>, W, uint16_t, kChannels> {
 public:
  L3_INLINE TokenRows(const TileOutput& out, const TokenTables& tables)
      : SkewedRows<TokenRows, W, uint16_t, kChannels>(out), tables_(tables) {
    if (tables.depth[0] > 8 || kChannels > 1) return;
    if (out.colours != nullptr || (tables.listing == Listing::colours && tables.channels > 1 && tables.bits <= 8)) {
      list_colours(out.colours != nullptr ? out.colour_bytes : tables.channels);
      return;
    }
    if (tables.channels != 1) return;
    is_short_ = true;
    const uint32_t count = 1u << tables.depth[0];
    for (uint32_t v = 0; v < count; ++v) {
      low_[v] = static_cast<uint8_t>(tables.sample_of(0, v));
      high_[v] = static_cast<uint8_t>(tables.sample_of(0, v) >> 8);
    }
  }

  L3_INLINE void store(uint8_t* row, uint32_t at, uint32_t count, uint32_t lane, uint32_t step) const {
    const TileOutput& out = this->out_;
    if (kChannels == 1 && listed_channels_ != 0) {
      if (listed_channels_ == 4) return put_listed<4>(row + size_t{at} * 4, count, this->numbers(0, lane, step));
      if (listed_channels_ == 3) return put_listed<3>(row + size_t{at} * 3, count, this->numbers(0, lane, step));
      return put_listed<2>(row + size_t{at} * 2, count, this->numbers(0, lane, step));
    }
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
    return *this->numbers(channel, lane, step) ^ kValueBias;
  }

  template <class Sample>
  L3_INLINE void put_samples(Sample* to, uint32_t count, uint32_t lane, uint32_t step) const {
    const uint32_t channels = tables_.channels;
    if constexpr (kChannels > 3 && sizeof(Sample) == 1) {
      if (tables_.listing == Listing::none && channels == 4) return put_bytes<4>(to, count, lane, step);
      if (tables_.listing == Listing::none && channels == 3) return put_bytes<3>(to, count, lane, step);
    }
    if (kChannels == 1 && channels == 1) {
      put_gray(to, count, this->numbers(0, lane, step));
    } else if (tables_.listing == Listing::none) {
      for (uint32_t c = 0; c < channels; ++c) {
        put_mapped(to + c, channels, count, c, lane, step, [](uint32_t v) { return v; });
      }
    } else if (tables_.listing == Listing::colours) {
      if (channels == 4) {
        put_colours<4>(to, count, this->numbers(0, lane, step));
      } else if (channels == 3) {
        put_colours<3>(to, count, this->numbers(0, lane, step));
      } else {
        put_colours<2>(to, count, this->numbers(0, lane, step));
      }
    } else {
      for (uint32_t c = 0; c < channels; ++c) {
        const uint32_t listed = tables_.value_count[c];
        const uint16_t* const list = tables_.values + tables_.first_value[c];
        put_mapped(to + c, channels, count, c, lane, step, [=](uint32_t v) { return v < listed ? list[v] : 0; });
      }
    }
  }
  // Puts the samples of an image of one channel. A list has a sample for every value that a pixel may have.
  template <class Sample>
  L3_INLINE void put_gray(Sample* to, uint32_t count, const uint16_t* numbers) const {
    const uint32_t depth = tables_.depth[0];
    if (tables_.listing == Listing::none) {
      put_vectors(to, count, numbers, [](typename W::Records v) { return v; });
    } else if (depth <= 4) {
      put_vectors(
          to, count, numbers, [&](typename W::Records v) __attribute__((always_inline)) {
            return both<Sample>(W::look_up_16(low_, v), [&] { return W::look_up_16(high_, v); });
          });
    } else if (depth <= 6) {
      put_vectors(
          to, count, numbers, [&](typename W::Records v) __attribute__((always_inline)) {
            return both<Sample>(W::look_up_64(low_, v), [&] { return W::look_up_64(high_, v); });
          });
    } else if (sizeof(Sample) == 1 && is_short_) {
      put_four(to, count, numbers, [&](uint32_t v) { return low_[v & 0xFF]; });
    } else {
      put_four(to, count, numbers, [&](uint32_t v) { return tables_.values[v]; });
    }
  }
  template <class Sample, class High>
  L3_INLINE static typename W::Records both(typename W::Records low, const High& high) {
    if constexpr (sizeof(Sample) == 1) return low;
    return W::either(low, high() << 8);
  }
  // Puts what a function makes of a vector of values.
  template <class Sample, class F>
  L3_INLINE void put_vectors(Sample* to, uint32_t count, const uint16_t* numbers, const F& map) const {
    for (; count >= W::kRecords; count -= W::kRecords, numbers += W::kRecords, to += W::kRecords) {
      W::store_samples(to, map(W::flipped(W::load_records(numbers))));
    }
    if (count == 0) return;
    Sample rest[W::kRecords];
    uint16_t padded[W::kRecords] = {};
    std::memcpy(padded, numbers, sizeof(uint16_t) * count);
    W::store_samples(rest, map(W::flipped(W::load_records(padded))));
    std::memcpy(to, rest, sizeof(Sample) * count);
  }
  // Puts the values of a known number of channels. The bias does not change their lower eight bits.
  template <uint32_t kCount, class Sample>
  L3_INLINE void put_bytes(Sample* __restrict to, uint32_t count, uint32_t lane, uint32_t step) const {
    uint32_t words[TokenRows::kMostSteps];
    const uint16_t* numbers[kCount];
    for (uint32_t c = 0; c < kCount; ++c) numbers[c] = this->numbers(c, lane, step);
    for (uint32_t i = 0; i < count; ++i) words[i] = word_of<kCount>([&](uint32_t c) { return numbers[c][i]; });
    W::template store_pixels<kCount>(to, words, count);
  }
  // Lists the colour of each value, a byte for each channel.
  void list_colours(uint32_t channels) {
    const TileOutput& out = this->out_;
    listed_channels_ = channels;
    for (uint32_t v = 0; v < 1u << tables_.depth[0]; ++v) {
      const uint32_t index = tables_.sample_of(0, v) & 0xFF;
      colours_[v] = word_of<4>([&](uint32_t c) -> uint32_t {
        if (c >= channels) return 0;
        return out.colours != nullptr ? out.colours[4 * index + c] : tables_.sample_of(c, v);
      });
    }
  }
  template <uint32_t kCount>
  L3_INLINE void put_listed(uint8_t* to, uint32_t count, const uint16_t* numbers) const {
    uint32_t words[TokenRows::kMostSteps];
    for (uint32_t i = 0; i < count; ++i) words[i] = colours_[numbers[i] & 0xFF];  // without the bias
    W::template store_pixels<kCount>(to, words, count);
  }
  // Puts the colours that a model lists, of a known number of channels.
  template <uint32_t kCount, class Sample>
  L3_INLINE void put_colours(Sample* to, uint32_t count, const uint16_t* numbers) const {
    static constexpr uint16_t kNone[kCount] = {};
    const uint32_t listed = tables_.value_count[0];
    const auto colour_of = [&](uint32_t i) __attribute__((always_inline)) {
      const uint32_t v = numbers[i] ^ kValueBias;
      return v < listed ? tables_.values + size_t{v} * kCount : kNone;
    };
    if constexpr (sizeof(Sample) == 1) {
      uint32_t words[TokenRows::kMostSteps];
      for (uint32_t i = 0; i < count; ++i) words[i] = word_of<kCount>([c = colour_of(i)](uint32_t k) { return c[k]; });
      W::template store_pixels<kCount>(to, words, count);
    } else {
      for (uint32_t i = 0; i < count; ++i, to += kCount) std::memcpy(to, colour_of(i), sizeof(kNone));
    }
  }
  // A pixel of kCount bytes from a function of the channel. What is above a byte does not count.
  template <uint32_t kCount, class F>
  L3_INLINE static uint32_t word_of(const F& byte) {
    uint32_t word = 0;
    for (uint32_t c = 0; c < kCount; ++c) word |= uint32_t{static_cast<uint8_t>(byte(c))} << (8 * c);
    return word;
  }
  // Puts what a function makes of each value, four at a time.
  template <class Sample, class F>
  L3_INLINE void put_four(Sample* to, uint32_t count, const uint16_t* numbers, const F& map) const {
    for (; count >= 4; count -= 4, numbers += 4, to += 4) {
      uint64_t four;
      std::memcpy(&four, numbers, 8);
      four ^= uint64_t{kValueBias} * 0x0001000100010001;
      const auto put = [&](uint32_t i) __attribute__((always_inline)) {
        const uint32_t shift = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 16 * i : 48 - 16 * i;
        to[i] = static_cast<Sample>(map(four >> shift & 0xFFFF));
      };
      put(0);
      put(1);
      put(2);
      put(3);
    }
    for (; count > 0; --count) *to++ = static_cast<Sample>(map(*numbers++ ^ kValueBias));
  }
  // Puts what a function makes of a channel's values to every `stride`-th place.
  template <class Sample, class F>
  L3_INLINE void put_mapped(Sample* to, uint32_t stride, uint32_t count, uint32_t channel, uint32_t lane, uint32_t step,
                            const F& map) const {
    const uint16_t* const numbers = this->numbers(channel, lane, step);
    for (uint32_t i = 0; i < count; ++i, to += stride) *to = static_cast<Sample>(map(numbers[i] ^ kValueBias));
  }

  const TokenTables& tables_;
  bool is_short_ = false;                               // whether low_ and high_ are used
  uint32_t listed_channels_ = 0;                        // of colours_, or 0 if it is not used
  alignas(64) uint8_t low_[256] = {}, high_[256] = {};  // the bytes of each value's sample
  uint32_t colours_[kChannels == 1 ? 256 : 1];          // the pixel of each value; stack is scarce
};

}  // namespace l3
