// Refines the weights of predictors and of activities, judged by code lengths (declared in dense_refine_blocks.h).
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "encode/dense_fit_equations.h"
#include "encode/dense_refine_blocks.h"

namespace l3 {
namespace {

// Refines the predictor of a class, using the samples of some of its blocks.
class PredictorRefinement {
 public:
  PredictorRefinement(const std::vector<BlockOfTile>& blocks, uint32_t channel, const SymbolLengths& lengths,
                      const ChannelTables& tables, const DenseModel& model)
      : channel_(channel), count_(feature_count(channel)), lengths_(lengths), tables_(tables), model_(model) {
    const RefineKernels::ActivityPairs pairs(model.activity[channel], 9 + cross_channels(channel));
    for (const BlockOfTile& at : blocks) {
      blocks_.push_back(std::make_unique_for_overwrite<Block>());
      Block& block = *blocks_.back();
      RefineKernels::read_block(*at.planes, channel, at.block, block.own);
      block.places.read(*at.planes, channel, pairs, block.own);
    }
  }

  void run(TapWeights& weights) {
    for (uint32_t f = 0; f < count_; ++f) features_[f] = weights.of[tap_of(f)];
    set_sums();
    best_ = cost(0, 0);
    solve();
    for (uint32_t f = 0; f < count_; ++f) walk(f);
    weights = WideWeights(features_, channel_).narrow();
  }

 private:
  struct Block {
    BlockFeatures own;
    BlockPlaces places;
    int32_t sums[kBlockSamples];
  };

  bool fits() const { return WideWeights(features_, channel_).fit(DenseForm::kMaxPair); }

  void set_sums() {
    for (const auto& block : blocks_) {
      for (uint32_t i = 0; i < kBlockSamples; ++i) block->sums[i] = 32 + (block->own.base[i] << kWeightShift);
      for (uint32_t f = 0; f < count_; ++f) {
        const int32_t weight = features_[f];
        if (weight == 0) continue;
        for (uint32_t i = 0; i < kBlockSamples; ++i) block->sums[i] += weight * block->own.features[f][i];
      }
    }
  }

  // Calls visit(sample, outcome) for all samples of a block, with one weight raised by `step`. Skips samples outside
  // the image.
  template <class Visit>
  L3_INLINE void for_each_outcome(const Block& block, uint32_t feature, int32_t step, const Visit& visit) const {
    int32_t twice[kBlockSamples];
    const int16_t* of_feature = block.own.features[feature];
    const int32_t sign = step < 0 ? -1 : 0, any = step == 0 ? 0 : -1;
    for (uint32_t i = 0; i < kBlockSamples; ++i) {
      const int32_t sum = block.sums[i] + (((of_feature[i] ^ sign) - sign) & any);
      const int32_t half = static_cast<int16_t>(sum) >> (kWeightShift - 1);
      twice[i] = half < 0 ? 0 : half > 511 ? 511 : half;
    }
    for (uint32_t r = 0; r < kBlockEdge; ++r) {
      for (uint32_t i = r * kBlockEdge; i < r * kBlockEdge + block.own.columns && block.own.has_row(r); ++i) {
        const int32_t w = block.own.base[i];
        visit(i, outcome_of(twice[i], block.own.value[i], w, w + block.own.features[0][i], block.places.signs[i],
                            tables_));
      }
    }
  }

  uint32_t table_of(const Block& block, uint32_t i, const Outcome& outcome) const {
    return tables_.table_of[outcome.row + block.places.level[i]];
  }

  // The cost of all samples with one weight raised by `step`, which is -1, 0 or 1.
  uint64_t cost(uint32_t feature, int32_t step) const {
    uint64_t sum = 0;
    for (const auto& block : blocks_) {
      uint32_t of_block = 0;
      for_each_outcome(*block, feature, step, [&](uint32_t i, const Outcome& outcome) {
        of_block += lengths_.of[table_of(*block, i, outcome)][outcome.symbol];
      });
      sum += of_block;
    }
    return sum;
  }

