// Implements dense_refine.h: chooses classes by code lengths, and runs the refinements of dense_refine_weights.cpp.
#include "encode/dense_refine.h"

#include <algorithm>

#include "api/parallel.h"
#include "encode/dense_refine_blocks.h"

namespace l3 {
namespace {

using Tiles = std::vector<std::unique_ptr<DenseTile>>;

// Chooses the classes of the blocks of one channel of a tile.
class Chooser {
 public:
  using S = ShortVectors<16>;
  static constexpr uint32_t kMaxPairs = (kMaxFeatures + 1) / 2;
  static constexpr uint32_t kVectors = kBlockSamples / S::kShorts;

  Chooser(const DensePlanes& planes, uint32_t channel, const DenseModel& model, const SymbolLengths& lengths,
          const ChannelTables& tables, const std::vector<uint32_t>& class_costs)
      : planes_(planes),
        channel_(channel),
        count_(feature_count(channel)),
        pairs_((count_ + 1) / 2),
        model_(model),
        lengths_(lengths),
        tables_(tables),
        class_costs_(class_costs) {
    for (uint32_t k = 0; k < model.classes[channel]; ++k) {
      const auto weight = [&](uint32_t f) { return f < count_ ? model.weights[channel][k].of[tap_of(f)] : 0; };
      for (uint32_t p = 0; p < pairs_; ++p) weights_[k][p] = S::pair_of(weight(2 * p), weight(2 * p + 1));
    }
  }

  void run() {
    const RefineKernels::ActivityPairs activity(model_.activity[channel_], 9 + cross_channels(channel_));
    for (uint32_t b = 0; b < planes_.block_count(); ++b) {
      RefineKernels::read_block(planes_, channel_, b, block_);
      places_.read(planes_, channel_, activity, block_);
      pair_features();
      // As in FitKernels::assign(), a class is given up once it costs clearly more than the best one so far.
      const uint32_t old = planes_.classes[channel_][b];
      uint32_t best_class = old, best_sums[4], limits[4] = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
      add_costs(old, limits, best_sums);
      for (uint32_t k = 0; k < model_.classes[channel_]; ++k) {
        const uint32_t best = best_sums[3] + class_costs_[best_class];
        if (k == old || class_costs_[k] >= best) continue;
        for (uint32_t q = 0; q < 3; ++q) limits[q] = best_sums[q] + best_sums[3] / kClearly;
        limits[3] = best - class_costs_[k];
        uint32_t sums[4];
        if (!add_costs(k, limits, sums)) continue;
        best_class = k;
        std::copy_n(sums, 4, best_sums);
      }
      planes_.classes[channel_][b] = static_cast<uint8_t>(best_class);
    }
  }

 private:
  void pair_features() {
    for (uint32_t i = 0; i < kVectors; ++i) {
      const uint32_t at = i * S::kShorts;
      for (uint32_t p = 0; p < pairs_; ++p) {
        const auto second = 2 * p + 1 < count_ ? S::load(block_.features[2 * p + 1] + at) : S::all(0);
        paired_[i][p] = S::interleave(S::load(block_.features[2 * p] + at), second);
      }
    }
  }

  // Adds up the cost of the samples with class k. sums[q] is the cost of the first q + 1 quarters of the block. Returns
  // false once one is not below its limit.
  bool add_costs(uint32_t k, const uint32_t* limits, uint32_t* sums_of_quarters) const {
    uint32_t cost = 0;
    for (uint32_t r = 0; r < kBlockEdge; ++r) {
      int32_t sums[kBlockEdge];
      for (uint32_t i = 0; i < kBlockEdge; i += S::kShorts) {
        S::InterleavedSums sum{S::all_pairs(32), S::all_pairs(32)};
        const S::Interleaved* features = paired_[(r * kBlockEdge + i) / S::kShorts];
        for (uint32_t p = 0; p < pairs_; ++p) sum.add(features[p], S::all_pairs(weights_[k][p]));
        S::store_sums(sums + i, sum);
      }
      for (uint32_t c = 0; c < block_.columns && block_.has_row(r); ++c) {
        const uint32_t i = r * kBlockEdge + c;
        const int32_t w = block_.base[i];
        const int32_t sum = static_cast<int16_t>(sums[c] + (w << kWeightShift));
        const int32_t twice = std::clamp(sum >> (kWeightShift - 1), 0, 511);
        const Outcome outcome =
            outcome_of(twice, block_.value[i], w, w + block_.features[0][i], places_.signs[i], tables_);
        cost += lengths_.of[tables_.table_of[outcome.row + places_.level[i]]][outcome.symbol];
      }
      if (r % 4 != 3) continue;
      sums_of_quarters[r / 4] = cost;
      if (cost >= limits[r / 4]) return false;
    }
    return true;
  }

