// Fits a bit model to an image: chooses neighbours, then a tree of contexts. How to fit is not part of the format.
#pragma once

#include <vector>

#include "encode/bit_tile.h"

namespace l3 {

// Finds the neighbours that say most about pixels. Keeps a sample of the pixels that were added.
class BitNeighbours {
 public:
  // Keeps between `maximum` and twice as many pixels, if there are so many.
  explicit BitNeighbours(size_t maximum) : maximum_(maximum) {}

  // Adds a pixel with all its neighbours, as BitHistory::around() has them.
  void add(uint64_t around, bool bit);
  // Chooses at most `maximum` neighbours, the most important first, and always those that a model must have.
  std::vector<uint8_t> choose(uint32_t maximum);
  // Looks for a better neighbour in place of each, some times. What it returns is often better, but not always.
  std::vector<uint8_t> exchange(const std::vector<uint8_t>& chosen);

 private:
  // Pixels whose chosen neighbours are the same: those whose bit is 0, and those whose bit is 1.
  struct Group {
    size_t zeros, zeros_end, ones, ones_end;
  };
  void add_gains(const Group& group, double* gains) const;
  // All pixels, split by these neighbours.
  std::vector<Group> split_by(const std::vector<uint8_t>& neighbours);
  // Splits each group by a neighbour.
  void split(uint32_t q, std::vector<Group>& groups);
  // Chooses up to `maximum` neighbours from a set of them, one after the other.
  std::vector<uint8_t> choose_in_order(uint64_t allowed, uint32_t maximum);
  // Chooses the neighbour that gains most, of a set of them. Returns kNone if none is worth its byte.
  uint32_t best_of(const std::vector<Group>& groups, uint64_t allowed) const;

  const size_t maximum_;
  uint64_t seen_ = 0, each_ = 1;  // every so many pixels one is kept
  std::vector<uint64_t> pixels_;  // with the pixel's own bit in place of a neighbour that cannot be chosen
};

// A tree of contexts that is fitted to counts: how often a pixel had each index (of BitPlaces) of `count` neighbours,
// the first one highest.
class BitTree {
 public:
  BitTree(const std::vector<uint64_t>& counts, uint32_t count);

  // The bits of all pixels and of the tree with only the first `depth` neighbours.
  double bits_of(uint32_t depth);
  // The least number of neighbours, at least `minimum`, with which the bits are close to the least.
  uint32_t best_depth(uint32_t minimum);
  // The part of a model that has the tree. Bits is a BitWriter.
  template <class Bits>
  void put(Bits& bits, uint32_t depth, uint32_t node = 1, uint32_t level = 0) const {
    const bool splits = level < depth && splits_[node];
    if (level < depth) bits.put(splits, 1);
    if (!splits) return bits.put(leaf_[node], kBitLevelBits);
    put(bits, depth, 2 * node, level + 1);
    put(bits, depth, 2 * node + 1, level + 1);
  }

 private:
  const uint32_t count_;
  // By node: 1 is the root, 2 * i and 2 * i + 1 are the nodes below node i.
  std::vector<double> cost_;  // of a node's pixels as a leaf
  std::vector<double> best_;  // with what is below it and the tree
  std::vector<uint8_t> leaf_;
  std::vector<bool> splits_;
};

}  // namespace l3
