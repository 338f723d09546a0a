// How lanes look up the frequency of a context (section 24 of the spec).
//
// A lane has its history and those of the three lanes above it in 64 bits, four for each of the last 16 steps: the last
// eight steps are near, the others far. A word of them is turned and masked until each neighbour is at its place in the
// context. One turn serves all neighbours that are equally far from their places. Therefore the places are chosen so
// that few turns do: with the neighbours of a usual model three or four, all of them near. The frequencies in shared
// memory are in the order of these places.
#pragma once

#include "cuda_word_warp.cuh"
#include "models/bits.h"

namespace l3 {

constexpr uint32_t kFarBit = 32;  // of a place in the history: it is in the far word

// The place of a neighbour in the history: the newest step is in the lowest four bits, the lane's own bit above the
// others.
L3_INLINE constexpr uint32_t place_in_history(uint32_t neighbour) {
  return kBitRows * (neighbour % kBitColumns) + kBitRows - 1 - neighbour / kBitColumns;
}
static_assert(place_in_history(8) == kFarBit + 3 && place_in_history(16) == 2);

L3_INLINE uint32_t turned(uint32_t word, uint32_t by) { return __funnelshift_r(word, word, by); }

// The places of neighbours in a context, which is in the order of the turns and not in that of the tree.
class BitPlaces {
 public:
  // Chooses them. All lanes of a warp call it, and have the same places then.
  L3_INLINE explicit BitPlaces(const BitTables& tables) {
    const uint32_t lane = lane_number();
    uint32_t left = (1u << tables.count) - 1;  // neighbours without a place
    uint32_t free = left;                      // places
    while (left != 0) {
      uint32_t near_word = 0, far_word = 0;
      for (uint32_t i = 0; i < tables.count; ++i) {
        const uint32_t place = place_in_history(tables.neighbours[i]), bit = (left >> i & 1) << place % kFarBit;
        (place < kFarBit ? near_word : far_word) |= bit;
      }
      // A lane tries a turn of each word. The one that brings most neighbours to a free place is next.
      const uint32_t near = static_cast<uint32_t>(__popc(turned(near_word, lane) & free)),
                     far = static_cast<uint32_t>(__popc(turned(far_word, lane) & free));
      const uint32_t best = __reduce_max_sync(kAllLanes, near >= far ? near << 6 | lane : far << 6 | kFarBit | lane);
      for (uint32_t i = 0; i < tables.count; ++i) {
        const uint32_t from = place_in_history(tables.neighbours[i]), to = (from - best) % kFarBit;
        if ((left >> i & 1) == 0 || ((from ^ best) & kFarBit) != 0 || (free >> to & 1) == 0) continue;
        places_ |= uint64_t{to} << (4 * i);
        left ^= 1u << i;
        free ^= 1u << to;
      }
    }
  }
  L3_INLINE uint32_t operator[](uint32_t i) const { return static_cast<uint32_t>(places_ >> (4 * i)) & 15; }