  // Changes one weight in steps of 1 for as long as the cost falls.
  void walk(uint32_t feature) {
    for (const int32_t step : {1, -1}) {
      bool moved = false;
      while (true) {
        features_[feature] += step;
        const uint64_t now = fits() ? cost(feature, step) : UINT64_MAX;
        if (now >= best_) break;
        best_ = now;
        moved = true;
        for (const auto& block : blocks_) {
          for (uint32_t i = 0; i < kBlockSamples; ++i) block->sums[i] += step * block->own.features[feature][i];
        }
      }
      features_[feature] -= step;
      if (moved) return;
    }
  }

  // Solves least squares, in which each sample is scaled by the error that its table expects. Keeps the solution only
  // if it makes symbols shorter.
  void solve() {
    std::vector<int64_t> products(kMaxProducts);
    for (const auto& block : blocks_) add_products(*block, products.data());
    const double ridge = kRidgeOfClass + kRidgeOfSample * kBlockSamples * static_cast<double>(blocks_.size());
    Equations equations = equations_of(products.data(), count_, ridge);
    Equations solution = equations;
    if (!solution.solve()) return;
    round_solution(equations, solution, count_);
    int32_t before[kMaxFeatures];
    std::memcpy(before, features_, sizeof(before));
    for (uint32_t f = 0; f < count_; ++f) {
      features_[f] = static_cast<int32_t>(std::clamp(solution.right(f) * (1 << kWeightShift), -1000.0, 1000.0));
    }
    set_sums();
    const uint64_t now = fits() ? cost(0, 0) : UINT64_MAX;
    if (now < best_) {
      best_ = now;
      return;
    }
    std::memcpy(features_, before, sizeof(before));
    set_sums();
  }

  void add_products(const Block& block, int64_t* products) const {
    alignas(64) int16_t rows[kMaxFeatures + 1][kBlockSamples];
    alignas(64) int16_t scale[kBlockSamples] = {};
    for_each_outcome(block, 0, 0, [&](uint32_t i, const Outcome& outcome) {
      scale[i] = scales_.of[table_of(block, i, outcome)][std::abs(outcome.error)];
    });
    std::memcpy(rows, block.own.features, sizeof(rows[0]) * count_);
    for (uint32_t i = 0; i < kBlockSamples; ++i) {
      rows[count_][i] = static_cast<int16_t>(block.own.value[i] - block.own.base[i]);
    }
    RefineKernels::scale_rows(rows, count_ + 1, scale);
    ShortVectors<16>::add_triangle(rows, count_ + 1, products);
  }

  // The weights of samples in the normal equations, by table and |error|.
  struct Scales {
    int16_t of[kMaxTables][256];

    explicit Scales(const DenseModel& model) {
      for (uint32_t t = 0; t < model.table_count; ++t) {
        double sum = 0;
        for (uint32_t i = 1; i < kMaxSymbols; ++i) sum += static_cast<double>((i + 1) / 2 * model.frequencies[t][i]);
        for (uint32_t e = 0; e < 256; ++e) of[t][e] = scale_of_error(sum / kProbabilities, e);
      }
    }
  };

  const uint32_t channel_, count_;
  const SymbolLengths& lengths_;
  const ChannelTables& tables_;
  const DenseModel& model_;
  const Scales scales_{model_};
  std::vector<std::unique_ptr<Block>> blocks_;
  int32_t features_[kMaxFeatures];
  uint64_t best_ = 0;
};

// Refines the activity weights of a channel, using the samples of some blocks.
class ActivityRefinement {
 public:
  ActivityRefinement(const std::vector<BlockOfTile>& blocks, uint32_t channel, const SymbolLengths& lengths,
                     const ChannelTables& tables)
      : channel_(channel), count_(9 + cross_channels(channel)), lengths_(lengths), tables_(tables) {
    for (const BlockOfTile& at : blocks) {
      blocks_.push_back(std::make_unique_for_overwrite<Block>());
      read(*at.planes, at.block, *blocks_.back());
    }
  }

  void run(uint8_t* weights) {
    weight_sum_ = std::accumulate(weights, weights + count_, 0u);
    for (const auto& block : blocks_) {
      for (uint32_t i = 0; i < kBlockSamples; ++i) block->activity[i] = kActivityFloor;
      for (uint32_t t = 0; t < count_; ++t) add(*block, t, weights[t]);
    }
    best_ = cost(0, 0);
    for (uint32_t t = 0; t < count_; ++t) {
      if (!walk(weights, t, 1)) walk(weights, t, -1);
    }
  }

