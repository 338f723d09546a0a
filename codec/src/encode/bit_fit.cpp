// Implements bit_fit.h.
#include "encode/bit_fit.h"

#include <algorithm>

#include "encode/entropy.h"

namespace l3 {
namespace {

// A neighbour takes a byte of the model; a context about these bits, for it is split and has a level.
constexpr double kBitsOfNeighbour = 8, kBitsOfContext = 8;
// Fewer neighbours decode faster. They are used if the pixels take at most this fraction more.
constexpr double kCloseBits = 1.0005;

// What one more bit of each kind costs, for each level.
struct LevelCosts {
  double of[2][kBitLevels];

  constexpr LevelCosts() : of() {
    for (uint32_t level = 0; level < kBitLevels; ++level) {
      const uint32_t frequency = bit_frequencies()(level);
      of[1][level] = kProbabilityBits - logarithm(frequency);
      of[0][level] = kProbabilityBits - logarithm(kProbabilities - frequency);
    }
  }
};
constexpr LevelCosts kLevelCosts;

double cost_at(uint32_t level, double zeros, double ones) {
  return zeros * kLevelCosts.of[0][level] + ones * kLevelCosts.of[1][level];
}

// The level at which these pixels cost least. From there on, costs rise in both directions.
uint32_t level_for(double zeros, double ones) {
  uint32_t low = 0, high = kBitLevels - 1;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (cost_at(middle + 1, zeros, ones) < cost_at(middle, zeros, ones)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// About the bits of pixels of one context, and what it takes to learn how often each kind occurs.
double bits_of_counts(uint32_t zeros, uint32_t ones) {
  return entropy_term(zeros + ones) - entropy_term(zeros) - entropy_term(ones);
}

// Counts in how many of many words each bit is set.
class BitCounts {
 public:
  uint32_t of[64] = {};

  BitCounts(const uint64_t* words, size_t count) {
    while (count > 0) {
      const size_t piece = std::min<size_t>(count, (1u << kPlanes) - 1);
      add(words, piece);
      words += piece;
      count -= piece;
    }
  }

 private:
  static constexpr uint32_t kPlanes = 8;

  void add(const uint64_t* words, size_t count) {
    uint64_t planes[kPlanes] = {};
    for (size_t i = 0; i < count; ++i) {
      uint64_t carry = words[i];
      for (uint32_t p = 0; carry != 0; ++p) {
        const uint64_t both = planes[p] & carry;
        planes[p] ^= carry;
        carry = both;
      }
    }
    for (uint32_t p = 0; p < kPlanes && count >> p != 0; ++p) {
      for (uint32_t i = 0; i < 64; ++i) of[i] += static_cast<uint32_t>(planes[p] >> i & 1) << p;
    }
  }
};

// These two would be of the step before, like the newest neighbours; models cannot have them.
constexpr uint32_t kNeverChosen[] = {2 * kBitColumns, 3 * kBitColumns};

// Which bit of BitHistory::around() a neighbour is.
constexpr uint32_t bit_of_neighbour(uint32_t q) {
  return q / kBitColumns * kBitColumns + kBitColumns - 1 - q % kBitColumns;
}
constexpr uint64_t set_of(uint32_t q) { return uint64_t{1} << q; }
constexpr uint64_t kNeeded = set_of(kNewestOwn) | set_of(kNewestAbove);
constexpr uint64_t kAllowed = ~(set_of(kNeverChosen[0]) | set_of(kNeverChosen[1]));
constexpr uint32_t kNone = 64;
constexpr uint32_t kRoundsOfExchange = 2;
constexpr uint64_t kOwnBit = uint64_t{1} << bit_of_neighbour(kNeverChosen[0]);

// Moves the pixels of a part whose bit is 0 to its begin. Returns where the others begin.
size_t part(std::vector<uint64_t>& pixels, size_t first, size_t end, uint32_t bit) {
  uint64_t* const all = pixels.data();
  const auto is_0 = [bit](uint64_t pixel) { return (pixel >> bit & 1) == 0; };
  return static_cast<size_t>(std::partition(all + first, all + end, is_0) - all);
}

}  // namespace

void BitNeighbours::add(uint64_t around, bool bit) {
  if (seen_++ % each_ != 0) return;
  if (pixels_.size() == 2 * maximum_) {
    for (size_t i = 0; i < maximum_; ++i) pixels_[i] = pixels_[2 * i];
    pixels_.resize(maximum_);
    each_ *= 2;
  }
  pixels_.push_back((around & ~kOwnBit) | (bit ? kOwnBit : 0));
}

void BitNeighbours::add_gains(const Group& group, double* gains) const {
  const auto zeros = static_cast<uint32_t>(group.zeros_end - group.zeros);
  const auto ones = static_cast<uint32_t>(group.ones_end - group.ones);
  const BitCounts of_zeros(pixels_.data() + group.zeros, zeros), of_ones(pixels_.data() + group.ones, ones);
  const double whole = bits_of_counts(zeros, ones);
  for (uint32_t bit = 0; bit < 64; ++bit) {
    const uint32_t zeros_at_1 = of_zeros.of[bit], ones_at_1 = of_ones.of[bit];
    const double parts = bits_of_counts(zeros_at_1, ones_at_1) + bits_of_counts(zeros - zeros_at_1, ones - ones_at_1);
    gains[bit] += std::max(0.0, static_cast<double>(each_) * (whole - parts) - kBitsOfContext);
  }
}

void BitNeighbours::split(uint32_t q, std::vector<Group>& groups) {
  const uint32_t bit = bit_of_neighbour(q);
  std::vector<Group> parts;
  for (const Group& group : groups) {
    const size_t zeros = part(pixels_, group.zeros, group.zeros_end, bit);
    const size_t ones = part(pixels_, group.ones, group.ones_end, bit);
    // Where all pixels are the same, there is nothing to gain.
    if (zeros > group.zeros && ones > group.ones) parts.push_back({group.zeros, zeros, group.ones, ones});
    if (group.zeros_end > zeros && group.ones_end > ones) {
      parts.push_back({zeros, group.zeros_end, ones, group.ones_end});
    }
  }
  groups = std::move(parts);
}

std::vector<BitNeighbours::Group> BitNeighbours::split_by(const std::vector<uint8_t>& neighbours) {
  const size_t ones = part(pixels_, 0, pixels_.size(), bit_of_neighbour(kNeverChosen[0]));
  std::vector<Group> groups{{0, ones, ones, pixels_.size()}};
  for (const uint32_t q : neighbours) split(q, groups);
  return groups;
}

uint32_t BitNeighbours::best_of(const std::vector<Group>& groups, uint64_t allowed) const {
  double gains[64] = {};
  for (const Group& group : groups) add_gains(group, gains);
  uint32_t best = kNone;
  double most = kBitsOfNeighbour;
  for (uint32_t q = 0; q < 64; ++q) {
    const double gain = gains[bit_of_neighbour(q)];
    if ((allowed >> q & 1) == 0 || gain <= most) continue;
    best = q;
    most = gain;
  }
  return best;
}

std::vector<uint8_t> BitNeighbours::choose_in_order(uint64_t allowed, uint32_t maximum) {
  std::vector<Group> groups = split_by({});
  std::vector<uint8_t> chosen;
  uint64_t needed = kNeeded;
  while (chosen.size() < maximum) {
    const bool has_room = chosen.size() + static_cast<size_t>(__builtin_popcountll(needed)) < maximum;
    const uint32_t best = best_of(groups, has_room ? allowed : allowed & needed);
    if (best == kNone) break;
    chosen.push_back(static_cast<uint8_t>(best));
    allowed &= ~set_of(best);
    needed &= ~set_of(best);
    split(best, groups);
  }
  for (; needed != 0; needed &= needed - 1) chosen.push_back(static_cast<uint8_t>(__builtin_ctzll(needed)));
  return chosen;
}

std::vector<uint8_t> BitNeighbours::choose(uint32_t maximum) { return choose_in_order(kAllowed, maximum); }

std::vector<uint8_t> BitNeighbours::exchange(const std::vector<uint8_t>& chosen) {
  std::vector<uint8_t> better = chosen;
  uint64_t set = 0;
  for (const uint32_t q : chosen) set |= set_of(q);
  for (uint32_t round = 0; round < kRoundsOfExchange; ++round) {
    for (size_t i = better.size(); i-- > 0;) {
      if ((set_of(better[i]) & kNeeded) != 0) continue;
      std::vector<uint8_t> others = better;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      set &= ~set_of(better[i]);
      const uint32_t best = best_of(split_by(others), kAllowed & ~set);
      if (best != kNone) better[i] = static_cast<uint8_t>(best);
      set |= set_of(better[i]);
    }
  }
  return choose_in_order(set, static_cast<uint32_t>(better.size()));
}

BitTree::BitTree(const std::vector<uint64_t>& counts, uint32_t count)
    : count_(count), cost_(2u << count), best_(2u << count), leaf_(2u << count), splits_(2u << count) {
  const uint32_t contexts = 1u << count;
  std::vector<double> kinds[2];
  for (uint32_t bit = 0; bit < 2; ++bit) {
    kinds[bit].resize(2 * contexts);
    for (uint32_t i = 0; i < contexts; ++i) kinds[bit][contexts + i] = static_cast<double>(counts[2 * i + bit]);
    for (uint32_t node = contexts; --node > 0;) kinds[bit][node] = kinds[bit][2 * node] + kinds[bit][2 * node + 1];
  }
  for (uint32_t node = 1; node < 2 * contexts; ++node) {
    const double zeros = kinds[0][node], ones = kinds[1][node];
    if (zeros == 0 && ones == 0) continue;
    leaf_[node] = static_cast<uint8_t>(level_for(zeros, ones));
    cost_[node] = cost_at(leaf_[node], zeros, ones);
  }
}

double BitTree::bits_of(uint32_t depth) {
  for (uint32_t node = 2u << depth; --node > 0;) {
    best_[node] = cost_[node] + kBitLevelBits;
    splits_[node] = false;
    if (node >> depth != 0) continue;
    const double split = best_[2 * node] + best_[2 * node + 1];
    splits_[node] = split < best_[node];
    best_[node] = std::min(split, best_[node]) + 1;
  }
  return best_[1] + kBitsOfNeighbour * depth;
}

uint32_t BitTree::best_depth(uint32_t minimum) {
  double bits[kMaxBitNeighbours + 1], least = bits_of(count_);
  for (uint32_t depth = minimum; depth <= count_; ++depth) {
    bits[depth] = bits_of(depth);
    least = std::min(least, bits[depth]);
  }
  uint32_t best = minimum;
  while (best < count_ && bits[best] > least * kCloseBits) ++best;
  bits_of(best);
  return best;
}

}  // namespace l3
