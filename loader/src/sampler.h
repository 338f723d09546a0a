// Which unit comes when: a pure function of seed, epoch, order, ending, rank and world size, at any place at once and
// without a table of all units.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "l3/l3_loader.h"

namespace loader {

// A number that looks random, of numbers that may not.
uint64_t hash_of(uint64_t a, uint64_t b);

// What crop and mirroring of a group are made of: the same whatever its place in the epoch.
uint64_t random_of_group(uint64_t seed, uint64_t epoch, uint64_t group);

__extension__ typedef unsigned __int128 Wide;

// A number below `count`, from one that looks random.
inline uint64_t scale_to(uint64_t random, uint64_t count) {
  return static_cast<uint64_t>((static_cast<Wide>(random) * count) >> 64);
}

// A permutation of the numbers below `count`, by a key: the swap-or-not shuffle (Hoang, Morris, Rogaway 2012), which
// takes any count as it is.
class Permutation {
 public:
  Permutation(uint64_t count, uint64_t key);
  uint64_t operator()(uint64_t place) const;

 private:
  // Each round takes every place or leaves it, halving how far from random the order is, about: enough for any count.
  static constexpr size_t kRounds = 64;
  struct Round {
    uint64_t key, pivot;
  };

  uint64_t count_;
  std::array<Round, kRounds> rounds_;
};

// Units of one shard, in the order of units.
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
  // `shards` add up to `units`; they are looked at for windows alone.
  EpochOrder(uint64_t units, const std::vector<ShardUnits>& shards, const OrderOptions& options, uint64_t epoch);

  // The unit at a place, which is below the number of units.
  uint64_t unit_at(uint64_t place) const;

 private:
  uint64_t unit_in_windows(uint64_t place) const;

  const std::vector<ShardUnits>* shards_;
  l3_order order_;
  uint64_t window_, key_;
  Permutation all_;             // units, or shards where there are windows
  std::vector<uint64_t> ends_;  // of each place of a shard: units up to its end
};

// Who takes how much.
struct Sharing {
  uint64_t units = 0;
  uint64_t batch_size = 1, rank = 0, world_size = 1;
  l3_last_batch last_batch = L3_LAST_BATCH_EVEN;
};

// What a rank takes in a step: places [first, first + own), then repeats, which are places of the epoch's beginning.
struct Share {
  uint64_t first = 0, own = 0, repeats = 0;
  uint64_t first_repeat = 0;  // counted over all ranks; the place is that modulo the number of units
  uint64_t next = 0;          // the position behind the step
};

// The step at a position; `own + repeats` is 0 where this rank has none.
Share share_at(const Sharing& sharing, uint64_t position);
// How many steps there are from a position on in which this rank has something.
uint64_t steps_from(const Sharing& sharing, uint64_t position);

}  // namespace loader
