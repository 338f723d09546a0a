// Makes valid models of the dense method that no encoder would make, with random predictors, rows and tables. It
// follows section 12 of spec/format.md, not codec/. any_token_model.h shares some of the functions: each draws
// something, writes it, and returns what it wrote on request.
#pragma once

#include <cstdlib>

#include "by_hand.h"

namespace by_hand {

struct Tap {
  uint32_t bits = 0;
  int minimum = 0;
  std::vector<int> weights;  // of each class; none where the tap is not coded
};
using Taps = std::array<Tap, 24>;

inline bool is_coded(uint32_t channel, uint32_t tap) {
  const uint32_t looks_at = std::min(channel, 2u);
  if (tap == 0 || tap == 16 || tap == 20) return false;
  if (tap == 14 || tap == 15) return tap - 14 < looks_at;
  return tap < 16 + 4 * looks_at;
}

inline Tap any_tap(Dice& dice, uint32_t classes, bool wide) {
  Tap tap;
  tap.bits = dice.roll(wide ? 9 : 5);
  tap.minimum = wide ? static_cast<int>(dice.roll(256)) - 128 : static_cast<int>(dice.roll(30)) - 15;
  for (uint32_t k = 0; k < classes; ++k) {
    const uint32_t room = static_cast<uint32_t>(std::min(128 - tap.minimum, 1 << tap.bits));
    tap.weights.push_back(tap.minimum + static_cast<int>(dice.roll(room)));
  }
  return tap;
}

// The first weight of `count` taps in a class: it follows from the others, which make `total` with it.
inline int first_weight(const Taps& taps, uint32_t first, uint32_t count, int total, size_t of_class) {
  for (uint32_t tap = first + 1; tap < first + count; ++tap) {
    if (!taps[tap].weights.empty()) total -= taps[tap].weights[of_class];
  }
  return total;
}

// Whether it can be written, in each class.
inline bool is_within(const Taps& taps, uint32_t first, uint32_t count, int total) {
  for (size_t k = 0; k < taps[1].weights.size(); ++k) {
    const int weight = first_weight(taps, first, count, total, k);
    if (weight < -128 || weight > 127) return false;
  }
  return true;
}

// Changes the weights of errors until none adds up to more than `most_of_pair` with that of the same sample.
inline void bound_pairs(Taps& taps, int most_of_pair) {
  constexpr uint32_t kPairs[][2] = {{0, 8}, {1, 9}, {2, 10}, {3, 11}, {4, 12}, {5, 13}, {19, 14}, {23, 15}};
  for (const auto& [sample, error] : kPairs) {
    Tap& tap = taps[error];
    bool changed = false;
    for (size_t k = 0; k < tap.weights.size(); ++k) {
      const int beside = sample == 0 ? first_weight(taps, 0, 8, 64, k) : taps[sample].weights[k];
      const int bounded = std::clamp(tap.weights[k], -most_of_pair - beside, most_of_pair - beside);
      changed |= bounded != tap.weights[k];
      tap.weights[k] = bounded;
    }
    if (!changed) continue;
    const auto [least, greatest] = std::minmax_element(tap.weights.begin(), tap.weights.end());
    tap.minimum = *least;
    for (tap.bits = 0; (*greatest - *least) >> tap.bits != 0;) ++tap.bits;
  }
}

inline Taps put_weights(BitString& bits, Dice& dice, uint32_t c, uint32_t classes, int most_of_pair = 128) {
  Taps taps;
  const bool wide = dice.chance(4);
  for (uint32_t tap = 0; tap < 24; ++tap) {
    if (is_coded(c, tap)) taps[tap] = any_tap(dice, classes, wide);
  }
  const auto settle = [&](uint32_t first, uint32_t count, int total) {
    for (int tries = 0; !is_within(taps, first, count, total); ++tries) {
      for (uint32_t tap = first; tap < first + count; ++tap) {
        if (is_coded(c, tap)) taps[tap] = any_tap(dice, classes, wide && tries < 20);
      }
    }
  };
  settle(0, 8, 64);
  if (c > 0) settle(16, 4, 0);
  if (c > 1) settle(20, 4, 0);
  bound_pairs(taps, most_of_pair);
  for (uint32_t tap = 0; tap < 24; ++tap) {
    if (!is_coded(c, tap)) continue;
    bits.put(taps[tap].bits, 4);
    bits.put(static_cast<uint32_t>(taps[tap].minimum) & 0xFF, 8);
  }
  for (uint32_t tap = 0; tap < 24; ++tap) {
    if (!is_coded(c, tap)) continue;
    const Tap& of = taps[tap];
    for (const int weight : of.weights) bits.put(static_cast<uint32_t>(weight - of.minimum), of.bits);
  }
  return taps;
}

inline std::vector<uint32_t> put_activity_weights(BitString& bits, Dice& dice, uint32_t c, uint32_t most = 128) {
  const uint32_t terms = 9 + std::min(c, 2u);
  const uint32_t maximum = dice.chance(3) ? 87 : 1 + dice.roll(40), largest = dice.roll(2 * terms);
  const uint32_t first = dice.roll(terms);  // of those that get what the others leave
  std::vector<uint32_t> weights(terms);
  uint32_t left = most;
  for (uint32_t i = first; i < first + terms; ++i) {
    const uint32_t term = i % terms;
    weights[term] = std::min(left, term == largest ? 127 : dice.roll(1 + maximum));
    left -= weights[term];
  }
  for (const uint32_t weight : weights) bits.put(weight, 7);
  return weights;
}

inline uint32_t put_below(BitString& bits, Dice& dice, uint32_t maximum, uint32_t width) {
  const uint32_t value = dice.roll(maximum);
  bits.put(value, width);
  return value;
}

// Names of tables: the first one, and `last` more, each of them most often told from the one before.
inline std::vector<uint32_t> put_names(BitString& bits, Dice& dice, uint32_t last, uint32_t tables, uint32_t width) {
  std::vector<uint32_t> names{put_below(bits, dice, tables, width)};
  for (uint32_t i = 1; i <= last; ++i) {
    uint32_t table = names.back();
    const uint32_t die = dice.roll(table + 1 < tables ? 3 : 2);
    if (die == 0) {
      bits.put(0, 1);
    } else if (die == 1) {
      bits.put(3, 2);
      table = put_below(bits, dice, tables, width);
    } else {
      bits.put(1, 2);
      ++table;
    }
    names.push_back(table);
  }
  return names;
}

struct Rows {
  std::array<uint32_t, 16> zones{};
  std::array<uint32_t, 64> signs{};
  uint32_t sign_groups = 1;
  std::vector<std::vector<uint32_t>> tables;  // of each row, those of its levels up to `last`
};

// The widths are those of `last` and of the name of a table.
inline Rows put_rows(BitString& bits, Dice& dice, uint32_t tables, uint32_t levels = 64, uint32_t last_width = 6,
                     uint32_t name_width = 5) {
  Rows rows;
  uint32_t zone_groups = 1;
  const bool grouped = !dice.chance(3);
  bits.put(grouped, 1);
  if (grouped) {
    const uint32_t most_zones = 1 + dice.roll(4), most_signs = 1 + dice.roll(8);
    for (uint32_t& zone : rows.zones) {
      zone = put_below(bits, dice, most_zones, 2);
      zone_groups = std::max(zone_groups, zone + 1);
    }
    for (uint32_t& sign : rows.signs) {
      sign = put_below(bits, dice, most_signs, 3);
      rows.sign_groups = std::max(rows.sign_groups, sign + 1);
    }
  }
  for (uint32_t row = 0; row < zone_groups * rows.sign_groups; ++row) {
    const uint32_t last = put_below(bits, dice, levels, last_width);
    rows.tables.push_back(put_names(bits, dice, last, tables, name_width));
  }
  return rows;
}

// For each class of the channel before, its class table; of a channel with several classes.
inline std::vector<uint32_t> put_class_contexts(BitString& bits, Dice& dice, uint32_t c, uint32_t classes_before,
                                                uint32_t& class_tables) {
  class_tables = 1 + dice.roll(c == 0 ? 2 : 8);
  bits.put(class_tables - 1, 3);
  std::vector<uint32_t> contexts(c == 0 ? 1 : classes_before);
  if (class_tables > 1) {
    for (uint32_t& context : contexts) context = put_below(bits, dice, class_tables, 3);
  }
  return contexts;
}

// A frequency that can be written: four leading bits, then zeros.
inline uint32_t cut(uint32_t frequency) {
  uint32_t step = 1;
  while (frequency / step >= 16) step *= 2;
  return frequency / step * step;
}

inline Bytes table_part(const std::vector<uint32_t>& frequencies, uint32_t rest, uint32_t mode) {
  const uint32_t last = static_cast<uint32_t>(frequencies.size()) - 1;
  BitString bits;
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

// The part of a table. Where it codes all, every symbol up to `last` has a frequency. What they are in `frequencies`.
inline Bytes any_table(Dice& dice, uint32_t last, bool codes_all, std::vector<uint32_t>& frequencies) {
  // Every symbol gets one slot, or some none; what is left goes to a few of them, and what then is left to R.
  const uint32_t rest = dice.roll(std::min(last, 31u) + 1);
  frequencies.assign(last + 1, 1);
  if (!codes_all) {
    for (uint32_t i = 0; i < last; ++i) frequencies[i] = dice.roll(2);
  }
  if (rest == last) frequencies[0] = 1;  // beside R there must be one
  frequencies[rest] = 0;
  uint32_t left = 4095;
  for (const uint32_t f : frequencies) left -= f;
  for (uint32_t gifts = dice.roll(12); gifts > 0; --gifts) {
    const uint32_t i = dice.roll(last + 1);
    if (i == rest) continue;
    const uint32_t more = cut(frequencies[i] + dice.roll(left + 1)) - frequencies[i];
    frequencies[i] += more;
    left -= more;
  }
  frequencies[rest] = left + 1;
  return table_part(frequencies, rest, dice.roll(3));
}

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
  Bytes channel(uint32_t c) {
    BitString bits;
    put_weights(bits, dice_, c, classes_[c]);
    put_activity_weights(bits, dice_, c);
    put_rows(bits, dice_, tables_);
    class_tables_[c] = 0;
    if (classes_[c] > 1) put_class_contexts(bits, dice_, c, c == 0 ? 1 : classes_[c - 1], class_tables_[c]);
    return bits.bytes();
  }

  Bytes table(uint32_t last) {
    std::vector<uint32_t> frequencies;
    return any_table(dice_, last, codes_all_, frequencies);
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
