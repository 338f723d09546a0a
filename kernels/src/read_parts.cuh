// Reads the parts of a model that take longest: channels (section 12.2 of the spec), by a warp each, and tables
// (section 12.3), by a lane each. ModelParts in codec/ reads the same parts bit by bit.
#pragma once

#include "cuda_warp.cuh"
#include "models/model_parts.h"

namespace l3 {

// The place of a word's lowest bit that is one. The word is not 0.
L3_INLINE uint32_t lowest_one(uint32_t word) {
  return 31 - static_cast<uint32_t>(__clz(static_cast<int>(word & (0 - word))));
}

// A part, as a bit string that lanes can read at any position. It continues with zeros after its last word.
class PartBits {
 public:
  // Reads on from a position, and keeps the next words in registers.
  class Stream {
   public:
    L3_INLINE Stream(const PartBits& bits, uint32_t at) : bits_(bits), at_(bits.first_ + at) {
      low_ = bits.word(at_ / 32);
      high_ = bits.word(at_ / 32 + 1);
      next_ = bits.word(at_ / 32 + 2);
    }
    L3_INLINE uint32_t window() const { return __funnelshift_r(low_, high_, at_); }
    // Skips at most 31 bits. There is no branch: these loops are chains of dependent instructions.
    L3_INLINE void skip(uint32_t count) {
      const bool crosses = ((at_ ^ (at_ + count)) & 32) != 0;
      at_ += count;
      low_ = crosses ? high_ : low_;
      high_ = crosses ? next_ : high_;
      next_ = bits_.word(at_ / 32 + 2);
    }
    L3_INLINE uint32_t at() const { return at_ - bits_.first_; }

   private:
    const PartBits& bits_;
    uint32_t at_, low_, high_, next_;
  };

  L3_INLINE PartBits(const uint8_t* bytes, uint32_t size) : size_(size) {
    const uint32_t before = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(bytes) % 4);
    words_ = reinterpret_cast<const uint32_t*>(bytes - before);
    count_ = size == 0 ? 0 : ceil_div(before + size, 4);
    first_ = 8 * before;
  }

  // Returns the 32 bits from bit `at` on.
  L3_INLINE uint32_t window(uint32_t at) const {
    const uint32_t from = first_ + at;
    return __funnelshift_r(word(from / 32), word(from / 32 + 1), from % 32);
  }
  L3_INLINE uint32_t field(uint32_t at, uint32_t count) const { return window(at) & lowest_bits(count); }
  // Returns whether `at` bits use all bytes, and the rest of the last byte is zero.
  L3_INLINE bool ends_at(uint32_t at) const { return ceil_div(at, 8) == size_ && field(at, 8 * size_ - at) == 0; }

  // The lanes of a warp take fields together.
  L3_INLINE uint32_t take(uint32_t count) {
    const uint32_t value = field(at_, count);
    at_ += count;
    return value;
  }
  // The field of each lane is `count` bits wide, and the warp takes `lanes` of them.
  L3_INLINE uint32_t take_each(uint32_t count, uint32_t lanes) {
    const uint32_t value = lane_number() < lanes ? field(at_ + lane_number() * count, count) : 0;
    at_ += lanes * count;
    return value;
  }
  L3_INLINE void skip(uint32_t count) { at_ += count; }
  L3_INLINE uint32_t at() const { return at_; }
  L3_INLINE Stream stream() const { return {*this, at_}; }
  L3_INLINE void move_to(const Stream& stream) { at_ = stream.at(); }
  L3_INLINE bool ends_here() const { return ends_at(at_); }

 private:
  L3_INLINE uint32_t word(uint32_t i) const { return i < count_ ? words_[i] : 0; }

  const uint32_t* words_;
  uint32_t count_, first_, size_;
  uint32_t at_ = 0;
};

// Functions of ModelParts. Those that read a part of a channel are for all lanes of a warp, and return the same in
// each.
template <class Tables, class Form>
struct PartsOfWarp : ModelParts<Tables, Form> {
  using Serial = ModelParts<Tables, Form>;
  using Bits = PartBits;

