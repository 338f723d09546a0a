#include "dense_model.h"

#include <cstring>

namespace l3 {
namespace {

constexpr uint32_t kFirstGuess = 9;
constexpr uint32_t kMaxFrequencyBits = 12;
constexpr uint32_t kMantissaBits = 3;

// Bits of a part, least significant first. Behind the end there are zeros: whether the end was passed is asked once.
class BitReader {
 public:
  BitReader(const uint8_t* bytes, uint32_t size) : bytes_(bytes), size_(size) {}

  uint32_t take(uint32_t count) {
    uint32_t value = 0;
    for (uint32_t i = 0; i < count; ++i, ++at_) {
      const uint32_t byte = at_ / 8;
      if (byte < size_) value |= (uint32_t{bytes_[byte]} >> (at_ % 8) & 1) << i;
    }
    return value;
  }

  // The part is exactly as long as what was read of it, and the rest of its last byte is zero.
  bool ends_here() {
    const bool whole = (at_ + 7) / 8 == size_;
    return take((8 - at_ % 8) % 8) == 0 && whole;
  }

 private:
  const uint8_t* bytes_;
  uint32_t size_;
  uint32_t at_ = 0;
};

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

// The number of bits that a frequency is expected to have, from those of the two before.
struct Expectation {
  uint32_t mode;
  uint32_t before = kFirstGuess, before_that = kFirstGuess;

  uint32_t next() const { return mode == 0 ? before : mode == 1 ? before_that : (before + before_that + 1) / 2; }
  void saw(uint32_t bits) {
    before_that = before;
    before = bits;
  }
};

bool is_coded_tap(uint32_t channel, uint32_t tap) {
  const uint32_t cross = cross_channels(channel);
  if (tap % kTapsOfWord == 0 && (tap == 0 || tap >= kCrossWord * kTapsOfWord)) return false;
  if (tap == 14 || tap == 15) return tap - 14 < cross;
  return tap < (kCrossWord + cross) * kTapsOfWord;
}

// The weights that follow from others: of W, so that those of a channel's neighbours add up to `total`.
int32_t implied_weight(const int32_t* weights, uint32_t first, uint32_t count, int32_t total) {
  int32_t rest = total;
  for (uint32_t i = 1; i < count; ++i) rest -= weights[first + i];
  return rest;
}

bool fits_byte(int32_t v) { return v >= -128 && v <= 127; }

class ModelReader {
 public:
  ModelReader(const uint8_t* bytes, uint32_t size, DenseTables& tables) : bytes_(bytes), size_(size), tables_(tables) {}

  Fault read(uint32_t channels) {
    if (size_ < kModelHeadBytes) return {Reason::model_head, size_};
    if (bytes_[0] != 0) return {Reason::model_kind, 0};
    if (bytes_[1] != channels) return {Reason::model_head, 1};
    tables_.channels = channels;
    tables_.table_count = bytes_[2];
    tables_.class_table_count = bytes_[3];
    if (tables_.table_count == 0 || tables_.table_count > kMaxTables) return {Reason::model_head, 2};
    if (tables_.class_table_count > kMaxClassTables) return {Reason::model_head, 3};
    for (uint32_t c = 0; c < kMaxChannels; ++c) {
      tables_.classes[c] = bytes_[4 + c];
      const bool there = c < channels;
      if (there ? bytes_[4 + c] == 0 || bytes_[4 + c] > kMaxClasses : bytes_[4 + c] != 0) {
        return {Reason::model_head, 4 + c};
      }
    }
    parts_ = channels + tables_.table_count + tables_.class_table_count;
    if (size_ < kModelHeadBytes + 2 * parts_) return {Reason::model_head, size_};
    uint32_t begin = kModelHeadBytes + 2 * parts_;
    for (uint32_t i = 0; i < parts_; ++i) {
      const uint32_t at = kModelHeadBytes + 2 * i;
      const uint32_t offset = load_u16(bytes_ + at);
      if (i == 0 ? offset != begin : offset < begin) return {Reason::model_offset, at};
      if (offset > size_) return {Reason::model_offset, at};
      begin = offset;
    }
    for (uint32_t c = 0; c < channels; ++c) {
      if (!read_channel(c)) return {Reason::model_channel, offset_of(c)};
    }
    if (class_tables_ != tables_.class_table_count) return {Reason::model_head, 3};
    for (uint32_t t = 0; t < tables_.table_count; ++t) {
      uint16_t frequencies[kTableBuckets] = {};
      const uint32_t part = channels + t;
      if (!read_table(part, kMaxSymbols, frequencies)) return {Reason::model_table, offset_of(part)};
      build_buckets<kTableBuckets>(frequencies, tables_.buckets + t * kTableBuckets);
    }
    uint32_t table = 0;
    for (uint32_t c = 0; c < channels; ++c) {
      for (uint32_t i = 0; i < class_tables_of_[c]; ++i, ++table) {
        uint16_t frequencies[kClassBuckets] = {};
        const uint32_t part = channels + tables_.table_count + table;
        if (!read_table(part, tables_.classes[c], frequencies)) return {Reason::model_table, offset_of(part)};
        build_buckets<kClassBuckets>(frequencies, tables_.class_buckets + table * kClassBuckets);
      }
    }
    return {};
  }

