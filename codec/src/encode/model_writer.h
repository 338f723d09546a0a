// Writes the parts that dense and token models have (sections 12 and 14 of the spec).
#pragma once

#include "encode/dense_model.h"
#include "models/model_parts.h"

namespace l3 {

class BitWriter {
 public:
  explicit BitWriter(uint8_t* bytes) : bytes_(bytes) {}

  void put(uint32_t value, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i, ++at_) {
      if (at_ % 8 == 0) bytes_[at_ / 8] = 0;
      bytes_[at_ / 8] = static_cast<uint8_t>(bytes_[at_ / 8] | (value >> i & 1) << (at_ % 8));
    }
  }
  uint32_t bytes() const { return (at_ + 7) / 8; }

 private:
  uint8_t* bytes_;
  uint32_t at_ = 0;
};

// Counts the bits that a BitWriter would write.
class BitCounter {
 public:
  void put(uint32_t, uint32_t count) { bits_ += count; }
  uint32_t bits() const { return bits_; }

 private:
  uint32_t bits_ = 0;
};

inline uint32_t bit_length(uint32_t v) { return v == 0 ? 0 : 32 - static_cast<uint32_t>(__builtin_clz(v)); }

// Writes the weights of a channel's classes.
template <class Bits>
void put_weights(Bits& bits, const TapWeights* weights, uint32_t classes, uint32_t c) {
  int32_t minimum[kMaxTaps], width[kMaxTaps];
  for (uint32_t tap = 0; tap < kMaxTaps; ++tap) {
    if (!is_coded_tap(c, tap)) continue;
    int32_t maximum = minimum[tap] = weights[0].of[tap];
    for (uint32_t k = 1; k < classes; ++k) {
      const int32_t weight = weights[k].of[tap];
      minimum[tap] = weight < minimum[tap] ? weight : minimum[tap];
      maximum = weight > maximum ? weight : maximum;
    }
    width[tap] = static_cast<int32_t>(bit_length(static_cast<uint32_t>(maximum - minimum[tap])));
    bits.put(static_cast<uint32_t>(width[tap]), 4);
    bits.put(static_cast<uint32_t>(minimum[tap]) & 0xFF, 8);
  }
  for (uint32_t tap = 0; tap < kMaxTaps; ++tap) {
    if (!is_coded_tap(c, tap)) continue;
    for (uint32_t k = 0; k < classes; ++k) {
      bits.put(static_cast<uint32_t>(weights[k].of[tap] - minimum[tap]), static_cast<uint32_t>(width[tap]));
    }
  }
}

// Writes a row: a table for each of `count` levels.
template <class Bits>
void put_row(Bits& bits, const uint8_t* tables, uint32_t count, uint32_t count_bits, uint32_t table_bits) {
  uint32_t last = count - 1;
  while (last > 0 && tables[last] == tables[last - 1]) --last;
  bits.put(last, count_bits);
  bits.put(tables[0], table_bits);
  for (uint32_t i = 1; i <= last; ++i) {
    if (tables[i] == tables[i - 1]) {
      bits.put(0, 1);
    } else if (tables[i] == tables[i - 1] + 1) {
      bits.put(1, 2);
    } else {
      bits.put(3, 2);
      bits.put(tables[i], table_bits);
    }
  }
}

// How many groups of zones and of sign patterns there are. put_groups() writes the groups and returns this.
struct GroupCounts {
  uint32_t zones, signs;
};
template <class Bits>
GroupCounts put_groups(Bits& bits, const uint8_t* zone_group, const uint8_t* sign_group) {
  GroupCounts counts{1, 1};
  for (uint32_t i = 0; i < kZones; ++i)
    counts.zones = zone_group[i] + 1u > counts.zones ? zone_group[i] + 1u : counts.zones;
  for (uint32_t i = 0; i < kSignPatterns; ++i) {
    counts.signs = sign_group[i] + 1u > counts.signs ? sign_group[i] + 1u : counts.signs;
  }
  const bool grouped = counts.zones * counts.signs > 1;
  bits.put(grouped ? 1 : 0, 1);
  if (grouped) {
    for (uint32_t i = 0; i < kZones; ++i) bits.put(zone_group[i], 2);
    for (uint32_t i = 0; i < kSignPatterns; ++i) bits.put(sign_group[i], 3);
  }
  return counts;
}