  // A lane reads where a tap's weights begin, then all weights of a class.
  L3_INLINE static bool read_weights(Tables& tables, Bits& bits, uint32_t c) {
    const uint32_t classes = tables.classes[c], cross = cross_channels(c), lane = lane_number();
    const uint32_t head = bits.take_each(12, 13 + 4 * cross);
    const uint32_t width = head & 15;
    if (__any_sync(kAllLanes, width > 8)) return false;
    const uint32_t sum = running_sum(width);
    const uint32_t begin = bits.at() + (sum - width) * classes;
    bits.skip(__shfl_sync(kAllLanes, sum, kLanes - 1) * classes);

    int32_t weight[kMaxTaps] = {};
    uint32_t i = 0;
#pragma unroll
    for (uint32_t tap = 0; tap < kMaxTaps; ++tap) {
      if (!is_coded_tap(c, tap)) continue;
      const uint32_t of_tap = __shfl_sync(kAllLanes, head, i), bits_of_tap = of_tap & 15;
      const uint32_t first = __shfl_sync(kAllLanes, begin, i);
      weight[tap] =
          static_cast<int8_t>(of_tap >> 4) + static_cast<int32_t>(bits.field(first + lane * bits_of_tap, bits_of_tap));
      ++i;
    }
    weight[0] = 64 - sum_of<1, 8>(weight);
    if (cross > 0) weight[16] = -sum_of<17, 20>(weight);
    if (cross > 1) weight[20] = -sum_of<21, 24>(weight);

    bool fits = true;
    uint32_t words[kMaxTapWords] = {};
#pragma unroll
    for (uint32_t tap = 0; tap < kMaxTaps; ++tap) {
      fits = fits && weight[tap] >= -128 && weight[tap] <= 127;
      words[tap / kTapsOfWord] |= (static_cast<uint32_t>(weight[tap]) & 0xFF) << (8 * (tap % kTapsOfWord));
    }
#pragma unroll
    for (uint32_t tap = kFirstErrorTap; tap < kFirstErrorTap + kErrorTaps; ++tap) {
      const int32_t pair = weight[tap_of_same_sample(tap)] + weight[tap];
      fits = fits && pair >= -Form::kMaxPair && pair <= Form::kMaxPair;
    }
    if (lane < classes) {
      for (uint32_t word = 0; word < kMaxTapWords; ++word) tables.weights[c][lane][word] = words[word];
    }
    return __all_sync(kAllLanes, fits || lane >= classes);
  }

  L3_INLINE static bool read_activity(Tables& tables, Bits& bits, uint32_t c) {
    const uint32_t own = bits.take_each(7, 9 + cross_channels(c));
    const auto term = [&](uint32_t i) { return __shfl_sync(kAllLanes, own, i); };
    const uint32_t words[kActivityWords] = {term(0) | term(1) << 8 | term(2) << 16 | term(3) << 24,
                                            term(4) | term(5) << 8 | term(9) << 16 | term(10) << 24,
                                            term(6) | term(7) << 8 | term(8) << 16};
    for (uint32_t word = 0; word < kActivityWords; ++word) tables.activity[c][word] = words[word];
    return sum_of_lanes(own) <= Form::kMaxActivity;
  }

  L3_INLINE static bool read_rows(Tables& tables, Bits& bits, uint32_t c) {
    const uint32_t lane = lane_number();
    const bool grouped = bits.take(1) != 0;
    uint32_t zone_group = 0, sign_group[2] = {};
    if (grouped) {
      zone_group = bits.take_each(2, kZones);
      for (uint32_t& group : sign_group) group = bits.take_each(3, kSignPatterns / 2);
    }
    const uint32_t zone_groups = __reduce_max_sync(kAllLanes, zone_group) + 1;
    const uint32_t largest = sign_group[0] > sign_group[1] ? sign_group[0] : sign_group[1];
    const uint32_t sign_groups = __reduce_max_sync(kAllLanes, largest) + 1;
    tables.grouped[c] = grouped;
    if (lane < kZones) tables.zone_row[c][lane] = static_cast<uint8_t>(zone_group * sign_groups);
    for (uint32_t i = 0; i < 2; ++i) {
      tables.pattern_row[c][pattern_in_order(lane + i * kLanes)] = static_cast<uint8_t>(sign_group[i]);
    }
    for (uint32_t row = 0; row < zone_groups * sign_groups; ++row) {
      if (!read_levels(bits, tables.table_count, tables.table_of[c] + row * Form::kLevels)) return false;
    }
    return true;
  }

  L3_INLINE static bool read_classes(Tables& tables, Bits& bits, uint32_t c, uint32_t& class_tables) {
    if (tables.classes[c] == 1) return true;
    class_tables = bits.take(3) + 1;
    const uint32_t contexts = Serial::class_contexts(tables, c), lane = lane_number();
    const uint32_t table = class_tables > 1 ? bits.take_each(3, contexts) : 0;
    if (lane < contexts) tables.class_table_of[c][lane] = static_cast<uint8_t>(table);
    return !__any_sync(kAllLanes, table >= class_tables);
  }

