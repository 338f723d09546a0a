// The entropy coder of section 13.1, run backwards: it codes first what the decoder reads last.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>

#include "models/dense_tables.h"

namespace l3 {

// What coding a symbol needs.
struct SymbolCode {
  uint32_t limit;       // a state of at least this value emits a word first
  uint32_t reciprocal;  // of the frequency, together with `shift` and `more`
  uint16_t frequency;
  uint16_t first;  // index of the symbol's first slot in `slots`
  uint8_t shift, more;
};

// Prepares the division of a state by a frequency f as a multiplication by 2^k / f, rounded up.
//
// Let 2^s be the smallest power of two that is at least f. States are below 2^20 f. The quotient is exact if the
// rounded reciprocal times f exceeds 2^k by at most 2^(k - 20) / f, which k = 20 + 2 s guarantees. For f above 2048
// the product would not fit 64 bits. Then k is 43, and the reciprocal is rounded up or down, whichever is closer; if
// down, the state is increased by one before the multiplication.
constexpr void divide_by(uint32_t f, SymbolCode& code) {
  const uint32_t s = f == 1 ? 0 : 32 - static_cast<uint32_t>(__builtin_clz(f - 1));
  code.shift = static_cast<uint8_t>(std::min(20 + 2 * s, 43u));
  const uint64_t power = uint64_t{1} << code.shift;
  const uint64_t down = power / f, rest = power % f;
  code.more = rest != 0 && rest < f - rest && code.shift == 43;
  code.reciprocal = static_cast<uint32_t>(down + (rest != 0 && code.more == 0 ? 1 : 0));
  code.limit = f << (32 - kProbabilityBits);
  code.frequency = static_cast<uint16_t>(f);
}

// A table as the encoder uses it: the slots of each of its symbols.
template <uint32_t kSymbols>
struct SlotTable {
  SymbolCode codes[kSymbols];
  uint16_t slots[kProbabilities];  // by symbol and number within the symbol

  // `symbol_of_meaning` maps what a bucket stands for (a class or a difference) back to the symbol.
  template <class SymbolOf>
  void list(const Bucket* buckets, uint32_t bucket_count, const SymbolOf& symbol_of_meaning) {
    const uint32_t size = kProbabilities / bucket_count;
    std::memset(codes, 0, sizeof(codes));
    uint32_t first = 0;
    for (uint32_t q = 0; q < bucket_count; ++q) {
      const uint32_t frequency = buckets[q].own & (kProbabilities - 1);
      codes[q].first = static_cast<uint16_t>(first);
      if (frequency > 0) divide_by(frequency, codes[q]);
      first += frequency;
    }
    for (uint32_t q = 0; q < bucket_count; ++q) {
      const uint32_t own = buckets[q].own >> 16 & 0xFF;
      const uint32_t other = symbol_of_meaning(buckets[q].other >> 24);
      for (uint32_t k = 0; k < size; ++k) {
        const uint32_t symbol = k < own ? q : other;
        const uint32_t number = k < own ? k : ((buckets[q].other >> 12) + k) & (kProbabilities - 1);
        slots[codes[symbol].first + number] = static_cast<uint16_t>(q * size + k);
      }
    }
  }
};

// The approximate cost of a symbol with this frequency, in 16ths of a bit: from the position of the frequency's top
// bit, interpolated linearly. 0 if it has no code.
inline uint8_t cost_of_frequency(uint32_t frequency) {
  if (frequency == 0) return 0;
  const uint32_t top = 31 - static_cast<uint32_t>(__builtin_clz(frequency));
  return static_cast<uint8_t>(16 * (kProbabilityBits - top) - ((frequency << 4 >> top) - 16));
}

// Chooses the number of lanes, as a power of two, for a tile that takes about `bits` bits. Each lane costs some bytes.
inline uint32_t log_lanes_for(uint32_t width, uint32_t height, double bits, double bits_of_lane, uint32_t minimum = 0) {
  while (width * height > kMaxPixelsOfLane << minimum) ++minimum;
  uint32_t log = 0;
  while (log < kMaxLogLanes && 1u << log < height && (log < minimum || bits > bits_of_lane * (2 << log))) ++log;
  return log;
}

// The state of a lane within the ending of a tile, where the coder emits no words.
class EndingState {
 public:
  explicit EndingState(uint32_t last) : x_(last) {}