 private:
  uint64_t places_ = 0;  // four bits each
};
static_assert(kMaxBitNeighbours <= 16);

// The tables of an image in shared memory.
struct CudaBitTables {
  struct Turn {
    uint32_t by, mask;
  };
  struct Memory {
    uint32_t turns[2];  // how many there are of the near and of the far word
    uint32_t padding[2];
    Turn near[kMaxBitNeighbours], far[kMaxBitNeighbours];
    alignas(16) uint16_t frequencies[kBitContexts];
  };
};

// Copies a model's tables to shared memory. All threads of the block call it.
L3_INLINE void load_tables(const BitTables& from, CudaBitTables::Memory& to) {
  const uint32_t count = from.count;
  const BitPlaces places(from);
  for (uint32_t context = threadIdx.x; context < 1u << count; context += blockDim.x) {
    uint32_t at = 0;
    for (uint32_t i = 0; i < count; ++i) at |= (context >> (count - 1 - i) & 1) << places[i];
    to.frequencies[at] = from.frequencies[context];
  }
  if (threadIdx.x >= kLanes) return;
  // A lane has a neighbour. The first one of those with an equal turn writes it.
  constexpr uint32_t kNoTurn = 2 * kFarBit;
  const uint32_t lane = lane_number();
  uint32_t turn = kNoTurn, bit = 0;
  if (lane < count) {
    const uint32_t place = place_in_history(from.neighbours[lane]);
    bit = 2u << places[lane];  // frequencies have two bytes
    turn = (place & kFarBit) | (place - places[lane] - 1) % kFarBit;
  }
  uint32_t mask = 0, first = kLanes;
  for (uint32_t i = 0; i < count; ++i) {
    const bool same = __shfl_sync(kAllLanes, turn, i) == turn;
    const uint32_t of_it = __shfl_sync(kAllLanes, bit, i);
    if (same) {
      mask |= of_it;
      first = smaller(first, i);
    }
  }
  const CudaBitTables::Turn own{turn % kFarBit, mask};
  const bool writes = turn != kNoTurn && first == lane, is_far = (turn & kFarBit) != 0;
  const uint32_t near_ones = __ballot_sync(kAllLanes, writes && !is_far),
                 far_ones = __ballot_sync(kAllLanes, writes && is_far);
  if (writes) {
    const uint32_t at = static_cast<uint32_t>(__popc((is_far ? far_ones : near_ones) & ((1u << lane) - 1)));
    (is_far ? to.far : to.near)[at] = own;
  }
  if (lane == 0) {
    to.turns[0] = static_cast<uint32_t>(__popc(near_ones));
    to.turns[1] = static_cast<uint32_t>(__popc(far_ones));
  }
}

// Contexts of at most so many turns, which are in registers that all lanes share.
template <uint32_t kNear, uint32_t kFar>
class FewTurns {
  using Memory = CudaBitTables::Memory;

 public:
  L3_INLINE explicit FewTurns(uint32_t memory) : memory_(memory) {
    const uint2 turns = load_shared_two_here(memory + static_cast<uint32_t>(offsetof(Memory, turns)));
    read(turns.x, offsetof(Memory, near), near_);
    if constexpr (kFar > 0) read(turns.y, offsetof(Memory, far), far_);
  }
  L3_INLINE uint32_t frequency(uint32_t near, uint32_t far) const {
    uint32_t twice = gather(near, near_);
    if constexpr (kFar > 0) twice |= gather(far, far_);
    return load_shared_half_here(memory_ + (twice + static_cast<uint32_t>(offsetof(Memory, frequencies))));
  }

 private:
  using Turn = CudaBitTables::Turn;

  template <uint32_t kCount>
  L3_INLINE void read(uint32_t count, uint32_t at, Turn (&turns)[kCount]) const {
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i) {
      const uint2 turn = load_shared_two_here(memory_ + at + 8 * i);
      turns[i].by = CudaWordWarp::uniform(turn.x);
      turns[i].mask = CudaWordWarp::uniform(i < count ? turn.y : 0);
    }
  }
  template <uint32_t kCount>
  L3_INLINE static uint32_t gather(uint32_t word, const Turn (&turns)[kCount]) {
    uint32_t result = 0;
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i) result |= turned(word, turns[i].by) & turns[i].mask;
    return result;
  }

  uint32_t memory_;
  Turn near_[kNear], far_[kFar > 0 ? kFar : 1];
};

// Contexts of any number of turns: lanes look up the turns in each step.
class AnyTurns {
 public:
  L3_INLINE explicit AnyTurns(uint32_t memory) : memory_(memory) {
    const uint2 turns = load_shared_two_here(memory + static_cast<uint32_t>(offsetof(CudaBitTables::Memory, turns)));
    near_turns_ = CudaWordWarp::uniform(turns.x);
    far_turns_ = CudaWordWarp::uniform(turns.y);
  }
  L3_INLINE uint32_t frequency(uint32_t near, uint32_t far) const {
    using Memory = CudaBitTables::Memory;
    const uint32_t twice = gather<offsetof(Memory, near)>(near, near_turns_) |  //
                           gather<offsetof(Memory, far)>(far, far_turns_);
    return load_shared_half_here(memory_ + (twice + static_cast<uint32_t>(offsetof(Memory, frequencies))));
  }

 private:
  template <uint32_t kAt>
  L3_INLINE uint32_t gather(uint32_t word, uint32_t turns) const {
    uint32_t result = 0;
#pragma unroll 1
    for (uint32_t i = 0; i < turns; ++i) {
      const uint2 turn = load_shared_two<kAt>(memory_ + 8 * i);
      result |= turned(word, turn.x) & turn.y;
    }
    return result;
  }

  uint32_t memory_, near_turns_, far_turns_;
};

}  // namespace l3