 private:
  struct Block {
    int16_t terms[kActivityTerms][kBlockSamples];
    int32_t activity[kBlockSamples];
    uint16_t row[kBlockSamples];  // 64 * row
    uint8_t symbol[kBlockSamples];
    uint32_t columns, rows;
  };

  void read(const DensePlanes& planes, uint32_t index, Block& block) const {
    const uint32_t x = index % planes.blocks_across * kBlockEdge, y = index / planes.blocks_across * kBlockEdge;
    block.columns = smaller(kBlockEdge, planes.width - x);
    block.rows = smaller(kBlockEdge, planes.height - y);
    std::memset(block.terms, 0, sizeof(block.terms));
    RefineKernels::ContextRow row;
    for (uint32_t r = 0; r < block.rows; ++r) {
      RefineKernels::read_terms(planes, channel_, x, y + r, row);
      for (uint32_t t = 0; t < count_; ++t) copy_16(block.terms[t] + r * kBlockEdge, row.terms[t]);
      const size_t at = (y + r) * planes.pitch + x;
      for (uint32_t k = 0; k < block.columns; ++k) {
        const Outcome outcome =
            outcome_of(planes.predicted[channel_][at + k], planes.samples[channel_][at + k], row.own.at[kW][k],
                       row.own.at[kN][k], BlockPlaces::signs_of(row.error, k), tables_);
        block.row[r * kBlockEdge + k] = outcome.row;
        block.symbol[r * kBlockEdge + k] = outcome.symbol;
      }
    }
  }

  static void add(Block& block, uint32_t term, int32_t step) {
    for (uint32_t i = 0; i < kBlockSamples; ++i) block.activity[i] += step * block.terms[term][i];
  }

  uint64_t cost(uint32_t term, int32_t step) const {
    uint64_t sum = 0;
    for (const auto& block : blocks_) {
      uint8_t level[kBlockSamples];
      for (uint32_t i = 0; i < kBlockSamples; ++i) {
        // As the format defines levels: the exponent and the top two mantissa bits of a float.
        const float activity = static_cast<float>(block->activity[i] + step * block->terms[term][i]);
        level[i] = static_cast<uint8_t>((std::bit_cast<int32_t>(activity) >> 21) - (130 << 2));
      }
      for (uint32_t r = 0; r < block->rows; ++r) {
        for (uint32_t i = r * kBlockEdge; i < r * kBlockEdge + block->columns; ++i) {
          sum += lengths_.of[tables_.table_of[block->row[i] + level[i]]][block->symbol[i]];
        }
      }
    }
    return sum;
  }

  // Changes one weight in steps of 1 for as long as the cost falls. Returns false if it never did.
  bool walk(uint8_t* weights, uint32_t term, int32_t step) {
    constexpr int32_t kMax = 90;
    for (bool moved = false;; moved = true) {
      const int32_t to = weights[term] + step;
      if (to < 0 || to > kMax || (step > 0 && weight_sum_ == DenseForm::kMaxActivity)) return moved;
      const uint64_t now = cost(term, step);
      if (now >= best_) return moved;
      best_ = now;
      weights[term] = static_cast<uint8_t>(to);
      weight_sum_ += static_cast<uint32_t>(step);
      for (const auto& block : blocks_) add(*block, term, step);
    }
  }

  const uint32_t channel_, count_;
  const SymbolLengths& lengths_;
  const ChannelTables& tables_;
  std::vector<std::unique_ptr<Block>> blocks_;
  uint64_t best_ = 0;
  uint32_t weight_sum_ = 0;
};

}  // namespace

void refine_activity(const std::vector<BlockOfTile>& blocks, uint32_t channel, const SymbolLengths& lengths,
                     DenseModel& model) {
  const ChannelTables tables(model, channel);
  ActivityRefinement(blocks, channel, lengths, tables).run(model.activity[channel]);
}

void refine_predictor(const std::vector<BlockOfTile>& blocks, uint32_t channel, const SymbolLengths& lengths,
                      const ChannelTables& tables, const DenseModel& model, TapWeights& weights) {
  if (!blocks.empty()) PredictorRefinement(blocks, channel, lengths, tables, model).run(weights);
}

}  // namespace l3