  template <uint32_t kSymbols>
  void put(const SlotTable<kSymbols>& table, uint32_t symbol) {
    const SymbolCode& code = table.codes[symbol];
    if (holds()) x_ = x_ / code.frequency << kProbabilityBits | table.slots[code.first + x_ % code.frequency];
  }
  // Puts a symbol whose slots follow each other.
  void put(const SymbolCode& code) {
    if (x_ >= code.limit) {
      x_ = uint64_t{1} << 32;
      return;
    }
    const uint64_t times = code.reciprocal * (x_ + code.more) >> code.shift;
    x_ = (times << kProbabilityBits) + code.first + (x_ - times * code.frequency);
  }
  void put_raw(uint32_t raw, uint32_t count) {
    if (holds()) x_ = x_ << count | raw;
  }
  // Returns false if the symbols so far do not fit a state.
  bool holds() const { return x_ >> 32 == 0; }
  uint64_t state() const { return x_; }

 private:
  uint64_t x_;
};

// Chooses the ending that saves most. cost(at) is the cost of a pixel, in units of which a bit has `kUnitsOfBit`. A
// lane saves what its part of the ending costs, up to two bytes. A lane's part must not cost more than a state can
// hold.
template <uint32_t kUnitsOfBit, class Cost>
uint32_t choose_ending(uint32_t width, uint32_t height, uint32_t log_lanes, const Cost& cost) {
  constexpr uint32_t kMaxSaved = 16 * kUnitsOfBit, kMaxHeld = 31 * kUnitsOfBit;
  const uint32_t lanes = 1u << log_lanes;
  uint32_t taken[kLanes] = {};
  uint32_t best = 0, most_saved = 0;
  Ending before{height, width};
  for (uint32_t t = 1; t <= kMaxEnding; ++t) {
    const Ending ending = ending_of(t << 3 | log_lanes, width, height);
    const auto add = [&](uint32_t row, uint32_t from, uint32_t to) {
      uint32_t& of_lane = taken[row % lanes];
      for (uint32_t x = from; x < to && of_lane <= kMaxHeld; ++x) of_lane += cost(size_t{row} * width + x);
    };
    for (uint32_t row = ending.row; row < height; ++row) {
      add(row, ending.column, row >= before.row ? before.column : width);
    }
    before = ending;
    uint32_t saved = 0;
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      if (taken[lane] > kMaxHeld) return best;
      saved += smaller(taken[lane], kMaxSaved);
    }
    if (saved > most_saved) {
      most_saved = saved;
      best = t;
    }
    if (ending.row == 0 && ending.column == 0) break;
  }
  return best;
}

class ReverseCoder {
  struct Quotient {
    uint32_t times, rest;
  };

 public:
  // Writes words backwards, from `end` down.
  ReverseCoder(uint32_t lanes, uint16_t* end) : lanes_(lanes), words_(end), end_(end) {
    std::fill(states_, states_ + lanes, kStateFloor);
  }

  // Chooses the tile's ending and codes its pixels, the last one first: calls put(state, at) for each. Returns the
  // tile's parameters. `kRises`: what put() makes of a higher state is not lower, since slots of a symbol follow each
  // other.
  template <uint32_t kUnitsOfBit = 16, bool kRises = false, class Cost, class Put>
  uint8_t begin(uint32_t width, uint32_t height, uint32_t log_lanes, const Cost& cost, const Put& put) {
    uint32_t t = choose_ending<kUnitsOfBit>(width, height, log_lanes, cost);
    // Costs are approximate, so the ending may hold more than the states can. Then take the next smaller one; 0 is
    // empty.
    while (!code_ending<kRises>(width, height, ending_of(t << 3 | log_lanes, width, height), put)) --t;
    return static_cast<uint8_t>(t << 3 | log_lanes);
  }

