// The symbols of one lane in numbers, for tiles of so few lanes that vectors would have few elements that work.
#pragma once

#include "engine/vectors.h"
#include "models/token.h"

namespace l3 {

// The words that lanes take: those of a window of the payload, in turn.
struct LaneWords {
  const uint8_t* window;
  size_t taken;

  L3_INLINE uint32_t next() const { return load_u16(window + 2 * taken); }
};

// A lane's state.
struct LaneCoder {
  uint32_t state;
  uint32_t floor;  // below it, the lane takes words: 0 in the ending

  L3_INLINE void refill(LaneWords& words) {
    const uint32_t filled = held(state << 16 | words.next());
    const bool is_low = state < floor;
    words.taken += size_t{is_low};
    state = is_low ? filled : state;
  }
  // Decodes a symbol by a table whose first bucket is given. Without branches, which no processor predicts. Returns
  // what the symbol stands for. Each step of the chain from the state to the next one counts: so the frequency is
  // selected on its own, and the state with a word is computed beside the one without.
  L3_INLINE uint32_t decode(const TokenTables& tables, uint32_t first_bucket, LaneWords& words) {
    const uint32_t place = state % kSlots,
                   at = state / (kSlots / sizeof(Bucket)) & (kTokenBuckets - 1) * sizeof(Bucket);
    const auto* const table = reinterpret_cast<const uint8_t*>(held(tables.buckets + first_bucket));
    const Bucket& bucket = *reinterpret_cast<const Bucket*>(table + at);
    const uint32_t own = held(bucket.own & 0xFF000FFF), other = held(bucket.other), slots = slots_of_own(bucket);
    const uint32_t own_frequency = held(own % kProbabilities), other_frequency = held(other % kProbabilities);
    const uint32_t frequency = held(place) < slots ? own_frequency : other_frequency;
    const uint32_t chosen = place < slots ? own : other;
    const uint32_t number = ((chosen >> 12) + place) % kProbabilities;
    const uint32_t product = frequency * (state >> kProbabilityBits);
    const uint32_t filled = held((product << 16) + (number << 16 | words.next())), next = held(product + number);
    const bool is_low = next < floor;
    words.taken += size_t{is_low};
    state = is_low ? filled : next;
    return chosen >> 24;
  }
  // Decodes the symbol that has most slots. Returns false if the slot is not one of those.
  L3_INLINE bool pass(const FlatSlots& flat, LaneWords& words) {
    const uint32_t place = state % kSlots;
    const FlatSlots::Slots& slots = flat.of[state % kProbabilities / kSlots];
    if (place < slots.first) return false;
    state = flat.frequency * (state >> kProbabilityBits) + place + slots.number;
    if (state < floor) {
      state = state << 16 | words.next();
      ++words.taken;
    }
    return true;
  }
  // The number of a token that has raw bits.
  L3_INLINE uint32_t with_raw_bits(uint32_t token, LaneWords& words) {
    const uint32_t bits = raw_bits_of(token), number = first_of(token) | (state & ((1u << bits) - 1));
    state >>= bits;
    refill(words);
    return number;
  }

 private:
  static constexpr uint32_t kSlots = kProbabilities / kTokenBuckets;  // of a bucket

  // Of a bucket's slots, how many are its own: a byte that is loaded at once.
  L3_INLINE static uint32_t slots_of_own(const Bucket& bucket) {
    return reinterpret_cast<const uint8_t*>(&bucket.own)[__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 2 : 1];
  }
};

// The equalities of section 14.4 as bits: all of them, those with W, and W with WW.
constexpr uint32_t kAllEqual = kMatchPatterns - 1, kWithW = 0x19, kWwIsW = 0x10;

// For each neighbour that a pixel may repeat, a byte: the equalities with W and WW of the next pixel. The index has the
// equalities 0 to 3 of the pixel, and in bit 4 whether NW is NE. Whether W is NE is not in it.
struct Repeats {
  uint32_t of[32];
  constexpr Repeats() : of() {
    for (uint32_t i = 0; i < 32; ++i) {
      const uint32_t w_n = i & 1, n_ne = i >> 1 & 1, n_nw = i >> 2 & 1, w_nw = i >> 3 & 1, nw_ne = i >> 4 & 1;
      of[i] = (w_n << 3 | kWwIsW) | (n_ne | 8 | w_n << 4) << 8 | (1 | n_ne << 3) << 16 |
              (nw_ne | n_nw << 3 | w_nw << 4) << 24;
    }
  }
  L3_INLINE uint32_t operator()(uint32_t equalities, bool w_is_ne) const {
    return of[equalities] | (w_is_ne ? 0x100001 : 0);
  }
};
inline constexpr Repeats kRepeats{};

// The equalities with W and WW of the pixel after one that escaped, if its N and NE are these. Encoders do not let
// pixels escape that equal a neighbour.
L3_INLINE uint32_t equal_after_escape(uint32_t value, uint32_t w, uint32_t n, uint32_t ne) {
  if ((value == w) | (value == n) | (value == ne)) {
    return uint32_t{value == ne} | uint32_t{value == n} << 3 | uint32_t{value == w} << 4;
  }
  return 0;
}

}  // namespace l3
