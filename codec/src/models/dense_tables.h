// A model in the decoder's form (section 12 of the spec): arrays at fixed places, so that lookups need no search.
#pragma once

#include "container/dense.h"

namespace l3 {

constexpr uint32_t kZones = 16;
constexpr uint32_t kSignPatterns = 64;
constexpr uint32_t kMaxZoneGroups = 4;
constexpr uint32_t kMaxSignGroups = 8;
constexpr uint32_t kMaxRows = kMaxZoneGroups * kMaxSignGroups;
constexpr uint32_t kMaxClassTables = 8 * kMaxChannels;
constexpr uint32_t kTableBuckets = 256;
constexpr uint32_t kClassBuckets = 32;

// A bucket of slots (section 12.4), with two symbols.
// own: the bucket's own symbol. Its frequency, and from bit 16 on how many of the bucket's slots belong to it.
// other: the other symbol. Its frequency, and from bit 12 on a number that is added to a slot's place in the bucket to
// give the slot's number within the symbol, modulo 4096.
//
// From bit 24 on, both hold what the symbol stands for: a class, or a sample's difference from a prediction that does
// not lean upwards.
struct Bucket {
  uint32_t own, other;
};

// Even symbols stand for the differences 0, 1, 2 ..., odd ones for -1, -2, -3 ...
L3_INLINE constexpr uint32_t difference_of(uint32_t symbol) { return ((symbol >> 1) ^ (0u - (symbol & 1))) & 0xFF; }
L3_INLINE constexpr uint32_t symbol_of(uint32_t difference) {
  return (difference << 1 ^ (0u - (difference >> 7))) & 0xFF;
}

struct DenseTables {
  uint32_t channels;
  uint32_t classes[kMaxChannels];
  uint32_t table_count, class_table_count;
  bool grouped[kMaxChannels];  // false: every sample uses row 0

  uint32_t weights[kMaxChannels][kMaxClasses][kMaxTapWords];  // four signed bytes each
  uint32_t activity[kMaxChannels][kActivityWords];            // four bytes each
  // The row is the sum of two numbers, one from the zone and one from the sign pattern. Patterns are in the decoder's
  // order (pattern_in_order).
  alignas(64) uint8_t zone_row[kMaxChannels][kZones];
  alignas(64) uint8_t pattern_row[kMaxChannels][kSignPatterns];
  // By row and level. Four bytes longer, since lanes load four bytes to read one.
  uint8_t table_of[kMaxChannels][kMaxRows * kLevels + 4];
  uint8_t class_table_of[kMaxChannels][kMaxClasses + 4];  // by the class of the channel before

  alignas(64) Bucket buckets[kMaxTables * kTableBuckets];
  alignas(64) Bucket class_buckets[kMaxClassTables * kClassBuckets];
};

// The decoder computes sign patterns in another bit order than the spec: bits 0 and 1 say whether W and N are at least
// p, bits 2 to 5 are the signs of the errors.
L3_INLINE constexpr uint32_t pattern_in_order(uint32_t pattern) { return (pattern >> 4 | pattern << 2) & 63; }

// The zone of a prediction (section 13.4), from its distance from the end of the range towards which it leans.
L3_INLINE constexpr uint32_t zone_of(uint32_t distance) { return (3613 * distance + 61923) >> 16; }

// Builds the buckets of a table from `kBuckets` frequencies that add up to 4096.
template <uint32_t kBuckets>
L3_INLINE void build_buckets(const uint16_t* frequencies, Bucket* buckets) {
  constexpr uint32_t kSlots = kProbabilities / kBuckets;
  constexpr bool kOfSamples = kBuckets == kTableBuckets;
  const auto meaning = [](uint32_t symbol) { return (kOfSamples ? difference_of(symbol) : symbol) << 24; };
  uint16_t rest[kBuckets];
  for (uint32_t q = 0; q < kBuckets; ++q) {
    rest[q] = frequencies[q];
    buckets[q] = {frequencies[q] | kSlots << 16 | meaning(q), 0};
  }
  const auto next = [&](uint32_t q, bool large) {
    while (q < kBuckets && (frequencies[q] >= kSlots) != large) ++q;
    return q;
  };
  uint32_t small = next(0, false), large = next(0, true);
  for (;;) {
    uint32_t filled, by = large;
    if (rest[large] < kSlots) {
      by = next(large + 1, true);
      if (by >= kBuckets) break;
      filled = large;
    } else {
      if (small >= kBuckets) {
        // The large symbols that are left fill their own buckets exactly. Only the branch above could make one of them
        // small.
        break;
      }
      filled = small;
      small = next(small + 1, false);
    }
    const uint32_t own = rest[filled];
    rest[by] = static_cast<uint16_t>(rest[by] - (kSlots - own));
    const uint32_t number = (rest[by] - own) & (kProbabilities - 1);
    buckets[filled] = {frequencies[filled] | own << 16 | meaning(filled), frequencies[by] | number << 12 | meaning(by)};
    large = by;
  }
}

}  // namespace l3