 private:
  uint32_t offset_of(uint32_t part) const {
    return part < parts_ ? load_u16(bytes_ + kModelHeadBytes + 2 * part) : size_;
  }
  BitReader part(uint32_t i) const { return {bytes_ + offset_of(i), offset_of(i + 1) - offset_of(i)}; }

  bool read_channel(uint32_t c) {
    BitReader bits = part(c);
    return read_weights(bits, c) && read_activity(bits, c) && read_rows(bits, c) && read_classes(bits, c) &&
           bits.ends_here();
  }

  bool read_weights(BitReader& bits, uint32_t c) {
    uint32_t width[kMaxTaps];
    int32_t least[kMaxTaps];
    for (uint32_t tap = 0; tap < kMaxTaps; ++tap) {
      if (!is_coded_tap(c, tap)) continue;
      width[tap] = bits.take(4);
      least[tap] = static_cast<int8_t>(bits.take(8));
      if (width[tap] > 8) return false;
    }
    int32_t weights[kMaxClasses][kMaxTaps] = {};
    for (uint32_t tap = 0; tap < kMaxTaps; ++tap) {
      if (!is_coded_tap(c, tap)) continue;
      for (uint32_t k = 0; k < tables_.classes[c]; ++k) {
        weights[k][tap] = least[tap] + static_cast<int32_t>(bits.take(width[tap]));
      }
    }
    for (uint32_t k = 0; k < tables_.classes[c]; ++k) {
      weights[k][0] = implied_weight(weights[k], 0, 8, 64);
      for (uint32_t i = 0; i < cross_channels(c); ++i) {
        const uint32_t first = (kCrossWord + i) * kTapsOfWord;
        weights[k][first] = implied_weight(weights[k], first, 4, 0);
      }
      for (uint32_t word = 0; word < kMaxTapWords; ++word) {
        uint32_t packed = 0;
        for (uint32_t i = 0; i < kTapsOfWord; ++i) {
          const int32_t weight = weights[k][word * kTapsOfWord + i];
          if (!fits_byte(weight)) return false;
          packed |= (static_cast<uint32_t>(weight) & 0xFF) << (8 * i);
        }
        tables_.weights[c][k][word] = packed;
      }
    }
    return true;
  }

  bool read_activity(BitReader& bits, uint32_t c) {
    uint32_t terms[kActivityTerms] = {};
    uint32_t sum = 0;
    for (uint32_t i = 0; i < 9 + cross_channels(c); ++i) {
      terms[i] = bits.take(7);
      sum += terms[i];
    }
    tables_.activity[c][0] = terms[0] | terms[1] << 8 | terms[2] << 16 | terms[3] << 24;
    tables_.activity[c][1] = terms[4] | terms[5] << 8 | terms[9] << 16 | terms[10] << 24;
    tables_.activity[c][2] = terms[6] | terms[7] << 8 | terms[8] << 16;
    return sum <= kMaxActivitySum;
  }