  // For one lane. Each symbol's bits fit in a window.
  L3_INLINE static bool read_table(Bits bits, uint32_t symbols, uint16_t* frequencies) {
    const uint32_t last = bits.take(8), rest = bits.take(5), mode = bits.take(2);
    if (last == 0 || last >= symbols || rest > last || mode == 3) return false;
    // The expectation of each mode, without a branch.
    const uint32_t use_before = mode != 1, use_before_that = mode != 0, is_mean = mode == 2;
    uint32_t before = kFirstGuess, before_that = kFirstGuess, most = 0, sum = 0, frequency = 0;
    PartBits::Stream stream = bits.stream();
    for (uint32_t i = 0; i < last; ++i) {
      const uint32_t window = stream.window();
      const uint32_t guess = (before * use_before + before_that * use_before_that + is_mean) >> is_mean;
      // Ones, a zero after them, and a sign if there are any.
      const uint32_t magnitude = lowest_one(~window | 1u << 31);
      const bool negative = magnitude != 0 && (window >> magnitude & 2) != 0;
      const uint32_t n = guess + (negative ? 0 - magnitude : magnitude);
      most = n > most ? n : most;
      before_that = before;
      before = n;
      const uint32_t is_there = n != 0, at_mantissa = magnitude + (magnitude != 0 ? 2 : 1);
      const uint32_t t = smaller(n - is_there, kMantissaBits);
      // Codes that are longer than a window, or give such shifts, are not valid: `most` says so below.
      frequency = (is_there << t | (window >> (at_mantissa & 31) & ((1u << t) - 1))) << ((n - 1 - t) & 31);
      frequencies[i < rest ? i : i + 1] = static_cast<uint16_t>(frequency);
      sum += frequency;
      stream.skip(at_mantissa + t);
    }
    if (most > kMaxFrequencyBits || sum == 0 || sum >= kProbabilities) return false;
    frequencies[rest] = static_cast<uint16_t>(kProbabilities - sum);
    bits.move_to(stream);
    return frequencies[last] != 0 && bits.ends_here();
  }

 private:
  template <uint32_t kFrom, uint32_t kTo>
  L3_INLINE static int32_t sum_of(const int32_t (&weight)[kMaxTaps]) {
    int32_t sum = 0;
#pragma unroll
    for (uint32_t tap = kFrom; tap < kTo; ++tap) sum += weight[tap];
    return sum;
  }

  // Reads a row. The table changes at few levels, so a turn of the loop skips the levels that keep it, and reads a
  // change. A lane keeps every 32nd level.
  L3_INLINE static bool read_levels(Bits& bits, uint32_t tables, uint8_t* row) {
    constexpr uint32_t kRounds = (Form::kLevels + kLanes - 1) / kLanes, kMostKept = 29 - Form::kTableBits;
    const uint32_t last = bits.take(Form::kLevelBits);
    uint32_t table = bits.take(Form::kTableBits);
    if (last >= Form::kLevels || table >= tables) return false;
    uint32_t of[kRounds], most = table;
    for (uint32_t& own : of) own = table;
    PartBits::Stream stream = bits.stream();
    uint32_t level = 1;
    while (level <= last) {
      const uint32_t window = stream.window();
      const uint32_t kept = smaller(lowest_one(window | 1u << kMostKept), last + 1 - level);
      const uint32_t change = window >> kept;
      level += kept;
      const bool named = (change & 2) != 0, changes = (change & 1) != 0 && level <= last;
      const uint32_t changed = named ? change >> 2 & ((1u << Form::kTableBits) - 1) : table + 1;
      table = changes ? changed : table;
      most = table > most ? table : most;
      for (uint32_t i = 0; i < kRounds; ++i) of[i] = lane_number() + i * kLanes >= level ? table : of[i];
      stream.skip(kept + (!changes ? 0 : named ? 2 + Form::kTableBits : 2));
      level += changes ? 1 : 0;
    }
    if (most >= tables) return false;
    bits.move_to(stream);
    for (uint32_t i = 0; i < kRounds; ++i) {
      const uint32_t own = lane_number() + i * kLanes;
      if (own < Form::kLevels) row[own] = static_cast<uint8_t>(of[i]);
    }
    return true;
  }
};

}  // namespace l3
