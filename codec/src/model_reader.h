// Reading and verifying the model section (section 12 of the spec), for processors and GPUs alike: its parts can be
// read side by side.
#pragma once

#include "dense_tables.h"
#include "reason.h"

namespace l3 {

constexpr uint32_t kModelHeadBytes = 8;
constexpr uint32_t kMaxActivitySum = 1000;
constexpr uint32_t kMaxModelBytes = 64 * 1024;  // more than any model needs
constexpr uint32_t kMaxModelParts = kMaxChannels + kMaxTables + kMaxClassTables;

constexpr uint32_t kFirstGuess = 9;
constexpr uint32_t kMaxFrequencyBits = 12;
constexpr uint32_t kMantissaBits = 3;

// Bits of a part, least significant first. Behind the end there are zeros: whether the end was passed is asked once.
class BitReader {
 public:
  L3_INLINE BitReader(const uint8_t* bytes, uint32_t size) : bytes_(bytes), size_(size) {}

  // At most 32 of them.
  L3_INLINE uint32_t take(uint32_t count) {
    while (ready_ < count) {
      if (next_ < size_) bits_ |= uint64_t{bytes_[next_]} << ready_;
      ++next_;
      ready_ += 8;
    }
    const uint32_t value = static_cast<uint32_t>(bits_ & ((uint64_t{1} << count) - 1));
    bits_ >>= count;
    ready_ -= count;
    return value;
  }

  // The part is exactly as long as what was read of it, and the rest of its last byte is zero.
  L3_INLINE bool ends_here() const { return next_ == size_ && bits_ == 0; }

 private:
  const uint8_t* bytes_;
  uint32_t size_;
  uint32_t next_ = 0;  // byte
  uint32_t ready_ = 0;
  uint64_t bits_ = 0;  // as many as are ready
};

// The number of bits that a frequency is expected to have, from those of the two before.
struct Expectation {
  uint32_t mode;
  uint32_t before = kFirstGuess, before_that = kFirstGuess;

  L3_INLINE uint32_t next() const {
    return mode == 0 ? before : mode == 1 ? before_that : (before + before_that + 1) / 2;
  }
  L3_INLINE void saw(uint32_t bits) {
    before_that = before;
    before = bits;
  }
};

L3_INLINE bool is_coded_tap(uint32_t channel, uint32_t tap) {
  const uint32_t cross = cross_channels(channel);
  if (tap % kTapsOfWord == 0 && (tap == 0 || tap >= kCrossWord * kTapsOfWord)) return false;
  if (tap == 14 || tap == 15) return tap - 14 < cross;
  return tap < (kCrossWord + cross) * kTapsOfWord;
}

// Reads a model part by part: the head, then its channels in any order, then place_class_tables(), then its tables in
// any order. A fault's place counts from the start of the section.
class ModelReader {
 public:
  L3_INLINE ModelReader(const uint8_t* bytes, uint64_t size, DenseTables& tables)
      : bytes_(bytes), size_(static_cast<uint32_t>(size)), tables_(tables), too_large_(size > kMaxModelBytes) {}

  // For an image of so many channels.
  L3_INLINE Fault read_head(uint32_t channels) {
    if (too_large_) return {Reason::model_offset, kMaxModelBytes};
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
    const uint32_t parts = part_count();
    if (size_ < kModelHeadBytes + 2 * parts) return {Reason::model_head, size_};
    uint32_t begin = kModelHeadBytes + 2 * parts;
    for (uint32_t i = 0; i < parts; ++i) {
      const uint32_t at = kModelHeadBytes + 2 * i;
      const uint32_t offset = load_u16(bytes_ + at);
      if (i == 0 ? offset != begin : offset < begin) return {Reason::model_offset, at};
      if (offset > size_) return {Reason::model_offset, at};
      begin = offset;
    }
    return {};
  }

  // `class_tables` is how many the channel has. Until they are placed, those of each channel are counted from 0.
  L3_INLINE bool read_channel(uint32_t c, uint32_t& class_tables) {
    BitReader bits = part(c);
    class_tables = 0;
    return read_weights(bits, c) && read_activity(bits, c) && read_rows(bits, c) &&
           read_classes(bits, c, class_tables) && bits.ends_here();
  }

  // From what was said of each channel to the number of its first class table.
  L3_INLINE Fault place_class_tables(const bool* is_read, const uint32_t* class_tables, uint32_t* first) const {
    uint32_t sum = 0;
    for (uint32_t c = 0; c < tables_.channels; ++c) {
      first[c] = sum;
      sum += class_tables[c];
      if (!is_read[c] || sum > tables_.class_table_count) return {Reason::model_channel, offset_of(c)};
    }
    if (sum != tables_.class_table_count) return {Reason::model_head, 3};
    return {};
  }
  L3_INLINE void move_class_tables(uint32_t c, uint32_t first) {
    if (tables_.classes[c] == 1) return;
    for (uint32_t k = 0; k < class_contexts(c); ++k) {
      tables_.class_table_of[c][k] = static_cast<uint8_t>(tables_.class_table_of[c][k] + first);
    }
  }

  // The frequencies of a table, or class table, of so many symbols; those that it does not name are left as they are.
  L3_INLINE Fault read_table(uint32_t table, uint16_t* frequencies) const {
    return read_frequencies(tables_.channels + table, kMaxSymbols, frequencies);
  }
  L3_INLINE Fault read_class_table(uint32_t table, uint32_t classes, uint16_t* frequencies) const {
    return read_frequencies(tables_.channels + tables_.table_count + table, classes, frequencies);
  }

