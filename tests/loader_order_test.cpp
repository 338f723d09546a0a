// Tests of the order of a loader's epochs: which rank gets which unit when, and that nothing else affects it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "sampler.h"

namespace {

using namespace loader;

TEST(Permutation, IsOneForAnyCount) {
  for (uint64_t count = 1; count <= 300; ++count) {
    for (const uint64_t key : {uint64_t{0}, uint64_t{1}, uint64_t{99}}) {
      const Permutation permutation(count, key);
      std::vector<bool> seen(count);
      for (uint64_t i = 0; i < count; ++i) {
        const uint64_t to = permutation(i);
        ASSERT_LT(to, count);
        ASSERT_FALSE(seen[to]) << count << " " << key;
        seen[to] = true;
      }
    }
  }
}

// Of few units every order comes, each about as often as the others.
TEST(Permutation, OfFourComesInAllOrdersAlike) {
  constexpr int kKeys = 24000;
  std::map<std::vector<uint64_t>, int> orders;
  for (uint64_t key = 0; key < kKeys; ++key) {
    const Permutation permutation(4, key);
    ++orders[{permutation(0), permutation(1), permutation(2), permutation(3)}];
  }
  ASSERT_EQ(orders.size(), 24u);
  double chi_square = 0;
  for (const auto& [order, count] : orders) chi_square += std::pow(count - kKeys / 24.0, 2) / (kKeys / 24.0);
  EXPECT_LT(chi_square, 60);  // 23 degrees of freedom: one in 30,000 is above
}

// Where a unit comes, and how far apart neighbours come, is as if by chance.
TEST(Permutation, OfManyLooksRandom) {
  constexpr uint64_t kCount = 1000, kKeys = 400, kCells = 10;
  std::vector<double> cells(kCells * kCells);
  double distance = 0;
  for (uint64_t key = 0; key < kKeys; ++key) {
    const Permutation permutation(kCount, key);
    uint64_t before = permutation(0);
    for (uint64_t i = 0; i < kCount; ++i) {
      const uint64_t to = permutation(i);
      ++cells[i / (kCount / kCells) * kCells + to / (kCount / kCells)];
      distance += std::abs(static_cast<double>(to) - static_cast<double>(before));
      before = to;
    }
  }
  const double expected = kCount * kKeys / static_cast<double>(kCells * kCells);
  double chi_square = 0;
  for (const double count : cells) chi_square += std::pow(count - expected, 2) / expected;
  EXPECT_LT(chi_square, 81 + 5 * std::sqrt(2 * 81.0));
  EXPECT_NEAR(distance / (kCount * kKeys), kCount / 3.0, kCount * 0.01);
}

std::vector<ShardUnits> shards_of(const std::vector<uint64_t>& counts) {
  std::vector<ShardUnits> shards;
  uint64_t first = 0;
  for (const uint64_t count : counts) {
    shards.push_back({first, count});
    first += count;
  }
  return shards;
}

std::vector<uint64_t> order_of(uint64_t units, const std::vector<ShardUnits>& shards, const OrderOptions& options,
                               uint64_t epoch) {
  const EpochOrder order(units, shards, options, epoch);
  std::vector<uint64_t> all(units);
  for (uint64_t i = 0; i < units; ++i) all[i] = order.unit_at(i);
  return all;
}

TEST(Order, HasEachUnitOnceAndDependsOnSeedAndEpoch) {
  const std::vector<ShardUnits> shards = shards_of({7, 1, 20, 13, 5, 9, 2});
  const uint64_t units = 57;
  for (const l3_order order : {L3_ORDER_STORED, L3_ORDER_SHUFFLED, L3_ORDER_WINDOWS}) {
    for (const uint64_t window : {1u, 2u, 3u, 7u, 100u}) {
      const OrderOptions options{order, window, 5};
      std::vector<uint64_t> sorted = order_of(units, shards, options, 0);
      EXPECT_EQ(sorted, order_of(units, shards, options, 0));
      if (order != L3_ORDER_STORED) {
        EXPECT_NE(sorted, order_of(units, shards, options, 1));
        EXPECT_NE(sorted, order_of(units, shards, {order, window, 6}, 0));
      }
      std::sort(sorted.begin(), sorted.end());
      for (uint64_t i = 0; i < units; ++i) ASSERT_EQ(sorted[i], i);
    }
  }
}

TEST(Order, OfWindowsKeepsToThem) {
  const std::vector<uint64_t> counts = {7, 1, 20, 13, 5, 9, 2};
  const std::vector<ShardUnits> shards = shards_of(counts);
  for (uint64_t epoch = 0; epoch < 20; ++epoch) {
    const std::vector<uint64_t> order = order_of(57, shards, {L3_ORDER_WINDOWS, 2, 1}, epoch);
    // Shards come in runs of two: once a third one has come, the first two are through.
    std::vector<size_t> seen;
    std::map<size_t, uint64_t> left;
    for (const uint64_t unit : order) {
      size_t shard = 0;
      while (shards[shard].first + shards[shard].count <= unit) ++shard;
      if (std::find(seen.begin(), seen.end(), shard) == seen.end()) {
        if (seen.size() % 2 == 0) {
          for (const auto& [other, count] : left) ASSERT_EQ(count, 0u) << other;
        }
        seen.push_back(shard);
        left[shard] = counts[shard];
      }
      --left[shard];
    }
    EXPECT_EQ(seen.size(), 7u);
  }
}

TEST(Order, OfEachWindowIsItsOwn) {
  const std::vector<ShardUnits> shards = shards_of({30, 30, 30});
  const std::vector<uint64_t> order = order_of(90, shards, {L3_ORDER_WINDOWS, 1, 1}, 0);
  std::set<std::vector<uint64_t>> inside;
  for (size_t window = 0; window < 3; ++window) {
    std::vector<uint64_t> one(order.begin() + static_cast<ptrdiff_t>(30 * window),
                              order.begin() + static_cast<ptrdiff_t>(30 * window + 30));
    for (uint64_t& unit : one) unit %= 30;
    inside.insert(one);
  }
  EXPECT_EQ(inside.size(), 3u);
}

TEST(Choices, DependOnSeedEpochAndGroup) {
  std::set<uint64_t> seen;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    for (uint64_t epoch = 0; epoch < 10; ++epoch) {
      for (uint64_t group = 0; group < 10; ++group) seen.insert(random_of_group(seed, epoch, group));
    }
  }
  EXPECT_EQ(seen.size(), 1000u);
}

