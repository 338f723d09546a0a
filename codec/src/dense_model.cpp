#include "dense_model.h"

#include <cstring>

#include "model_reader.h"

namespace l3 {
namespace {

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

// Counts what a BitWriter would write.
class BitCounter {
 public:
  void put(uint32_t, uint32_t count) { bits_ += count; }
  uint32_t bits() const { return bits_; }

 private:
  uint32_t bits_ = 0;
};

uint32_t bit_length(uint32_t v) { return v == 0 ? 0 : 32 - static_cast<uint32_t>(__builtin_clz(v)); }

template <class Bits>
void put_weights(Bits& bits, const DenseModel& model, uint32_t c) {
  int32_t least[kMaxTaps], width[kMaxTaps];
  for (uint32_t tap = 0; tap < kMaxTaps; ++tap) {
    if (!is_coded_tap(c, tap)) continue;
    int32_t most = least[tap] = model.weights[c][0].of[tap];
    for (uint32_t k = 1; k < model.classes[c]; ++k) {
      const int32_t weight = model.weights[c][k].of[tap];
      least[tap] = weight < least[tap] ? weight : least[tap];
      most = weight > most ? weight : most;
    }
    width[tap] = static_cast<int32_t>(bit_length(static_cast<uint32_t>(most - least[tap])));
    bits.put(static_cast<uint32_t>(width[tap]), 4);
    bits.put(static_cast<uint32_t>(least[tap]) & 0xFF, 8);
  }
  for (uint32_t tap = 0; tap < kMaxTaps; ++tap) {
    if (!is_coded_tap(c, tap)) continue;
    for (uint32_t k = 0; k < model.classes[c]; ++k) {
      bits.put(static_cast<uint32_t>(model.weights[c][k].of[tap] - least[tap]), static_cast<uint32_t>(width[tap]));
    }
  }
}

template <class Bits>
void put_row(Bits& bits, const uint8_t* levels) {
  uint32_t last = kLevels - 1;
  while (last > 0 && levels[last] == levels[last - 1]) --last;
  bits.put(last, 6);
  bits.put(levels[0], 5);
  for (uint32_t level = 1; level <= last; ++level) {
    if (levels[level] == levels[level - 1]) {
      bits.put(0, 1);
    } else if (levels[level] == levels[level - 1] + 1) {
      bits.put(1, 2);
    } else {
      bits.put(3, 2);
      bits.put(levels[level], 5);
    }
  }
}

template <class Bits>
void put_channel(Bits& bits, const DenseModel& model, uint32_t c) {
  put_weights(bits, model, c);
  for (uint32_t i = 0; i < 9 + cross_channels(c); ++i) bits.put(model.activity[c][i], 7);
  uint32_t zone_groups = 1, sign_groups = 1;
  for (const uint8_t group : model.zone_group[c]) zone_groups = group + 1u > zone_groups ? group + 1u : zone_groups;
  for (const uint8_t group : model.sign_group[c]) sign_groups = group + 1u > sign_groups ? group + 1u : sign_groups;
  const bool grouped = zone_groups * sign_groups > 1;
  bits.put(grouped ? 1 : 0, 1);
  if (grouped) {
    for (const uint8_t group : model.zone_group[c]) bits.put(group, 2);
    for (const uint8_t group : model.sign_group[c]) bits.put(group, 3);
  }
  for (uint32_t z = 0; z < zone_groups; ++z) {
    for (uint32_t s = 0; s < sign_groups; ++s) put_row(bits, model.table_of[c][z][s]);
  }
  if (model.classes[c] == 1) return;
  bits.put(model.class_tables[c] - 1, 3);
  if (model.class_tables[c] == 1) return;
  const uint32_t contexts = c == 0 ? 1 : model.classes[c - 1];
  for (uint32_t k = 0; k < contexts; ++k) bits.put(model.class_table_of[c][k], 3);
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
    expected.saw(n);
    if (n > 1) {
      const uint32_t t = smaller(n - 1, kMantissaBits);
      bits.put(frequencies[symbol] >> (n - 1 - t) & ((1u << t) - 1), t);
    }
  }
}

// The one symbol whose frequency need not be writable: the rest. The first of 32 where all are.
uint32_t rest_symbol(const uint16_t* frequencies, uint32_t last) {
  uint32_t rest = 0;
  for (uint32_t i = 0; i <= smaller(last, 31); ++i) {
    if (frequencies[i] != writable_frequency(frequencies[i])) return i;
    if (frequencies[i] > frequencies[rest]) rest = i;
  }
  return rest;
}

// Gives each symbol a frequency of 1 at least, at the expense of the most frequent ones.
void complete_frequencies(uint16_t* frequencies, uint32_t symbols) {
  uint32_t last = symbols - 1;
  while (frequencies[last] == 0) --last;
  const uint32_t rest = rest_symbol(frequencies, last);
  int32_t lacking = 0;
  for (uint32_t i = 0; i < symbols; ++i) {
    if (frequencies[i] != 0) continue;
    frequencies[i] = 1;
    ++lacking;
  }
  while (lacking > 0) {
    uint32_t greatest = 0;
    for (uint32_t i = 1; i < symbols; ++i) greatest = frequencies[i] > frequencies[greatest] ? i : greatest;
    const uint32_t f = frequencies[greatest];
    const uint32_t step = f < 16 ? 1 : 1u << (bit_length(f) - 1 - kMantissaBits);
    const uint32_t less = greatest == rest ? smaller(step, static_cast<uint32_t>(lacking)) : step;
    frequencies[greatest] = static_cast<uint16_t>(f - less);
    lacking -= static_cast<int32_t>(less);
  }
  frequencies[rest] = static_cast<uint16_t>(frequencies[rest] - lacking);
}

// Writes a table in the shortest way.
uint32_t put_table(BitWriter* bits, const uint16_t* frequencies, uint32_t symbols) {
  uint32_t last = symbols - 1;
  while (frequencies[last] == 0) --last;
  const uint32_t rest = rest_symbol(frequencies, last);
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

}  // namespace

Fault read_model(const uint8_t* bytes, uint64_t size, uint32_t channels, DenseTables& tables) {
  ModelReader reader(bytes, size, tables);
  Fault fault = reader.read_head(channels);
  if (fault.reason != Reason::none) return fault;
  std::memset(tables.table_of, 0, sizeof(tables.table_of));
  std::memset(tables.class_table_of, 0, sizeof(tables.class_table_of));
  bool is_read[kMaxChannels];
  uint32_t class_tables[kMaxChannels], first[kMaxChannels];
  for (uint32_t c = 0; c < channels; ++c) is_read[c] = reader.read_channel(c, class_tables[c]);
  fault = reader.place_class_tables(is_read, class_tables, first);
  if (fault.reason != Reason::none) return fault;
  for (uint32_t c = 0; c < channels; ++c) reader.move_class_tables(c, first[c]);
  for (uint32_t t = 0; t < tables.table_count; ++t) {
    uint16_t frequencies[kTableBuckets] = {};
    fault = reader.read_table(t, frequencies);
    if (fault.reason != Reason::none) return fault;
    build_buckets<kTableBuckets>(frequencies, tables.buckets + t * kTableBuckets);
  }
  for (uint32_t c = 0; c < channels; ++c) {
    for (uint32_t t = first[c]; t < first[c] + class_tables[c]; ++t) {
      uint16_t frequencies[kClassBuckets] = {};
      fault = reader.read_class_table(t, tables.classes[c], frequencies);
      if (fault.reason != Reason::none) return fault;
      build_buckets<kClassBuckets>(frequencies, tables.class_buckets + t * kClassBuckets);
    }
  }
  return {};
}

void complete_table(DenseModel& model, uint32_t table) { complete_frequencies(model.frequencies[table], kMaxSymbols); }

void complete_class_tables(DenseModel& model) {
  for (uint32_t c = 0; c < model.channels; ++c) {
    if (model.classes[c] == 1) continue;
    for (uint32_t t = 0; t < model.class_tables[c]; ++t) {
      complete_frequencies(model.class_frequencies[c][t], model.classes[c]);
    }
  }
}

uint32_t writable_frequency(uint32_t frequency) {
  const uint32_t n = bit_length(frequency);
  if (n <= kMantissaBits + 1) return frequency;
  const uint32_t shift = n - 1 - kMantissaBits;
  return (frequency + (1u << shift >> 1)) >> shift << shift;
}

uint32_t table_bits(const uint16_t* frequencies, uint32_t symbols) { return put_table(nullptr, frequencies, symbols); }

uint32_t write_model(const DenseModel& model, uint8_t* bytes) {
  uint32_t class_tables = 0;
  for (uint32_t c = 0; c < model.channels; ++c) class_tables += model.classes[c] > 1 ? model.class_tables[c] : 0;
  bytes[0] = 0;
  bytes[1] = static_cast<uint8_t>(model.channels);
  bytes[2] = static_cast<uint8_t>(model.table_count);
  bytes[3] = static_cast<uint8_t>(class_tables);
  for (uint32_t c = 0; c < kMaxChannels; ++c) {
    bytes[4 + c] = static_cast<uint8_t>(c < model.channels ? model.classes[c] : 0);
  }
  const uint32_t parts = model.channels + model.table_count + class_tables;
  uint32_t part = 0, at = kModelHeadBytes + 2 * parts;
  const auto add = [&](const auto& put) {
    store_u16(bytes + kModelHeadBytes + 2 * part++, at);
    BitWriter bits(bytes + at);
    put(bits);
    at += bits.bytes();
  };
  for (uint32_t c = 0; c < model.channels; ++c) add([&](BitWriter& bits) { put_channel(bits, model, c); });
  for (uint32_t t = 0; t < model.table_count; ++t) {
    add([&](BitWriter& bits) { put_table(&bits, model.frequencies[t], kMaxSymbols); });
  }
  for (uint32_t c = 0; c < model.channels; ++c) {
    if (model.classes[c] == 1) continue;
    for (uint32_t t = 0; t < model.class_tables[c]; ++t) {
      add([&](BitWriter& bits) { put_table(&bits, model.class_frequencies[c][t], model.classes[c]); });
    }
  }
  return at;
}

}  // namespace l3
