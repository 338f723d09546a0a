// The symbols of one lane in numbers, for tiles of so few lanes that vectors would have few elements that work.
#pragma once

#include "engine/vectors.h"
#include "models/token.h"

namespace l3 {

// A lane's state. `words` is where the next word of the payload is.
struct LaneCoder {
  uint32_t state;
  uint32_t floor;  // below it, the lane takes words: 0 in the ending

  L3_INLINE void refill(const uint8_t*& words) {
    const bool is_low = state < floor;
    const uint32_t filled = held(state << 16 | load_u16(words));
    state = is_low ? filled : state;
    words += 2 * uint32_t{is_low};
  }
  // Decodes a symbol by a table whose first bucket is given. Without branches, which no processor predicts. Returns
  // what the symbol stands for.
  L3_INLINE uint32_t decode(const TokenTables& tables, uint32_t first_bucket, const uint8_t*& words) {
    const uint32_t slot = state % kProbabilities, place = slot % kSlots;
    const Bucket& bucket = tables.buckets[size_t{first_bucket} + slot / kSlots];
    const uint32_t own = held(bucket.own & 0xFF000FFF), other = held(bucket.other);
    const uint32_t chosen = place < slots_of_own(bucket) ? own : other;
    const uint32_t number = ((chosen >> 12) + place) % kProbabilities;
    state = chosen % kProbabilities * (state >> kProbabilityBits) + number;
    refill(words);
    return chosen >> 24;
  }
  // Decodes the symbol of a run of slots, without a look-up. Returns false if the slot is not in the run.
  L3_INLINE bool pass(const SlotRun& run, const uint8_t*& words) {
    const uint32_t slot = state % kProbabilities;
    if (slot - run.first >= run.count) return false;
    const uint32_t number = held(run.number - slot + 2 * (slot % kSlots));
    state = run.frequency * (state >> kProbabilityBits) + number;
    if (state < floor) refill(words);
    return true;
  }
  // The number of a token that has raw bits.
  L3_INLINE uint32_t with_raw_bits(uint32_t token, const uint8_t*& words) {
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