// What all ranks take of an epoch, step by step: places, and those of repeats.
struct Taken {
  std::vector<uint64_t> places, repeats;
  std::vector<uint64_t> batches, sizes;  // of each rank: how many, and units in all
};

Taken take(uint64_t units, uint64_t batch_size, uint64_t world_size, l3_last_batch last_batch, uint64_t position = 0) {
  Taken taken;
  for (uint64_t rank = 0; rank < world_size; ++rank) {
    const Sharing sharing{units, batch_size, rank, world_size, last_batch};
    uint64_t batches = 0, size = 0;
    for (uint64_t at = position; at < units;) {
      const Share share = share_at(sharing, at);
      EXPECT_LE(share.own + share.repeats, batch_size);
      EXPECT_EQ(steps_from(sharing, at), (share.own + share.repeats > 0 ? 1 : 0) + steps_from(sharing, share.next));
      for (uint64_t i = 0; i < share.own; ++i) taken.places.push_back(share.first + i);
      for (uint64_t i = 0; i < share.repeats; ++i) taken.repeats.push_back(share.first_repeat + i);
      batches += share.own + share.repeats > 0 ? 1 : 0;
      size += share.own + share.repeats;
      EXPECT_GT(share.next, at);
      at = share.next;
    }
    taken.batches.push_back(batches);
    taken.sizes.push_back(size);
  }
  return taken;
}

bool all_alike(const std::vector<uint64_t>& values) {
  return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
}

TEST(Sharing, GivesEachPlaceOnceToOneRank) {
  for (const uint64_t units : {1u, 2u, 5u, 7u, 24u, 50u, 101u}) {
    for (const uint64_t batch_size : {1u, 2u, 3u, 8u}) {
      for (const uint64_t world_size : {1u, 2u, 3u, 8u}) {
        for (const l3_last_batch last_batch :
             {L3_LAST_BATCH_EVEN, L3_LAST_BATCH_PAD, L3_LAST_BATCH_DROP, L3_LAST_BATCH_UNEVEN}) {
          SCOPED_TRACE(testing::Message() << units << " units, batches of " << batch_size << ", " << world_size
                                          << " ranks, ending " << last_batch);
          Taken taken = take(units, batch_size, world_size, last_batch);
          std::sort(taken.places.begin(), taken.places.end());
          const uint64_t all = batch_size * world_size;
          const uint64_t expected = last_batch == L3_LAST_BATCH_DROP ? units / all * all : units;
          ASSERT_EQ(taken.places.size(), expected);
          for (uint64_t i = 0; i < expected; ++i) ASSERT_EQ(taken.places[i], i);
          // Repeats are of the epoch's beginning, none twice.
          std::sort(taken.repeats.begin(), taken.repeats.end());
          for (uint64_t i = 0; i < taken.repeats.size(); ++i) ASSERT_EQ(taken.repeats[i], i);
          switch (last_batch) {
            case L3_LAST_BATCH_EVEN: EXPECT_LT(taken.repeats.size(), world_size); break;
            case L3_LAST_BATCH_PAD: EXPECT_EQ((units + taken.repeats.size()) % all, 0u); break;
            default: EXPECT_TRUE(taken.repeats.empty());
          }
          if (last_batch != L3_LAST_BATCH_UNEVEN) {
            EXPECT_TRUE(all_alike(taken.batches));
            EXPECT_TRUE(all_alike(taken.sizes));
          } else {
            const auto [minimum, maximum] = std::minmax_element(taken.sizes.begin(), taken.sizes.end());
            EXPECT_LE(*maximum - *minimum, 1u);
          }
        }
      }
    }
  }
}

// From any position on, with any number of ranks and any batch size, what is left is what is left.
TEST(Sharing, GoesOnAnywhereWithOtherRanks) {
  constexpr uint64_t kUnits = 53;
  for (uint64_t position = 0; position <= kUnits; ++position) {
    for (const uint64_t batch_size : {1u, 3u, 7u}) {
      for (const uint64_t world_size : {1u, 2u, 3u, 8u}) {
        Taken taken = take(kUnits, batch_size, world_size, L3_LAST_BATCH_EVEN, position);
        std::sort(taken.places.begin(), taken.places.end());
        ASSERT_EQ(taken.places.size(), kUnits - position);
        for (uint64_t i = 0; i < taken.places.size(); ++i) ASSERT_EQ(taken.places[i], position + i);
      }
    }
  }
}

TEST(Sharing, TakesNumbersThatDoNotFit) {
  const Sharing sharing{10, UINT32_MAX, UINT32_MAX - 1, UINT32_MAX, L3_LAST_BATCH_UNEVEN};
  EXPECT_EQ(steps_from(sharing, 0), 0u);
  const Sharing first{10, UINT32_MAX, 3, UINT32_MAX, L3_LAST_BATCH_EVEN};
  EXPECT_EQ(share_at(first, 0).own, 1u);
  EXPECT_EQ(share_at(first, 0).first, 3u);
}

}  // namespace