 private:
  L3_INLINE uint32_t part_count() const { return tables_.channels + tables_.table_count + tables_.class_table_count; }
  L3_INLINE uint32_t class_contexts(uint32_t c) const { return c == 0 ? 1 : tables_.classes[c - 1]; }
  L3_INLINE uint32_t offset_of(uint32_t part) const {
    return part < part_count() ? load_u16(bytes_ + kModelHeadBytes + 2 * part) : size_;
  }
  L3_INLINE BitReader part(uint32_t i) const { return {bytes_ + offset_of(i), offset_of(i + 1) - offset_of(i)}; }

  // Straight to where they belong: a GPU's threads have no room for them all.
  L3_INLINE bool read_weights(BitReader& bits, uint32_t c) {
    uint8_t width[kMaxTaps];
    int8_t least[kMaxTaps];
    for (uint32_t tap = 0; tap < kMaxTaps; ++tap) {
      if (!is_coded_tap(c, tap)) continue;
      width[tap] = static_cast<uint8_t>(bits.take(4));
      least[tap] = static_cast<int8_t>(bits.take(8));
      if (width[tap] > 8) return false;
    }
    for (uint32_t k = 0; k < tables_.classes[c]; ++k) {
      for (uint32_t word = 0; word < kMaxTapWords; ++word) tables_.weights[c][k][word] = 0;
    }
    for (uint32_t tap = 0; tap < kMaxTaps; ++tap) {
      if (!is_coded_tap(c, tap)) continue;
      for (uint32_t k = 0; k < tables_.classes[c]; ++k) {
        if (!put_weight(c, k, tap, least[tap] + static_cast<int32_t>(bits.take(width[tap])))) return false;
      }
    }
    for (uint32_t k = 0; k < tables_.classes[c]; ++k) {
      if (!put_weight(c, k, 0, 64 - sum_of_weights(c, k, 1, 8))) return false;
      for (uint32_t i = 0; i < cross_channels(c); ++i) {
        const uint32_t first = (kCrossWord + i) * kTapsOfWord;
        if (!put_weight(c, k, first, -sum_of_weights(c, k, first + 1, first + kTapsOfWord))) return false;
      }
    }
    return true;
  }
  // Into a byte that is zero; false where it does not fit.
  L3_INLINE bool put_weight(uint32_t c, uint32_t k, uint32_t tap, int32_t weight) {
    if (weight < -128 || weight > 127) return false;
    tables_.weights[c][k][tap / kTapsOfWord] |= (static_cast<uint32_t>(weight) & 0xFF) << (8 * (tap % kTapsOfWord));
    return true;
  }
  // Of taps `from` to `to` - 1.
  L3_INLINE int32_t sum_of_weights(uint32_t c, uint32_t k, uint32_t from, uint32_t to) const {
    int32_t sum = 0;
    for (uint32_t tap = from; tap < to; ++tap) {
      sum += static_cast<int8_t>(tables_.weights[c][k][tap / kTapsOfWord] >> (8 * (tap % kTapsOfWord)));
    }
    return sum;
  }

  L3_INLINE bool read_activity(BitReader& bits, uint32_t c) {
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

  L3_INLINE bool read_rows(BitReader& bits, uint32_t c) {
    uint8_t zone_group[kZones] = {}, sign_group[kSignPatterns] = {};
    uint32_t zone_groups = 1, sign_groups = 1;
    tables_.grouped[c] = bits.take(1) != 0;
    if (tables_.grouped[c]) {
      for (uint8_t& group : zone_group) {
        group = static_cast<uint8_t>(bits.take(2));
        zone_groups = group + 1u > zone_groups ? group + 1u : zone_groups;
      }
      for (uint8_t& group : sign_group) {
        group = static_cast<uint8_t>(bits.take(3));
        sign_groups = group + 1u > sign_groups ? group + 1u : sign_groups;
      }
    }
    for (uint32_t zone = 0; zone < kZones; ++zone) {
      tables_.zone_row[c][zone] = static_cast<uint8_t>(zone_group[zone] * sign_groups);
    }
    for (uint32_t pattern = 0; pattern < kSignPatterns; ++pattern) {
      tables_.pattern_row[c][pattern_in_order(pattern)] = static_cast<uint8_t>(sign_group[pattern]);
    }
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

  L3_INLINE bool read_classes(BitReader& bits, uint32_t c, uint32_t& class_tables) {
    if (tables_.classes[c] == 1) return true;
    class_tables = bits.take(3) + 1;
    for (uint32_t k = 0; k < class_contexts(c); ++k) {
      const uint32_t table = class_tables > 1 ? bits.take(3) : 0;
      if (table >= class_tables) return false;
      tables_.class_table_of[c][k] = static_cast<uint8_t>(table);
    }
    return true;
  }

  L3_INLINE bool read_part(BitReader bits, uint32_t symbols, uint16_t* frequencies) const {
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

  L3_INLINE Fault read_frequencies(uint32_t i, uint32_t symbols, uint16_t* frequencies) const {
    if (!read_part(part(i), symbols, frequencies)) return {Reason::model_table, offset_of(i)};
    return {};
  }

  const uint8_t* bytes_;
  uint32_t size_;
  DenseTables& tables_;
  bool too_large_;
};

}  // namespace l3