  const DensePlanes& planes_;
  const uint32_t channel_, count_, pairs_;
  const DenseModel& model_;
  const SymbolLengths& lengths_;
  const ChannelTables& tables_;
  const std::vector<uint32_t>& class_costs_;
  int32_t weights_[kMaxClasses][kMaxPairs];
  BlockFeatures block_;
  BlockPlaces places_;
  S::Interleaved paired_[kVectors][kMaxPairs];
};

// The cost of coding each class.
std::vector<uint32_t> class_costs_of(const std::vector<std::vector<BlockOfTile>>& blocks_of) {
  double blocks = 0;
  for (const auto& of_class : blocks_of) blocks += static_cast<double>(of_class.size());
  std::vector<uint32_t> costs;
  for (const auto& of_class : blocks_of) {
    const double share = (static_cast<double>(of_class.size()) + 1) / (blocks + 1);
    costs.push_back(static_cast<uint32_t>(-kLengthUnits * logarithm(share)));
  }
  return costs;
}

std::vector<BlockOfTile> blocks_of_tiles(const Tiles& tiles) {
  std::vector<BlockOfTile> blocks;
  for (const auto& tile : tiles) {
    for (uint32_t b = 0; b < tile->planes().block_count(); ++b) blocks.push_back({&tile->planes(), b});
  }
  return blocks;
}

std::vector<std::vector<BlockOfTile>> by_class(const std::vector<BlockOfTile>& blocks, uint32_t channel,
                                               uint32_t classes) {
  std::vector<std::vector<BlockOfTile>> of_class(classes);
  for (const BlockOfTile& block : blocks) of_class[block.planes->classes[channel][block.block]].push_back(block);
  return of_class;
}

// Chooses the classes of a channel's blocks, and predicts the channel again.
void choose_classes(const Tiles& tiles, uint32_t channel, const DenseKernels& kernels, const l3_parallel& parallel,
                    const DenseModel& model, const SymbolLengths& lengths, const ChannelTables& tables,
                    const std::vector<uint32_t>& costs) {
  auto choose = [&](uint64_t i) {
    const DensePlanes& planes = tiles[i]->planes();
    Chooser(planes, channel, model, lengths, tables, costs).run();
    kernels.evaluate(planes, channel, model.weights[channel], nullptr);
  };
  run_parallel(parallel, tiles.size(), choose);
}

}  // namespace

void refine(const Tiles& tiles, const DenseKernels& kernels, const l3_parallel& parallel, const RefineLimits& limits,
            DenseModel& model) {
  const SymbolLengths lengths(model);
  for (uint32_t c = 0; c < model.channels; ++c) {
    const std::vector<BlockOfTile> blocks = blocks_of_tiles(tiles);
    const std::vector<std::vector<BlockOfTile>> blocks_of = by_class(blocks, c, model.classes[c]);
    const ChannelTables tables(model, c);
    refine_activity(some_of(blocks, limits.of_activity), c, lengths, model);
    const auto refine_class = [&](uint64_t k) {
      refine_predictor(some_of(blocks_of[k], limits.of_class), c, lengths, tables, model, model.weights[c][k]);
    };
    if (limits.of_class > 0) run_parallel(parallel, blocks_of.size(), refine_class);
    choose_classes(tiles, c, kernels, parallel, model, lengths, tables, class_costs_of(blocks_of));
  }
}

void refine_classes(const Tiles& tiles, const DenseKernels& kernels, const l3_parallel& parallel,
                    const DenseModel& model) {
  const SymbolLengths lengths(model);
  for (uint32_t c = 0; c < model.channels; ++c) {
    const auto costs = class_costs_of(by_class(blocks_of_tiles(tiles), c, model.classes[c]));
    choose_classes(tiles, c, kernels, parallel, model, lengths, ChannelTables(model, c), costs);
  }
}

}  // namespace l3