  bool read_rows(BitReader& bits, uint32_t c) {
    uint32_t zone_group[kZones] = {}, sign_group[kSignPatterns] = {};
    uint32_t zone_groups = 1, sign_groups = 1;
    tables_.grouped[c] = bits.take(1) != 0;
    if (tables_.grouped[c]) {
      for (uint32_t& group : zone_group) {
        group = bits.take(2);
        zone_groups = group + 1 > zone_groups ? group + 1 : zone_groups;
      }
      for (uint32_t& group : sign_group) {
        group = bits.take(3);
        sign_groups = group + 1 > sign_groups ? group + 1 : sign_groups;
      }
    }
    for (uint32_t zone = 0; zone < kZones; ++zone) {
      tables_.zone_row[c][zone] = static_cast<uint8_t>(zone_group[zone] * sign_groups);
    }
    for (uint32_t pattern = 0; pattern < kSignPatterns; ++pattern) {
      tables_.pattern_row[c][pattern_in_order(pattern)] = static_cast<uint8_t>(sign_group[pattern]);
    }
    std::memset(tables_.table_of[c], 0, sizeof(tables_.table_of[c]));
    for (uint32_t row = 0; row < zone_groups * sign_groups; ++row) {
      uint8_t* levels = tables_.table_of[c] + row * kLevels;
      const uint32_t last = bits.take(6);
      uint32_t table = bits.take(5);
      for (uint32_t level = 0; level < kLevels; ++level) {
        if (level > 0 && level <= last && bits.take(1) != 0) table = bits.take(1) != 0 ? bits.take(5) : table + 1;
        if (table >= tables_.table_count) return false;
        levels[level] = static_cast<uint8_t>(table);
      }
    }
    return true;
  }

  bool read_classes(BitReader& bits, uint32_t c) {
    class_tables_of_[c] = 0;
    std::memset(tables_.class_table_of[c], 0, sizeof(tables_.class_table_of[c]));
    if (tables_.classes[c] == 1) return true;
    const uint32_t count = bits.take(3) + 1;
    class_tables_of_[c] = count;
    const uint32_t contexts = c == 0 ? 1 : tables_.classes[c - 1];
    for (uint32_t k = 0; k < contexts; ++k) {
      const uint32_t table = count > 1 ? bits.take(3) : 0;
      if (table >= count) return false;
      tables_.class_table_of[c][k] = static_cast<uint8_t>(class_tables_ + table);
    }
    class_tables_ += count;
    return class_tables_ <= tables_.class_table_count;
  }

  bool read_table(uint32_t i, uint32_t symbols, uint16_t* frequencies) const {
    BitReader bits = part(i);
    const uint32_t last = bits.take(8);
    const uint32_t rest = bits.take(5);
    Expectation expected{bits.take(2)};
    if (last == 0 || last >= symbols || rest > last || expected.mode == 3) return false;
    uint32_t sum = 0;
    for (uint32_t symbol = 0; symbol <= last; ++symbol) {
      if (symbol == rest) continue;
      uint32_t magnitude = 0;
      while (bits.take(1) != 0) {
        if (++magnitude > kMaxFrequencyBits) return false;
      }
      const bool negative = magnitude != 0 && bits.take(1) != 0;
      const uint32_t guess = expected.next();
      if (negative ? magnitude > guess : magnitude > kMaxFrequencyBits - guess) return false;
      const uint32_t n = negative ? guess - magnitude : guess + magnitude;
      expected.saw(n);
      uint32_t frequency = 0;
      if (n > 0) {
        const uint32_t t = smaller(n - 1, kMantissaBits);
        frequency = ((1u << t) + bits.take(t)) << (n - 1 - t);
      }
      frequencies[symbol] = static_cast<uint16_t>(frequency);
      sum += frequency;
    }
    if (sum == 0 || sum >= kProbabilities) return false;
    frequencies[rest] = static_cast<uint16_t>(kProbabilities - sum);
    return frequencies[last] != 0 && bits.ends_here();
  }

  const uint8_t* bytes_;
  uint32_t size_;
  DenseTables& tables_;
  uint32_t parts_ = 0;
  uint32_t class_tables_ = 0;
  uint32_t class_tables_of_[kMaxChannels] = {};
};

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
  if (size > kMaxModelBytes) return {Reason::model_offset, kMaxModelBytes};
  return ModelReader(bytes, static_cast<uint32_t>(size), tables).read(channels);
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
