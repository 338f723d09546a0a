// Reads the parts that dense and token models have (sections 12 and 14 of the spec), for processors and GPUs alike.
#pragma once

#include "container/reason.h"
#include "models/dense_tables.h"

namespace l3 {

constexpr uint32_t kFirstGuess = 9;
constexpr uint32_t kMaxFrequencyBits = 12;
constexpr uint32_t kMantissaBits = 3;

// Reads a part bit by bit, least significant bit first. Reading past the end gives zeros; ends_here() detects it at
// the end.
class BitReader {
 public:
  L3_INLINE BitReader(const uint8_t* bytes, uint32_t size) : bytes_(bytes), size_(size) {}

  // Takes at most 32 bits.
  L3_INLINE uint32_t take(uint32_t count) {
    if (ready_ < count) load(count);
    const uint32_t value = static_cast<uint32_t>(bits_ & ((uint64_t{1} << count) - 1));
    bits_ >>= count;
    ready_ -= count;
    return value;
  }

  // Whether the part is exactly as long as what was read, and the rest of its last byte is zero.
  L3_INLINE bool ends_here() const {
    return next_ - ready_ / 8 == size_ && (bits_ & ((uint64_t{1} << ready_) - 1)) == 0;
  }
  // Whether the part is long enough for what was read, and the rest of it is zero.
  L3_INLINE bool has_zeros_left() const {
    if (next_ - ready_ / 8 > size_ || (bits_ & ((uint64_t{1} << ready_) - 1)) != 0) return false;
    for (uint32_t i = next_; i < size_; ++i) {
      if (bytes_[i] != 0) return false;
    }
    return true;
  }

 private:
  // Loads at least `count` bits: on processors eight bytes at once, of which as many count as fit.
  L3_INLINE void load(uint32_t count) {
#if !defined(__CUDACC__)
    if (next_ + 8 <= size_) {
      bits_ |= load_u64(bytes_ + next_) << ready_;
      const uint32_t loaded = (63 - ready_) / 8;
      next_ += loaded;
      ready_ += 8 * loaded;
      return;
    }
#endif
    for (; ready_ < count; ready_ += 8) {
      if (next_ < size_) bits_ |= uint64_t{bytes_[next_]} << ready_;
      ++next_;
    }
  }

  const uint8_t* bytes_;
  uint32_t size_;
  uint32_t next_ = 0;  // index of the next byte
  uint32_t ready_ = 0;
  uint64_t bits_ = 0;  // the `ready_` bits that were loaded and not taken; above them, what loads will give again
};

// The expected number of bits of a frequency, from those of the two frequencies before it (section 12.3).
struct Expectation {
  uint32_t mode;
  uint32_t before = kFirstGuess, before_that = kFirstGuess;

