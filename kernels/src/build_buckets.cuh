// Converts frequencies to buckets (section 12.4 of the spec). A warp computes in parallel what build_buckets() in
// codec/ computes step by step.
#pragma once

#include "cuda_warp.cuh"
#include "models/dense_tables.h"

namespace l3 {

// Running sums over symbols, in shared memory.
struct BucketScratch {
  uint16_t excess[kTableBuckets];   // by how much large frequencies exceed the size of a bucket
  uint16_t missing[kTableBuckets];  // by how much small frequencies fall short of it
  uint16_t next_large[kTableBuckets + 1];
};

// Returns the index of the first of `kCount` increasing numbers that is at least `number`, or `kCount`.
template <uint32_t kCount>
L3_INLINE uint32_t first_at_least(const uint16_t* rising, uint32_t number) {
  uint32_t from = 0;
#pragma unroll
  for (uint32_t step = kCount; step > 1; step /= 2) {
    if (rising[from + step / 2 - 1] < number) from += step / 2;
  }
  return from + (rising[from] < number ? 1u : 0u);
}

// The spec fills the small symbols from the large ones, both in increasing order. The large symbols up to b have
// `excess[b]` to spare in total. The small symbols before q are filled before q. So the symbol that fills q is the
// first large one whose sum is at least the total missing before q. A large symbol b becomes small when the total
// missing passes its sum; the next large symbol then fills it.
template <uint32_t kBuckets>
L3_INLINE void build_buckets_by_warp(const uint16_t* frequencies, BucketScratch& scratch, Bucket* buckets) {
  constexpr uint32_t kSlots = kProbabilities / kBuckets;
  constexpr bool kOfSamples = kBuckets == kTableBuckets;
  constexpr uint32_t kRounds = kBuckets / kLanes;
  const auto meaning = [](uint32_t symbol) { return (kOfSamples ? difference_of(symbol) : symbol) << 24; };
  __syncwarp();
  uint32_t given = 0, wanted = 0;
  for (uint32_t round = 0; round < kRounds; ++round) {
    const uint32_t q = round * kLanes + lane_number();
    const uint32_t f = frequencies[q];
    const bool is_large = f >= kSlots;
    // Both sums are below 2^16.
    const uint32_t sums = running_sum(is_large ? f - kSlots : (kSlots - f) << 16);
    scratch.excess[q] = static_cast<uint16_t>(given + (sums & 0xFFFF));
    scratch.missing[q] = static_cast<uint16_t>(wanted + (sums >> 16));
    const uint32_t all = __shfl_sync(kAllLanes, sums, kLanes - 1);
    given += all & 0xFFFF;
    wanted += all >> 16;
  }
  // Go backwards to find the next large symbol from each symbol on.
  uint32_t beyond = kBuckets;
  if (lane_number() == 0) scratch.next_large[kBuckets] = kBuckets;
  for (uint32_t round = kRounds; round-- > 0;) {
    const uint32_t q = round * kLanes + lane_number();
    const uint32_t large = __ballot_sync(kAllLanes, frequencies[q] >= kSlots);
    const uint32_t from_here = large & ~(lanes_so_far() >> 1);
    scratch.next_large[q] = static_cast<uint16_t>(
        from_here != 0 ? round * kLanes + static_cast<uint32_t>(__ffs(static_cast<int>(from_here)) - 1) : beyond);
    if (large != 0) beyond = round * kLanes + static_cast<uint32_t>(__ffs(static_cast<int>(large)) - 1);
  }
  __syncwarp();
  for (uint32_t round = 0; round < kRounds; ++round) {
    const uint32_t q = round * kLanes + lane_number();
    const uint32_t f = frequencies[q];
    uint32_t own = kSlots, by = kBuckets, left = 0;
    if (f < kSlots) {
      const uint32_t before = scratch.missing[q] - (kSlots - f);
      // Nothing is missing before the first small symbol, so the first large symbol fills it, even with no excess.
      by = before == 0 ? scratch.next_large[0] : first_at_least<kBuckets>(scratch.excess, before);
      own = f;
      left = scratch.excess[by] - scratch.missing[q] + kSlots;
    } else {
      const uint32_t passed = first_at_least<kBuckets>(scratch.missing, scratch.excess[q] + 1u);
      by = scratch.next_large[q + 1];
      if (passed < kBuckets && by < kBuckets) {
        own = scratch.excess[q] - scratch.missing[passed] + kSlots;
        left = scratch.excess[by] - scratch.missing[passed] + kSlots;
      } else {
        by = kBuckets;
      }
    }
    Bucket bucket{f | own << 16 | meaning(q), 0};
    if (by < kBuckets) {
      const uint32_t number = (left - own) & (kProbabilities - 1);
      bucket.other = frequencies[by] | number << 12 | meaning(by);
    }
    buckets[q] = bucket;
  }
}

}  // namespace l3
