// Models of the dense method that no encoder would make: predictors, rows and tables at random, all of it valid.
// Follows section 12 of spec/format.md, not codec/.
#pragma once

#include <cstdlib>

#include "by_hand.h"

namespace by_hand {

// The parts of a model: what a channel or a table says, as a bit string.
class ModelMaker {
 public:
  // `symbols` of every table have a frequency, or all where a model must be able to code anything.
  ModelMaker(Dice& dice, uint32_t channels, bool codes_all) : dice_(dice), channels_(channels), codes_all_(codes_all) {}

  Bytes make() {
    tables_ = dice_.chance(4) ? 24 : 1 + dice_.roll(6);
    for (uint32_t c = 0; c < channels_; ++c) {
      classes_[c] = dice_.chance(4) ? 1 : dice_.chance(6) ? 32 : 1 + dice_.roll(6);
    }
    std::vector<Bytes> parts;
    for (uint32_t c = 0; c < channels_; ++c) parts.push_back(channel(c));
    for (uint32_t t = 0; t < tables_; ++t) parts.push_back(table(codes_all_ ? 255 : 1 + dice_.roll(255)));
    for (uint32_t c = 0; c < channels_; ++c) {
      for (uint32_t t = 0; t < class_tables_[c]; ++t) parts.push_back(table(classes_[c] - 1));
    }
    const size_t class_tables = parts.size() - channels_ - tables_;
    Bytes model(8 + 2 * parts.size());
    model[1] = static_cast<uint8_t>(channels_);
    model[2] = static_cast<uint8_t>(tables_);
    model[3] = static_cast<uint8_t>(class_tables);
    for (uint32_t c = 0; c < channels_; ++c) model[4 + c] = static_cast<uint8_t>(classes_[c]);
    for (size_t i = 0; i < parts.size(); ++i) {
      put(&model[8 + 2 * i], 2, model.size());
      model.insert(model.end(), parts[i].begin(), parts[i].end());
    }
    return model;
  }

 private:
  struct Tap {
    uint32_t bits = 0;
    int least = 0;
    std::vector<int> weights;  // of each class
  };

  bool is_coded(uint32_t channel, uint32_t tap) const {
    const uint32_t looks_at = std::min(channel, 2u);
    if (tap == 0 || tap == 16 || tap == 20) return false;
    if (tap == 14 || tap == 15) return tap - 14 < looks_at;
    return tap < 16 + 4 * looks_at;
  }

  Tap any_tap(uint32_t classes, bool wide) {
    Tap tap;
    tap.bits = dice_.roll(wide ? 9 : 5);
    tap.least = wide ? static_cast<int>(dice_.roll(256)) - 128 : static_cast<int>(dice_.roll(30)) - 15;
    for (uint32_t k = 0; k < classes; ++k) {
      const uint32_t room = static_cast<uint32_t>(std::min(128 - tap.least, 1 << tap.bits));
      tap.weights.push_back(tap.least + static_cast<int>(dice_.roll(room)));
    }
    return tap;
  }

  // Whether the first weight of `count` taps can be written, in each class: it follows from the others, which make
  // `total` with it.
  static bool is_within(const std::array<Tap, 24>& taps, uint32_t first, uint32_t count, int total) {
    for (size_t k = 0; k < taps[1].weights.size(); ++k) {
      int weight = total;
      for (uint32_t i = 1; i < count; ++i) {
        if (!taps[first + i].weights.empty()) weight -= taps[first + i].weights[k];
      }
      if (weight < -128 || weight > 127) return false;
    }
    return true;
  }

  Bytes channel(uint32_t c) {
    BitString bits;
    put_weights(bits, c);
    const uint32_t terms = 9 + std::min(c, 2u);
    // They may add up to 1000.
    const uint32_t most = dice_.chance(3) ? 87 : 1 + dice_.roll(40), largest = dice_.roll(2 * terms);
    for (uint32_t i = 0; i < terms; ++i) bits.put(i == largest ? 127 : dice_.roll(1 + most), 7);
    put_rows(bits);
    class_tables_[c] = 0;
    if (classes_[c] > 1) {
      class_tables_[c] = 1 + dice_.roll(c == 0 ? 2 : 8);
      bits.put(class_tables_[c] - 1, 3);
      for (uint32_t k = 0; class_tables_[c] > 1 && k < (c == 0 ? 1 : classes_[c - 1]); ++k) {
        bits.put(dice_.roll(class_tables_[c]), 3);
      }
    }
    return bits.bytes();
  }