  template <uint32_t kSymbols>
  L3_INLINE void put(uint32_t lane, const SlotTable<kSymbols>& table, uint32_t symbol) {
    const SymbolCode& code = table.codes[symbol];
    const Quotient quotient = divide(lane, code);
    states_[lane] = quotient.times << kProbabilityBits | table.slots[code.first + quotient.rest];
  }
  // Codes the samples of a tile, except for its ending, in the order of the steps of section 13.3. `codes` has a code
  // for each sample, channel by channel and row by row: kSymbols * table + symbol.
  template <uint32_t kSymbols>
  void put_steps(uint32_t width, uint32_t height, uint32_t channels, const Ending& ending, const uint16_t* codes,
                 const SlotTable<kSymbols>* tables) {
    constexpr uint16_t kNoCode = 0xFFFF;
    // All codes in order: for each step and each channel one for each lane, or none where a lane is outside the tile.
    const uint32_t period = dense_period(width, lanes_), steps = dense_steps(width, height, lanes_);
    const size_t each = size_t{channels} * lanes_;
    const auto in_order = std::make_unique_for_overwrite<uint16_t[]>(steps * each);
    std::memset(in_order.get(), 0xFF, steps * each * sizeof(uint16_t));
    for (uint32_t c = 0; c < channels; ++c) {
      for (uint32_t y = 0; y < height; ++y, codes += width) {
        const uint32_t lane = y % lanes_, columns = y < ending.row ? width : ending.column;
        uint16_t* to = in_order.get() + (size_t{y / lanes_} * period + 2 * lane) * each + size_t{c} * lanes_ + lane;
        for (uint32_t x = 0; x < columns; ++x, to += each) *to = codes[x];
      }
    }
    for (const uint16_t* next = in_order.get() + steps * each; next != in_order.get();) {
      for (uint32_t lane = lanes_; lane-- > 0;) {
        const uint16_t code = *--next;
        if (code != kNoCode) put(lane, tables[code / kSymbols], code % kSymbols);
      }
    }
  }
  // Codes symbols whose slots follow each other, the last one first: for each step a number for each lane, the code of
  // its symbol or kNoNumber.
  static constexpr uint8_t kNoNumber = 0xFF;
  void put_steps(const uint8_t* numbers, size_t steps, const SymbolCode* codes) {
    for (const uint8_t* next = numbers + steps * lanes_; next != numbers;) {
      for (uint32_t lane = lanes_; lane-- > 0;) {
        const uint8_t number = *--next;
        if (number == kNoNumber) continue;
        const Quotient quotient = divide(lane, codes[number]);
        states_[lane] = quotient.times << kProbabilityBits | (codes[number].first + quotient.rest);
      }
    }
  }
  // Codes one of two alternatives, the first of which has this frequency.
  void put_binary(uint32_t lane, uint32_t frequency, bool is_first) {
    const uint32_t own = is_first ? frequency : kProbabilities - frequency, before = is_first ? 0 : frequency;
    uint32_t x = states_[lane];
    if (x >= own << (32 - kProbabilityBits)) {
      *--words_ = static_cast<uint16_t>(x);
      x >>= 16;
    }
    states_[lane] = x / own << kProbabilityBits | (before + x % own);
  }
  // Codes `count` raw bits, 1 to 16.
  void put_raw(uint32_t lane, uint32_t raw, uint32_t count) {
    uint32_t x = states_[lane];
    if (x >> (32 - count) != 0) {
      *--words_ = static_cast<uint16_t>(x);
      x >>= 16;
    }
    states_[lane] = x << count | raw;
  }

  // Writes states and words as a payload, and zeros up to a multiple of the unit. Returns the size without these zeros,
  // or 0 if it exceeds `room`.
  uint32_t write(uint8_t* out, uint32_t room) const {
    const size_t count = static_cast<size_t>(end_ - words_);
    const uint64_t bytes = 4 * uint64_t{lanes_} + 2 * count;
    if (bytes > room) return 0;
    std::memset(out + pad_to_unit(bytes) - kUnit, 0, kUnit);
    for (uint32_t lane = 0; lane < lanes_; ++lane) store_u32(out + 4 * lane, states_[lane]);
    uint8_t* to = out + 4 * lanes_;
    for (size_t i = 0; i < count; ++i) store_u16(to + 2 * i, words_[i]);
    return static_cast<uint32_t>(bytes);
  }

