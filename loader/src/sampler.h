// The order of units: a pure function of seed, epoch, order, ending, rank and world size. Any place can be computed
// directly, without a table of all units.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "l3/l3_loader.h"

namespace loader {

// Hashes two numbers to one that looks random.
uint64_t hash_of(uint64_t a, uint64_t b);

// The random number for a group's crop and mirroring. It does not depend on the group's place in the epoch.
uint64_t random_of_group(uint64_t seed, uint64_t epoch, uint64_t group);

__extension__ typedef unsigned __int128 Wide;

// Scales a random number to one below `count`.
inline uint64_t scale_to(uint64_t random, uint64_t count) {
  return static_cast<uint64_t>((static_cast<Wide>(random) * count) >> 64);
}

// A keyed permutation of the numbers below `count`: the swap-or-not shuffle (Hoang, Morris, Rogaway 2012), which works
// for any count.
class Permutation {
 public:
  Permutation(uint64_t count, uint64_t key);
  uint64_t operator()(uint64_t place) const;

 private:
  // Each round swaps a place with its partner or not. It roughly halves the distance from a random order, so that 64
  // rounds suffice for any count.
  static constexpr size_t kRounds = 64;
  struct Round {
    uint64_t key, pivot;
  };

  uint64_t count_;
  std::array<Round, kRounds> rounds_;
};

// The units of one shard, as a range of unit numbers.
struct ShardUnits {
  uint64_t first = 0, count = 0;
};

struct OrderOptions {
  l3_order order = L3_ORDER_STORED;
  uint64_t window = 8;
  uint64_t seed = 0;
};

// The order of an epoch.
class EpochOrder {
 public:
  // The counts in `shards` must add up to `units`. Only L3_ORDER_WINDOWS uses them.
  EpochOrder(uint64_t units, const std::vector<ShardUnits>& shards, const OrderOptions& options, uint64_t epoch);

  // Returns the unit at a place, which must be below the number of units.
  uint64_t unit_at(uint64_t place) const;

 private:
  uint64_t unit_in_windows(uint64_t place) const;

  const std::vector<ShardUnits>* shards_;
  l3_order order_;
  uint64_t window_, key_;
  Permutation all_;             // of units, or of shards for L3_ORDER_WINDOWS
  std::vector<uint64_t> ends_;  // for each place of a shard: how many units end there
};

// How ranks share an epoch.
struct Sharing {
  uint64_t units = 0;
  uint64_t batch_size = 1, rank = 0, world_size = 1;
  l3_last_batch last_batch = L3_LAST_BATCH_EVEN;
};

// The part of a rank in a step: the places [first, first + own), then repeats, which are places at the beginning of the
// epoch.
struct Share {
  uint64_t first = 0, own = 0, repeats = 0;
  uint64_t first_repeat = 0;  // counted over all ranks; its place is this number modulo the number of units
  uint64_t next = 0;          // the position after the step
};

// Returns the share of the step at a position. `own + repeats` is 0 if this rank takes nothing.
Share share_at(const Sharing& sharing, uint64_t position);
// Returns how many steps from a position on give this rank something.
uint64_t steps_from(const Sharing& sharing, uint64_t position);

}  // namespace loader