  L3_INLINE uint32_t next() const {
    return mode == 0 ? before : mode == 1 ? before_that : (before + before_that + 1) / 2;
  }
  L3_INLINE void update(uint32_t bits) {
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

// `Form` defines how rows are written: kLevels, kLevelBits and kTableBits. Its kMaxPair and kMaxActivity are the most
// that the weights of a sample and of its error, and activity weights, may add up to.
template <class Tables, class Form>
struct ModelParts {
  using Bits = BitReader;

  L3_INLINE static uint32_t class_contexts(const Tables& tables, uint32_t c) {
    return c == 0 ? 1 : tables.classes[c - 1];
  }

  // Stores each weight directly in its place, since a GPU thread has no room for a copy of all weights.
  L3_INLINE static bool read_weights(Tables& tables, BitReader& bits, uint32_t c) {
    uint8_t width[kMaxTaps];
    int8_t minimum[kMaxTaps];
    for (uint32_t tap = 0; tap < kMaxTaps; ++tap) {
      if (!is_coded_tap(c, tap)) continue;
      width[tap] = static_cast<uint8_t>(bits.take(4));
      minimum[tap] = static_cast<int8_t>(bits.take(8));
      if (width[tap] > 8) return false;
    }
    for (uint32_t k = 0; k < tables.classes[c]; ++k) {
      for (uint32_t word = 0; word < kMaxTapWords; ++word) tables.weights[c][k][word] = 0;
    }
    for (uint32_t tap = 0; tap < kMaxTaps; ++tap) {
      if (!is_coded_tap(c, tap)) continue;
      for (uint32_t k = 0; k < tables.classes[c]; ++k) {
        if (!put_weight(tables, c, k, tap, minimum[tap] + static_cast<int32_t>(bits.take(width[tap])))) return false;
      }
    }
    for (uint32_t k = 0; k < tables.classes[c]; ++k) {
      if (!put_weight(tables, c, k, 0, 64 - sum_of_weights(tables, c, k, 1, 8))) return false;
      for (uint32_t i = 0; i < cross_channels(c); ++i) {
        const uint32_t first = (kCrossWord + i) * kTapsOfWord;
        if (!put_weight(tables, c, k, first, -sum_of_weights(tables, c, k, first + 1, first + kTapsOfWord)))
          return false;
      }
      if (!pairs_fit(tables, c, k)) return false;
    }
    return true;
  }
  L3_INLINE static bool pairs_fit(const Tables& tables, uint32_t c, uint32_t k) {
    for (uint32_t tap = kFirstErrorTap; tap < kFirstErrorTap + kErrorTaps; ++tap) {
      const uint32_t sample = tap_of_same_sample(tap);
      const int32_t sum = sum_of_weights(tables, c, k, sample, sample + 1) + sum_of_weights(tables, c, k, tap, tap + 1);
      if (sum < -Form::kMaxPair || sum > Form::kMaxPair) return false;
    }
    return true;
  }
  // Stores a weight in a byte that is still zero. Returns false if the weight is out of range.
  L3_INLINE static bool put_weight(Tables& tables, uint32_t c, uint32_t k, uint32_t tap, int32_t weight) {
    if (weight < -128 || weight > 127) return false;
    tables.weights[c][k][tap / kTapsOfWord] |= (static_cast<uint32_t>(weight) & 0xFF) << (8 * (tap % kTapsOfWord));
    return true;
  }
  // The sum of the weights of taps `from` to `to` - 1.
  L3_INLINE static int32_t sum_of_weights(const Tables& tables, uint32_t c, uint32_t k, uint32_t from, uint32_t to) {
    int32_t sum = 0;
    for (uint32_t tap = from; tap < to; ++tap) {
      sum += static_cast<int8_t>(tables.weights[c][k][tap / kTapsOfWord] >> (8 * (tap % kTapsOfWord)));
    }
    return sum;
  }

  L3_INLINE static bool read_activity(Tables& tables, BitReader& bits, uint32_t c) {
    uint32_t terms[kActivityTerms] = {};
    uint32_t sum = 0;
    for (uint32_t i = 0; i < 9 + cross_channels(c); ++i) {
      terms[i] = bits.take(7);
      sum += terms[i];
    }
    tables.activity[c][0] = terms[0] | terms[1] << 8 | terms[2] << 16 | terms[3] << 24;
    tables.activity[c][1] = terms[4] | terms[5] << 8 | terms[9] << 16 | terms[10] << 24;
    tables.activity[c][2] = terms[6] | terms[7] << 8 | terms[8] << 16;
    return sum <= Form::kMaxActivity;
  }

  L3_INLINE static bool read_rows(Tables& tables, BitReader& bits, uint32_t c) {
    uint8_t zone_group[kZones] = {}, sign_group[kSignPatterns] = {};
    uint32_t zone_groups = 1, sign_groups = 1;
    tables.grouped[c] = bits.take(1) != 0;
    if (tables.grouped[c]) {
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
      tables.zone_row[c][zone] = static_cast<uint8_t>(zone_group[zone] * sign_groups);
    }
    for (uint32_t pattern = 0; pattern < kSignPatterns; ++pattern) {
      tables.pattern_row[c][pattern_in_order(pattern)] = static_cast<uint8_t>(sign_group[pattern]);
    }
    for (uint32_t row = 0; row < zone_groups * sign_groups; ++row) {
      const uint32_t last = bits.take(Form::kLevelBits);
      if (last >= Form::kLevels) return false;
      if (!read_row(bits, last, Form::kLevels, tables.table_count, tables.table_of[c] + row * Form::kLevels))
        return false;
    }
    return true;
  }

  // Reads a row of `count` tables. All tables after index `last` are the same.
  L3_INLINE static bool read_row(BitReader& bits, uint32_t last, uint32_t count, uint32_t tables, uint8_t* row) {
    uint32_t table = bits.take(Form::kTableBits);
    for (uint32_t i = 0; i <= last; ++i) {
      if (i > 0 && bits.take(1) != 0) table = bits.take(1) != 0 ? bits.take(Form::kTableBits) : table + 1;
      if (table >= tables) return false;
      row[i] = static_cast<uint8_t>(table);
    }
    for (uint32_t i = last + 1; i < count; ++i) row[i] = static_cast<uint8_t>(table);
    return true;
  }

  L3_INLINE static bool read_classes(Tables& tables, BitReader& bits, uint32_t c, uint32_t& class_tables) {
    if (tables.classes[c] == 1) return true;
    class_tables = bits.take(3) + 1;
    for (uint32_t k = 0; k < class_contexts(tables, c); ++k) {
      const uint32_t table = class_tables > 1 ? bits.take(3) : 0;
      if (table >= class_tables) return false;
      tables.class_table_of[c][k] = static_cast<uint8_t>(table);
    }
    return true;
  }

  // Leaves the frequencies of symbols above the last one as they are.
  L3_INLINE static bool read_table(BitReader bits, uint32_t symbols, uint16_t* frequencies) {
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
      expected.update(n);
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

  // Adds the number of the channel's first class table. Until then a channel counts its class tables from 0.
  L3_INLINE static void move_class_tables(Tables& tables, uint32_t c, uint32_t first) {
    if (tables.classes[c] == 1) return;
    for (uint32_t k = 0; k < class_contexts(tables, c); ++k) {
      tables.class_table_of[c][k] = static_cast<uint8_t>(tables.class_table_of[c][k] + first);
    }
  }
};

}  // namespace l3