 private:
  // Takes a word from a lane's state if it is too high for a symbol, then divides it by the symbol's frequency.
  L3_INLINE Quotient divide(uint32_t lane, const SymbolCode& code) {
    uint32_t x = states_[lane];
    words_[-1] = static_cast<uint16_t>(x);
    const bool full = x >= code.limit;
    words_ -= full;
    x = full ? x >> 16 : x;
    const uint32_t times = static_cast<uint32_t>(uint64_t{code.reciprocal} * (uint64_t{x} + code.more) >> code.shift);
    return {times, x - times * code.frequency};
  }
  static constexpr uint32_t kFloorBits = 16;
  static_assert(kStateFloor == 1u << kFloorBits);

  template <bool kRises, class Put>
  bool code_ending(uint32_t width, uint32_t height, const Ending& ending, const Put& put) {
    uint32_t states[kLanes];
    for (uint32_t lane = 0; lane < lanes_; ++lane) {
      const auto from = [&](uint32_t last) {
        EndingState state(last);
        for (uint32_t y = height; y-- > ending.row;) {
          for (uint32_t x = y % lanes_ == lane ? width : 0; x-- > ending.column;) put(state, size_t{y} * width + x);
        }
        return state;
      };
      // Begin with the least power of two from which the state is high enough at the end. 2^kFloorBits always is.
      uint32_t low = 0, high = kFloorBits;
      while (low < high) {
        const uint32_t middle = kRises ? (low + high) / 2 : low;
        if (from(1u << middle).state() >= kStateFloor) {
          high = middle;
        } else {
          low = middle + 1;
        }
      }
      const EndingState state = from(1u << low);
      if (!state.holds()) return false;
      states[lane] = static_cast<uint32_t>(state.state());
    }
    std::copy(states, states + lanes_, states_);
    return true;
  }

  const uint32_t lanes_;
  uint16_t* words_;
  const uint16_t* const end_;
  uint32_t states_[kLanes];
};

// Goes through the steps of section 13.3 backwards, leaving out the ending. Calls use(count, lanes, places) for each
// step with the active lanes and the index of each lane's pixel, counted row by row.
template <class Use>
void walk_backwards(uint32_t width, uint32_t height, uint32_t lanes, const Ending& ending, const Use& use) {
  const uint32_t period = dense_period(width, lanes);
  const uint32_t steps = dense_steps(width, height, lanes);
  // The position of each lane. Before its first step a lane is in a row above the tile.
  int32_t column[kLanes], row[kLanes];
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    const int32_t u = static_cast<int32_t>(steps) - 1 - 2 * static_cast<int32_t>(lane);
    const int32_t turn = u < 0 ? -1 : u / static_cast<int32_t>(period);
    column[lane] = u - turn * static_cast<int32_t>(period);
    row[lane] = static_cast<int32_t>(lane) + turn * static_cast<int32_t>(lanes);
  }
  for (uint32_t step = steps; step-- > 0;) {
    size_t at[kLanes];
    uint8_t lane_of[kLanes];
    uint32_t active = 0;
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      lane_of[active] = static_cast<uint8_t>(lane);
      at[active] = static_cast<size_t>(row[lane]) * width + static_cast<uint32_t>(column[lane]);
      const uint32_t x = static_cast<uint32_t>(column[lane]), y = static_cast<uint32_t>(row[lane]);
      active += row[lane] >= 0 && y < height && x < width && !ending.has(x, y);
      if (column[lane]-- == 0) {
        column[lane] = static_cast<int32_t>(period) - 1;
        row[lane] -= static_cast<int32_t>(lanes);
      }
    }
    use(active, lane_of, at);
  }
}

}  // namespace l3