// Writes which class table is used after each class of the channel before.
template <class Bits>
void put_class_tables(Bits& bits, uint32_t count, const uint8_t* table_of, uint32_t contexts) {
  bits.put(count - 1, 3);
  if (count == 1) return;
  for (uint32_t k = 0; k < contexts; ++k) bits.put(table_of[k], 3);
}

// Writes what a channel has in dense and token models. A row's last level takes `level_bits`, a table `table_bits`.
template <class Bits, class Model>
void put_channel_parts(Bits& bits, const Model& model, uint32_t c, uint32_t level_bits, uint32_t table_bits) {
  constexpr uint32_t kRowLevels = sizeof(model.table_of[0][0][0]);
  put_weights(bits, model.weights[c], model.classes[c], c);
  for (uint32_t i = 0; i < 9 + cross_channels(c); ++i) bits.put(model.activity[c][i], 7);
  const GroupCounts groups = put_groups(bits, model.zone_group[c], model.sign_group[c]);
  for (uint32_t z = 0; z < groups.zones; ++z) {
    for (uint32_t s = 0; s < groups.signs; ++s) {
      put_row(bits, model.table_of[c][z][s], kRowLevels, level_bits, table_bits);
    }
  }
  if (model.classes[c] == 1) return;
  put_class_tables(bits, model.class_tables[c], model.class_table_of[c], c == 0 ? 1 : model.classes[c - 1]);
}

// Calls use(frequencies, classes) for each class table.
template <class Model, class Use>
void for_class_tables(Model& model, uint32_t channels, const Use& use) {
  for (uint32_t c = 0; c < channels; ++c) {
    for (uint32_t t = 0; t < model.class_tables[c] && model.classes[c] > 1; ++t) {
      use(model.class_frequencies[c][t], model.classes[c]);
    }
  }
}

template <class Bits>
void put_frequencies(Bits& bits, const uint16_t* frequencies, uint32_t last, uint32_t rest, uint32_t mode) {
  bits.put(last, 8);
  bits.put(rest, 5);
  bits.put(mode, 2);
  Expectation expected{mode};
  for (uint32_t symbol = 0; symbol <= last; ++symbol) {
    if (symbol == rest) continue;
    const uint32_t n = bit_length(frequencies[symbol]);
    const uint32_t guess = expected.next();
    const uint32_t magnitude = n < guess ? guess - n : n - guess;
    for (uint32_t i = 0; i < magnitude; ++i) bits.put(1, 1);
    bits.put(0, 1);
    if (magnitude != 0) bits.put(n < guess ? 1 : 0, 1);
    expected.update(n);
    if (n > 1) {
      const uint32_t t = smaller(n - 1, kMantissaBits);
      bits.put(frequencies[symbol] >> (n - 1 - t) & ((1u << t) - 1), t);
    }
  }
}

// Chooses the symbol whose frequency is not written, but follows as the rest of 4096. It is one of the first 32
// symbols: one whose frequency the format cannot represent, otherwise the most frequent one.
inline uint32_t implicit_symbol(const uint16_t* frequencies, uint32_t last) {
  uint32_t rest = 0;
  for (uint32_t i = 0; i <= smaller(last, 31); ++i) {
    if (frequencies[i] != writable_frequency(frequencies[i])) return i;
    if (frequencies[i] > frequencies[rest]) rest = i;
  }
  return rest;
}

// Raises each symbol's frequency to at least 1, at the expense of the most frequent symbols.
void complete_frequencies(uint16_t* frequencies, uint32_t symbols);

// Writes a table in its shortest form.
inline uint32_t put_table(BitWriter* bits, const uint16_t* frequencies, uint32_t symbols) {
  uint32_t last = symbols - 1;
  while (frequencies[last] == 0) --last;
  const uint32_t rest = implicit_symbol(frequencies, last);
  uint32_t best_mode = 0, best = UINT32_MAX;
  for (uint32_t mode = 0; mode < 3; ++mode) {
    BitCounter counter;
    put_frequencies(counter, frequencies, last, rest, mode);
    if (counter.bits() < best) {
      best = counter.bits();
      best_mode = mode;
    }
  }
  if (bits != nullptr) put_frequencies(*bits, frequencies, last, rest, best_mode);
  return best;
}

}  // namespace l3
