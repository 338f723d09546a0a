#include "sampler.h"

#include <algorithm>
#include <limits>

namespace loader {
namespace {

// The finalizer of splitmix64, by Steele, Lea and Flood.
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// The uses of keys, so that no two uses share a key.
enum Use : uint64_t { kUseUnits = 1, kUseShards = 2, kUseWindow = 3, kUseGroup = 4 };

uint64_t units_in_step(const Sharing& sharing) {
  // The product may overflow. It is then far larger than any data set.
  const Wide product = static_cast<Wide>(sharing.batch_size) * sharing.world_size;
  return static_cast<uint64_t>(std::min<Wide>(product, std::numeric_limits<uint64_t>::max()));
}

}  // namespace

uint64_t hash_of(uint64_t a, uint64_t b) { return mix(mix(a + 0x9E3779B97F4A7C15u) ^ (b * 0xD1342543DE82EF95u + 1)); }

uint64_t random_of_group(uint64_t seed, uint64_t epoch, uint64_t group) {
  return hash_of(hash_of(hash_of(seed, epoch), kUseGroup), group);
}

Permutation::Permutation(uint64_t count, uint64_t key) : count_(count) {
  for (size_t i = 0; i < kRounds; ++i) {
    const uint64_t of_round = mix(key + (i + 1) * 0x9E3779B97F4A7C15u);
    rounds_[i] = {of_round, scale_to(of_round, count)};
  }
}

uint64_t Permutation::operator()(uint64_t place) const {
  for (const Round& round : rounds_) {
    const uint64_t partner = round.pivot >= place ? round.pivot - place : round.pivot + count_ - place;
    if ((mix(round.key ^ std::max(place, partner)) & 1) != 0) place = partner;
  }
  return place;
}

EpochOrder::EpochOrder(uint64_t units, const std::vector<ShardUnits>& shards, const OrderOptions& options,
                       uint64_t epoch)
    : shards_(&shards),
      order_(options.order),
      window_(options.window),
      key_(hash_of(options.seed, epoch)),
      all_(order_ == L3_ORDER_WINDOWS ? shards.size() : units,
           hash_of(key_, order_ == L3_ORDER_WINDOWS ? kUseShards : kUseUnits)) {
  if (order_ != L3_ORDER_WINDOWS) return;
  ends_.reserve(shards.size());
  uint64_t end = 0;
  for (uint64_t i = 0; i < shards.size(); ++i) ends_.push_back(end += shards[all_(i)].count);
}

uint64_t EpochOrder::unit_at(uint64_t place) const {
  switch (order_) {
    case L3_ORDER_SHUFFLED: return all_(place);
    case L3_ORDER_WINDOWS: return unit_in_windows(place);
    default: return place;
  }
}

uint64_t EpochOrder::unit_in_windows(uint64_t place) const {
  const auto shard_at = [&](uint64_t wanted) {
    return static_cast<uint64_t>(std::upper_bound(ends_.begin(), ends_.end(), wanted) - ends_.begin());
  };
  const uint64_t window = shard_at(place) / window_;
  const uint64_t first_shard = window * window_;
  const uint64_t last_shard = std::min<uint64_t>(first_shard + window_, ends_.size()) - 1;
  const uint64_t begin = first_shard == 0 ? 0 : ends_[first_shard - 1];
  const Permutation inside(ends_[last_shard] - begin, hash_of(hash_of(key_, kUseWindow), window));
  const uint64_t wanted = begin + inside(place - begin);
  const uint64_t shard = shard_at(wanted);
  const uint64_t before = shard == 0 ? 0 : ends_[shard - 1];
  return (*shards_)[all_(shard)].first + (wanted - before);
}

Share share_at(const Sharing& sharing, uint64_t position) {
  Share share;
  const uint64_t all = units_in_step(sharing);
  const uint64_t left = sharing.units - std::min(position, sharing.units);
  if (left == 0) {
    share.next = sharing.units;
    return share;
  }
  if (left >= all) {
    share.first = position + sharing.rank * sharing.batch_size;
    share.own = sharing.batch_size;
    share.next = position + all;
    return share;
  }
  share.next = sharing.units;
  if (sharing.last_batch == L3_LAST_BATCH_DROP) return share;
  // Share the rest evenly: the first `more` ranks take one unit more than the others.
  const uint64_t each = left / sharing.world_size, more = left % sharing.world_size;
  share.own = each + (sharing.rank < more ? 1 : 0);
  share.first = position + sharing.rank * each + std::min(sharing.rank, more);
  const uint64_t before = sharing.rank - std::min(sharing.rank, more);  // earlier ranks that take one unit less
  if (sharing.last_batch == L3_LAST_BATCH_EVEN) {
    share.repeats = each + (more > 0 ? 1 : 0) - share.own;
    share.first_repeat = before;
  } else if (sharing.last_batch == L3_LAST_BATCH_PAD) {
    share.repeats = sharing.batch_size - share.own;
    // Every earlier rank takes batch_size units too.
    share.first_repeat = sharing.rank * sharing.batch_size - (share.first - position);
  }
  return share;
}

uint64_t steps_from(const Sharing& sharing, uint64_t position) {
  const uint64_t left = sharing.units - std::min(position, sharing.units);
  const uint64_t all = units_in_step(sharing);
  const uint64_t full = left / all;
  if (left % all == 0) return full;
  const Share last = share_at(sharing, position + full * all);
  return full + (last.own + last.repeats > 0 ? 1 : 0);
}

}  // namespace loader