  void put_weights(BitString& bits, uint32_t c) {
    std::array<Tap, 24> taps;
    const bool wide = dice_.chance(4);
    for (uint32_t tap = 0; tap < 24; ++tap) {
      if (is_coded(c, tap)) taps[tap] = any_tap(classes_[c], wide);
    }
    const auto settle = [&](uint32_t first, uint32_t count, int total) {
      for (int tries = 0; !is_within(taps, first, count, total); ++tries) {
        for (uint32_t tap = first; tap < first + count; ++tap) {
          if (is_coded(c, tap)) taps[tap] = any_tap(classes_[c], wide && tries < 20);
        }
      }
    };
    settle(0, 8, 64);
    if (c > 0) settle(16, 4, 0);
    if (c > 1) settle(20, 4, 0);
    for (uint32_t tap = 0; tap < 24; ++tap) {
      if (!is_coded(c, tap)) continue;
      bits.put(taps[tap].bits, 4);
      bits.put(static_cast<uint32_t>(taps[tap].least) & 0xFF, 8);
    }
    for (uint32_t tap = 0; tap < 24; ++tap) {
      if (!is_coded(c, tap)) continue;
      for (const int weight : taps[tap].weights)
        bits.put(static_cast<uint32_t>(weight - taps[tap].least), taps[tap].bits);
    }
  }

  void put_rows(BitString& bits) {
    uint32_t zones = 1, signs = 1;
    const bool grouped = !dice_.chance(3);
    bits.put(grouped, 1);
    if (grouped) {
      const uint32_t most_zones = 1 + dice_.roll(4), most_signs = 1 + dice_.roll(8);
      for (uint32_t i = 0; i < 16; ++i) zones = std::max(zones, put_below(bits, most_zones, 2) + 1);
      for (uint32_t i = 0; i < 64; ++i) signs = std::max(signs, put_below(bits, most_signs, 3) + 1);
    }
    for (uint32_t row = 0; row < zones * signs; ++row) {
      const uint32_t last = put_below(bits, 64, 6);
      uint32_t table = put_below(bits, tables_, 5);
      for (uint32_t level = 1; level <= last; ++level) {
        const uint32_t die = dice_.roll(table + 1 < tables_ ? 3 : 2);
        if (die == 0) {
          bits.put(0, 1);
        } else if (die == 1) {
          bits.put(3, 2);
          table = put_below(bits, tables_, 5);
        } else {
          bits.put(1, 2);
          ++table;
        }
      }
    }
  }
  uint32_t put_below(BitString& bits, uint32_t most, uint32_t width) {
    const uint32_t value = dice_.roll(most);
    bits.put(value, width);
    return value;
  }

  // A frequency that can be written: four leading bits, then zeros.
  static uint32_t cut(uint32_t frequency) {
    uint32_t step = 1;
    while (frequency / step >= 16) step *= 2;
    return frequency / step * step;
  }

  Bytes table(uint32_t last) {
    // Every symbol gets one slot, or some none; what is left goes to a few of them, and what then is left to R.
    const uint32_t rest = dice_.roll(std::min(last, 31u) + 1);
    std::vector<uint32_t> frequencies(last + 1, 1);
    if (!codes_all_) {
      for (uint32_t i = 0; i < last; ++i) frequencies[i] = dice_.roll(2);
    }
    if (rest == last) frequencies[0] = 1;  // beside R there must be one
    frequencies[rest] = 0;
    uint32_t left = 4095;
    for (const uint32_t f : frequencies) left -= f;
    for (uint32_t gifts = dice_.roll(12); gifts > 0; --gifts) {
      const uint32_t i = dice_.roll(last + 1);
      if (i == rest) continue;
      const uint32_t more = cut(frequencies[i] + dice_.roll(left + 1)) - frequencies[i];
      frequencies[i] += more;
      left -= more;
    }
    BitString bits;
    const uint32_t mode = dice_.roll(3);
    bits.put(last, 8);
    bits.put(rest, 5);
    bits.put(mode, 2);
    uint32_t before = 9, before_that = 9;
    for (uint32_t i = 0; i <= last; ++i) {
      if (i == rest) continue;
      uint32_t n = 0;
      while (frequencies[i] >> n != 0) ++n;
      const uint32_t expected = mode == 0 ? before : mode == 1 ? before_that : (before + before_that + 1) / 2;
      const uint32_t magnitude = n > expected ? n - expected : expected - n;
      bits.put((1u << magnitude) - 1, magnitude + 1);
      if (magnitude != 0) bits.put(n < expected, 1);
      if (n > 1) {
        const uint32_t t = std::min(n - 1, 3u);
        bits.put((frequencies[i] >> (n - 1 - t)) - (1u << t), t);
      }
      before_that = before;
      before = n;
    }
    return bits.bytes();
  }

  Dice& dice_;
  const uint32_t channels_;
  const bool codes_all_;
  uint32_t tables_ = 1;
  uint32_t classes_[4] = {}, class_tables_[4] = {};
};

// A valid model. Where it codes all, there is a code for every sample and every class.
inline Bytes any_model(Dice& dice, uint32_t channels, bool codes_all = true) {
  return ModelMaker(dice, channels, codes_all).make();
}

}  // namespace by_hand
