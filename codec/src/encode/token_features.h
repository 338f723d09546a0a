// The features that the fit of a token model's predictors uses, block by block.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "encode/dense_fit_equations.h"
#include "encode/token_fit.h"

namespace l3 {

// The features of a block's samples, which the weights of a predictor multiply. Taps whose weights add up to a
// constant are stored as differences from W. The last row is the target.
struct FeatureBlock {
  uint32_t rows, columns;
  alignas(16) float at[kMaxFeatures + 1][kBlockEdge * kBlockEdge];
  alignas(16) float weight[kBlockEdge * kBlockEdge];  // 0 for samples that are not predicted
  alignas(16) float scale[kBlockEdge * kBlockEdge];
};

// The activity around a sample: two levels per octave.
inline uint32_t scale_level(const NeighbourRows& own, const NeighbourRows& errors, uint32_t x) {
  const auto size_of = [&](uint32_t neighbour) { return std::abs(errors[neighbour][x]); };
  const int32_t sum = 2 * (size_of(kTokenW) + size_of(kTokenN)) + size_of(kTokenNw) + size_of(kTokenNe) +
                      std::abs(own[kTokenW][x] - own[kTokenNw][x]) + std::abs(own[kTokenN][x] - own[kTokenNw][x]);
  const uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(sum) + 1);
  return std::min((bits >> 22) - (127u << 1), TokenScales::kLevels - 1);
}

// Collects the features of a tile's channel, block by block.
class FeatureReader {
 public:
  FeatureReader(const TokenTile& tile, uint32_t c, int32_t hole)
      : tile_(tile), c_(c), hole_(hole), own_(tile.width), errors_(tile.width) {
    for (uint32_t i = 0; i < cross_channels(c); ++i) cross_.emplace_back(tile.width);
  }

  // Calls use(block number, block) for each block.
  template <class Use>
  void run(const TokenScales& scales, const Use& use) {
    std::vector<std::unique_ptr<FeatureBlock>> blocks(tile_.blocks_across);
    for (auto& block : blocks) block = std::make_unique<FeatureBlock>();
    for (uint32_t down = 0; down < tile_.blocks_down; ++down) {
      const uint32_t rows = std::min(kBlockEdge, tile_.height - down * kBlockEdge);
      for (uint32_t r = 0; r < rows; ++r) read_row(down * kBlockEdge + r, r, scales, blocks);
      for (uint32_t across = 0; across < tile_.blocks_across; ++across) {
        FeatureBlock& block = *blocks[across];
        block.rows = rows;
        block.columns = std::min(kBlockEdge, tile_.width - across * kBlockEdge);
        use(down * tile_.blocks_across + across, block);
      }
    }
  }

 private:
  void read_row(uint32_t y, uint32_t r, const TokenScales& scales, std::vector<std::unique_ptr<FeatureBlock>>& blocks);
  template <class Use>
  void for_blocks(const Use& use) {
    for (uint32_t block = 0; block < tile_.blocks_across; ++block) {
      const uint32_t from = block * kBlockEdge, columns = std::min(kBlockEdge, tile_.width - from);
      for (uint32_t x = 0; x < columns; ++x) use(block, from, x);
    }
  }

  const TokenTile& tile_;
  const uint32_t c_;
  const int32_t hole_;
  NeighbourRows own_, errors_;
  std::vector<NeighbourRows> cross_;
};

// A block is stored in whole rows. Clears the samples outside the image, so that they have no weight.
void clear_outside(FeatureBlock& block, uint32_t count);

// Adds the weighted dot products of all pairs of rows to the sums of a triangle.
void add_products(const float (*rows)[kBlockEdge * kBlockEdge], const float* weight, uint32_t count, uint32_t numbers,
                  double* sums);

// The cost of a block's errors with a predictor: about 2^23 log2((|error| + scale) / scale), summed over its samples.
int64_t cost_of(const FeatureBlock& block, const TapWeights& weights, uint32_t count);

}  // namespace l3
