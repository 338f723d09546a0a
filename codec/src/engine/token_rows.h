// Writes the pixels of tiles with a token model: maps values to samples.
#pragma once

#include <cstring>
#include <type_traits>

#include "engine/skewed_rows.h"
#include "engine/token_warp.h"

namespace l3 {

template <class W, uint32_t kChannels, class Value>
class TokenRows : public SkewedRows<TokenRows<W, kChannels, Value>, W,
                                    std::conditional_t<kPixelsAreWords<kChannels, Value>, uint32_t, Value>,
                                    kPixelsAreWords<kChannels, Value> ? 1 : kChannels> {
  static constexpr bool kAreWords = kPixelsAreWords<kChannels, Value>, kHasTable = kChannels == 1 && sizeof(Value) == 2;
  static constexpr uint32_t kTableBits = kChannels > 1 ? 0 : sizeof(Value) == 1 ? 8 : 12;  // stack is scarce
  using Number = std::conditional_t<kAreWords, uint32_t, Value>;
  using Base = SkewedRows<TokenRows, W, Number, kAreWords ? 1 : kChannels>;

 public:
  L3_INLINE TokenRows(const TileOutput& out, const TokenTables& tables)
      : SkewedRows < TokenRows,
  W, Number, kAreWords ? 1 : kChannels > (out), tables_(tables) {
    is_plain_ = tables.channels == 1 && tables.bits <= 8 && tables.listing == Listing::none && out.colours == nullptr;
    if (tables.depth[0] > 8 || kChannels > 1) return;
    are_bytes_ = true;
    if (out.colours != nullptr || (tables.listing == Listing::colours && tables.channels > 1 && tables.bits <= 8)) {
      list_colours(out.colours != nullptr ? out.colour_bytes : tables.channels);
      return;
    }
    if (tables.channels != 1 || tables.listing == Listing::none) return;
    for (uint32_t v = 0; v < 1u << smaller(tables.depth[0], 6); ++v) {
      low_[v] = static_cast<uint8_t>(tables.sample_of(0, v));
      high_[v] = static_cast<uint8_t>(tables.sample_of(0, v) >> 8);
    }
  }

  L3_INLINE void begin(uint32_t width, uint32_t height, uint32_t lanes) {
    Base::begin(width, height, lanes);
    // A table of colours pays if each is used some times.
    has_table_ = kHasTable && tables_.listing == Listing::colours && tables_.channels > 1 && tables_.bits <= 8 &&
                 tables_.depth[0] <= kTableBits && width * height >= 8u << tables_.depth[0];
    if (!has_table_ || listed_channels_ != 0) return;  // perhaps list_colours() has filled it
    for (uint32_t v = 0; v < 1u << tables_.depth[0]; ++v) {
      colours_[v] =
          word_of<4>([&](uint32_t c) -> uint32_t { return c < tables_.channels ? tables_.sample_of(c, v) : 0; });
    }
  }

  L3_INLINE void store(uint8_t* row, uint32_t at, uint32_t count, uint32_t lane, uint32_t step) const {
    if constexpr (kChannels == 1 && sizeof(Value) == 1) {
      store_bytes(row, at, count, this->numbers(0, lane, step));
    } else if constexpr (kChannels == 1) {
      store_words(row, at, count, this->numbers(0, lane, step));
    } else if (tables_.bits > 8) {
      put_samples(reinterpret_cast<uint16_t*>(row) + size_t{at} * tables_.channels, count, lane, step);
    } else {
      put_samples(row + size_t{at} * stored_channels(), count, lane, step);
    }
  }
  // Puts pixels of a row from the first column on that is requested.
  L3_INLINE void store_numbers(uint8_t* row, uint32_t count, const uint16_t* numbers) const {
    if (is_plain_) return put_gray(row, count, numbers);
    constexpr uint32_t kRun = TokenRows::kMostSteps;  // there is room for so many pixels
    const bool are_words = !are_bytes_ || (listed_channels_ == 0 && tables_.listing == Listing::none);
    for (uint32_t at = 0; at < count; at += kRun) {
      const uint32_t run = smaller(kRun, count - at);
      if (are_words) {
        store_words(row, at, run, numbers + at);
        continue;
      }
      alignas(64) uint8_t bytes[kRun];
      for (uint32_t i = 0; i < run; ++i) bytes[i] = static_cast<uint8_t>(numbers[at + i]);
      store_bytes(row, at, run, bytes);
    }
  }

 private:
  // How many samples of a pixel are stored.
  L3_INLINE uint32_t stored_channels() const { return tables_.channels + uint32_t{this->out_.has_fourth}; }

  // Stores pixels of one engine channel.
  L3_INLINE void store_words(uint8_t* row, uint32_t at, uint32_t count, const uint16_t* values) const {
    const TileOutput& out = this->out_;
    if (out.colours != nullptr) {
      row += size_t{at} * out.colour_bytes;
      for (uint32_t i = 0; i < count; ++i, row += out.colour_bytes) {
        const uint32_t index = tables_.sample_of(0, value_of(values[i]));
        for (uint32_t c = 0; c < out.colour_bytes; ++c) row[c] = out.colours[4 * (index & 0xFF) + c];
      }
    } else if (tables_.bits > 8) {
      put_one(reinterpret_cast<uint16_t*>(row) + size_t{at} * tables_.channels, count, values);
    } else {
      put_one(row + size_t{at} * stored_channels(), count, values);
    }
  }
  // The same of values that are bytes.
  L3_INLINE void store_bytes(uint8_t* row, uint32_t at, uint32_t count, const uint8_t* values) const {
    if (listed_channels_ == 4) {
      put_listed<4>(row + size_t{at} * 4, count, values);
    } else if (listed_channels_ == 3) {
      put_listed<3>(row + size_t{at} * 3, count, values);
    } else if (listed_channels_ == 2) {
      put_listed<2>(row + size_t{at} * 2, count, values);
    } else if (tables_.bits <= 8) {
      put_gray(row + at, count, values);
    } else {
      put_one(reinterpret_cast<uint16_t*>(row) + size_t{at} * tables_.channels, count, values);
    }
  }
  template <class Sample>
  L3_INLINE void put_samples(Sample* to, uint32_t count, uint32_t lane, uint32_t step) const {
    const uint32_t channels = tables_.channels;
    if constexpr (kAreWords && sizeof(Sample) == 1) {
      if (tables_.listing == Listing::none) {
        const uint32_t* const pixels = this->numbers(0, lane, step);
        if constexpr (kChannels == 3) {
          if (this->out_.has_fourth) return this->template store_with_fourth<W>(to, pixels, count);
        }
        if (channels == kChannels) return W::template store_pixels<kChannels>(to, pixels, count);
        return W::template store_pixels<2>(to, pixels, count);
      }
    }
    const uint32_t stride = stored_channels();
    if (stride > channels) {
      for (uint32_t i = 0; i < count; ++i) to[size_t{i} * stride + channels] = this->out_.fourth;
    }
    if (tables_.listing == Listing::none) {
      for (uint32_t c = 0; c < channels; ++c) {
        put_mapped(to + c, stride, count, c, lane, step, [](uint32_t v) { return v; });
      }
    } else {
      for (uint32_t c = 0; c < channels; ++c) {
        const uint32_t listed = tables_.value_count[c];
        const uint16_t* const list = tables_.values + tables_.first_value[c];
        put_mapped(to + c, stride, count, c, lane, step, [=](uint32_t v) { return v < listed ? list[v] : 0; });
      }
    }
  }
  // Puts the samples of one engine channel.
  template <class Sample, class V>
  L3_INLINE void put_one(Sample* to, uint32_t count, const V* numbers) const {
    if (tables_.channels == 1) {
      put_gray(to, count, numbers);
    } else if (tables_.channels == 4) {
      put_colours<4>(to, count, numbers);
    } else if (tables_.channels == 3) {
      put_colours<3>(to, count, numbers);
    } else {
      put_colours<2>(to, count, numbers);
    }
  }
  // Puts the samples of an image of one channel. A list has a sample for every value that a pixel may have.
  template <class Sample, class V>
  L3_INLINE void put_gray(Sample* to, uint32_t count, const V* numbers) const {
    if (tables_.listing == Listing::none) {
      put_vectors(to, count, numbers, [](typename W::Records v) { return v; });
      return;
    }
    if constexpr (sizeof(V) == 1) {
      if (put_short(to, count, numbers)) return;
    }
    for (uint32_t i = 0; i < count; ++i) to[i] = static_cast<Sample>(tables_.values[value_of(numbers[i])]);
  }
  // The same for lists of at most 64 values. Returns false if there are more.
  template <class Sample>
  L3_INLINE bool put_short(Sample* to, uint32_t count, const uint8_t* values) const {
    using Records = typename W::Records;
    const uint32_t depth = tables_.depth[0];
    if (depth > 6) return false;
    if (depth > 4) {
      put_vectors(
          to, count, values, [&](Records v) __attribute__((always_inline)) {
            return both<Sample>(W::look_up_64(low_, v), [&] { return W::look_up_64(high_, v); });
          });
    } else if constexpr (sizeof(Sample) == 1) {
      W::look_up_bytes(low_, values, count, to);
    } else {
      put_vectors(
          to, count, values, [&](Records v) __attribute__((always_inline)) {
            return both<Sample>(W::look_up_16(low_, v), [&] { return W::look_up_16(high_, v); });
          });
    }
    return true;
  }
  template <class Sample, class High>
  L3_INLINE static typename W::Records both(typename W::Records low, const High& high) {
    if constexpr (sizeof(Sample) == 1) return low;
    return W::either(low, high() << 8);
  }
  L3_INLINE static uint32_t value_of(uint16_t number) { return number ^ kValueBias; }
  L3_INLINE static uint32_t value_of(uint8_t number) { return number; }
  L3_INLINE static typename W::Records load_values(const uint16_t* numbers) {
    return W::flipped(W::load_records(numbers));
  }
  L3_INLINE static typename W::Records load_values(const uint8_t* numbers) { return W::load_bytes(numbers); }
  // Puts what a function makes of a vector of values. The last vector may overlap with the one before.
  template <class Sample, class V, class F>
  L3_INLINE void put_vectors(Sample* to, uint32_t count, const V* numbers, const F& map) const {
    if (count < W::kRecords) {
      Sample few[W::kRecords];
      V padded[W::kRecords] = {};
      std::memcpy(padded, numbers, sizeof(V) * count);
      W::store_samples(few, map(load_values(padded)));
      std::memcpy(to, few, sizeof(Sample) * count);
      return;
    }
    const auto put = [&](uint32_t i) __attribute__((always_inline)) {
      W::store_samples(to + i, map(load_values(numbers + i)));
    };
    for (uint32_t i = 0; i + W::kRecords < count; i += W::kRecords) put(i);
    put(count - W::kRecords);
  }
  // Lists the colour of each value, a byte for each channel.
  void list_colours(uint32_t channels) {
    const TileOutput& out = this->out_;
    listed_channels_ = channels + uint32_t{out.has_fourth};
    for (uint32_t v = 0; v < 1u << tables_.depth[0]; ++v) {
      const uint32_t index = tables_.sample_of(0, v) & 0xFF;
      colours_[v] = word_of<4>([&](uint32_t c) -> uint32_t {
        if (c >= channels) return c == channels && out.has_fourth ? out.fourth : 0;
        return out.colours != nullptr ? out.colours[4 * index + c] : tables_.sample_of(c, v);
      });
    }
  }
  template <uint32_t kCount>
  L3_INLINE void put_listed(uint8_t* to, uint32_t count, const uint8_t* values) const {
    uint32_t words[TokenRows::kMostSteps];
    for (uint32_t i = 0; i < count; ++i) words[i] = colours_[values[i]];
    W::template store_pixels<kCount>(to, words, count);
  }
  // Puts the colours that a model lists, of a known number of channels.
  template <uint32_t kCount, class Sample, class V>
  L3_INLINE void put_colours(Sample* to, uint32_t count, const V* numbers) const {
    static constexpr uint16_t kNone[kCount] = {};
    const uint32_t listed = tables_.value_count[0];
    const auto colour_of = [&](uint32_t i) __attribute__((always_inline)) {
      const uint32_t v = value_of(numbers[i]);
      return v < listed ? tables_.values + size_t{v} * kCount : kNone;
    };
    if constexpr (sizeof(Sample) == 1) {
      uint32_t words[TokenRows::kMostSteps];
      if (has_table_) {
        for (uint32_t i = 0; i < count; ++i) words[i] = colours_[value_of(numbers[i])];
      } else {
        for (uint32_t i = 0; i < count; ++i) {
          words[i] = word_of<kCount>([c = colour_of(i)](uint32_t k) { return c[k]; });
        }
      }
      if constexpr (kCount == 3) {
        if (this->out_.has_fourth) return this->template store_with_fourth<W>(to, words, count);
      }
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
  // Puts what a function makes of a channel's values to every `stride`-th place.
  template <class Sample, class F>
  L3_INLINE void put_mapped(Sample* to, uint32_t stride, uint32_t count, uint32_t channel, uint32_t lane, uint32_t step,
                            const F& map) const {
    const Number* const numbers = this->numbers(kAreWords ? 0 : channel, lane, step);
    for (uint32_t i = 0; i < count; ++i, to += stride) {
      *to = static_cast<Sample>(map(kAreWords ? numbers[i] >> (8 * channel) & 0xFF : numbers[i] ^ kValueBias));
    }
  }

  const TokenTables& tables_;
  bool are_bytes_ = false;                            // whether values of one channel are below 256
  bool is_plain_ = false;                             // whether samples are values of 8 bits
  bool has_table_ = false;                            // whether colours_ is used for values of 16 bits
  uint32_t listed_channels_ = 0;                      // of colours_ for values that are bytes, or 0
  alignas(64) uint8_t low_[64] = {}, high_[64] = {};  // the bytes of each value's sample, of at most 64 values
  uint32_t colours_[1u << kTableBits];                // the pixel of each value
};

}  // namespace l3
