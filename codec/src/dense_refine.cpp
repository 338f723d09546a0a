#include "dense_refine.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "logarithm.h"
#include "parallel.h"

namespace l3 {
namespace {

using Kernels = FitKernels<ShortVectors<16>>;

constexpr double kUnits = 64;  // of a bit

// The lengths of symbols under a model's tables, in 64ths of a bit.
struct Lengths {
  uint16_t of[kMaxTables][kMaxSymbols];

  explicit Lengths(const DenseModel& model) {
    constexpr double kUnseen = 15;  // bits
    for (uint32_t t = 0; t < model.table_count; ++t) {
      for (uint32_t i = 0; i < kMaxSymbols; ++i) {
        const uint16_t f = model.frequencies[t][i];
        of[t][i] = static_cast<uint16_t>(kUnits * (f == 0 ? kUnseen : kProbabilityBits - logarithm(f)));
      }
    }
  }
};

// Chooses the classes of the blocks of one channel of a tile.
class Chooser {
 public:
  Chooser(const DensePlanes& planes, uint32_t channel, const DenseModel& model, const Lengths& lengths,
          const std::vector<uint32_t>& class_costs)
      : planes_(planes), channel_(channel), model_(model), lengths_(lengths), class_costs_(class_costs) {
    const RowMap rows(model, channel);
    for (uint32_t place = 0; place < kZones * kSignPatterns; ++place) {
      table_of_[place] = model.table_of[channel][rows.of[place] / rows.sign_groups][rows.of[place] % rows.sign_groups];
    }
  }

  void run() {
    for (uint32_t b = 0; b < planes_.block_count(); ++b) {
      Kernels::read_block(planes_, channel_, b, block_);
      read_places();
      uint32_t best = UINT32_MAX;
      uint8_t best_class = 0;
      for (uint32_t k = 0; k < model_.classes[channel_]; ++k) {
        const uint32_t cost = class_costs_[k] + cost_of(model_.weights[channel_][k], best);
        if (cost < best) {
          best = cost;
          best_class = static_cast<uint8_t>(k);
        }
      }
      planes_.classes[channel_][b] = best_class;
    }
  }

 private:
  // What does not depend on the class: levels, and the signs of the errors.
  void read_places() {
    const Kernels::ActivityPairs pairs(model_.activity[channel_], 9 + cross_channels(channel_));
    Kernels::ContextRow row;
    std::memset(row.terms, 0, sizeof(row.terms));
    for (uint32_t r = 0; r < block_.rows; ++r) {
      Kernels::read_terms(planes_, channel_, block_.x, block_.y + r, row);
      int16_t level[kBlockEdge];
      for (uint32_t k = 0; k < kBlockEdge; k += Kernels::R::kShorts) {
        Kernels::R::store(level + k, Kernels::read_levels(row, pairs, k));
      }
      for (uint32_t k = 0; k < kBlockEdge; ++k) {
        const uint32_t i = r * kBlockEdge + k;
        level_[i] = static_cast<uint8_t>(level[k]);
        signs_[i] = 0;
        for (uint32_t n = 0; n < 4; ++n) signs_[i] |= static_cast<uint8_t>((row.error.at[n][k] < 0 ? 1 : 0) << n);
      }
    }
  }

  uint32_t cost_of(const TapWeights& weights, uint32_t most) const {
    const uint32_t count = feature_count(channel_);
    int32_t sums[kBlockSamples];
    for (uint32_t i = 0; i < kBlockSamples; ++i) sums[i] = 32 + (block_.base[i] << kWeightShift);
    for (uint32_t f = 0; f < count; ++f) {
      const int16_t w = weights.of[tap_of(f)];
      if (w == 0) continue;
      for (uint32_t i = 0; i < kBlockSamples; ++i) sums[i] += w * block_.features[f][i];
    }
    uint32_t cost = 0;
    for (uint32_t r = 0; r < block_.rows && cost < most; ++r) {
      for (uint32_t k = 0; k < block_.columns; ++k) {
        const uint32_t i = r * kBlockEdge + k;
        const int32_t twice = std::clamp(sums[i] >> (kWeightShift - 1), 0, 511);
        const int32_t p = twice >> 1, up = -(twice & 1);
        const int32_t zone = (((p ^ up) & 0xFF) * 3613 + 61923) >> 16;
        const int32_t w = block_.base[i], n = w + block_.features[0][i];
        const int32_t pattern = (signs_[i] | (w >= p ? 16 : 0) | (n >= p ? 32 : 0)) ^ (up & 63);
        const uint8_t table = table_of_[zone << 6 | pattern][level_[i]];
        const int32_t folded = static_cast<int8_t>(((block_.value[i] - p) ^ up) - up);
        cost += lengths_.of[table][static_cast<uint8_t>(folded << 1 ^ folded >> 31)];
      }
    }
    return cost;
  }

  const DensePlanes& planes_;
  const uint32_t channel_;
  const DenseModel& model_;
  const Lengths& lengths_;
  const std::vector<uint32_t>& class_costs_;
  const uint8_t* table_of_[kZones * kSignPatterns];  // by level
  BlockFeatures block_;
  uint8_t level_[kBlockSamples], signs_[kBlockSamples];
};

}  // namespace

void refine_classes(const std::vector<std::unique_ptr<DenseTile>>& tiles, const DenseKernels& kernels,
                    const l3_parallel& parallel, const DenseModel& model) {
  const Lengths lengths(model);
  for (uint32_t c = 0; c < model.channels; ++c) {
    std::vector<uint32_t> costs(model.classes[c]);
    double blocks = 0;
    for (const auto& tile : tiles) {
      const DensePlanes& planes = tile->planes();
      for (uint32_t b = 0; b < planes.block_count(); ++b) ++costs[planes.classes[c][b]];
      blocks += planes.block_count();
    }
    for (uint32_t& cost : costs) cost = static_cast<uint32_t>(-kUnits * logarithm((cost + 1.0) / (blocks + 1)));
    auto refine = [&](uint64_t i) {
      const DensePlanes& planes = tiles[i]->planes();
      Chooser(planes, c, model, lengths, costs).run();
      kernels.evaluate(planes, c, model.weights[c], nullptr);
    };
    run_parallel(parallel, tiles.size(), refine);
  }
}

}  // namespace l3
