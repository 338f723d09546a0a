// Implements dense_fit.h: least squares for predictors, alternating with the choice of each block's class.
#include "encode/dense_fit.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "api/parallel.h"
#include "container/logarithm.h"
#include "encode/class_fit.h"

namespace l3 {
namespace {

constexpr uint32_t kChunks = 64;         // groups of tiles, each with its own sums
constexpr uint32_t kBlocksOfClass = 24;  // average number; a predictor for fewer blocks costs more than it saves
constexpr double kBitsOfCost = 1.56;     // bits per unit of the logarithm that the kernels add up
constexpr double kCostOfBit = 256 / kBitsOfCost;  // the kernels' cost units per bit

using Tiles = std::vector<std::unique_ptr<DenseTile>>;

// Calls body(chunk, tile) for every tile, in parallel over the chunks.
template <class Body>
void for_tiles(const Tiles& tiles, const l3_parallel& parallel, const Body& body) {
  auto run = [&](uint64_t chunk) {
    for (uint64_t i = chunk; i < tiles.size(); i += kChunks) body(chunk, *tiles[i]);
  };
  run_parallel(parallel, std::min<uint64_t>(kChunks, tiles.size()), run);
}

uint32_t chunk_count(const Tiles& tiles) { return static_cast<uint32_t>(std::min<size_t>(kChunks, tiles.size())); }

// Fits the predictors of one channel and the class of each block.
class ChannelFit : public ClassFit<ChannelFit, DenseModel> {
 public:
  ChannelFit(const Tiles& tiles, uint32_t channel, const DenseEffort& effort, const DenseKernels& kernels,
             const l3_parallel& parallel, DenseModel& model, FitScales& scales)
      : ClassFit(model, channel),
        tiles_(tiles),
        effort_(effort),
        kernels_(kernels),
        parallel_(parallel),
        scales_(scales) {
    for (const auto& tile : tiles) blocks_ += tile->planes().block_count();
    classes_ = static_cast<uint32_t>(std::clamp<uint64_t>(blocks_ / kBlocksOfClass, 1, effort.classes));
  }

  std::vector<uint32_t> class_costs() const {
    std::vector<uint32_t> costs(classes_);
    for (uint32_t k = 0; k < classes_; ++k) {
      const double share = (static_cast<double>(uses_[k]) + 1) / (static_cast<double>(blocks_) + classes_);
      costs[k] = static_cast<uint32_t>(-kCostOfBit * logarithm(share));
    }
    return costs;
  }

 private:
  friend ClassFit;

  // The starting point: blocks sorted by activity, cut into classes of equal size; simple predictors.
  void start() {
    struct Busy {
      uint32_t sum;
      uint8_t* class_of;
    };
    std::vector<Busy> order;
    order.reserve(blocks_);
    for (const auto& tile : tiles_) {
      const DensePlanes& p = tile->planes();
      for (uint32_t b = 0; b < p.block_count(); ++b) order.push_back({busyness(p, b), p.classes[channel_] + b});
    }
    std::stable_sort(order.begin(), order.end(), [](const Busy& a, const Busy& b) { return a.sum < b.sum; });
    for (size_t i = 0; i < order.size(); ++i) *order[i].class_of = static_cast<uint8_t>(i * classes_ / order.size());

    set_simple_weights();
    scales_ = first_scales();
    evaluate();
  }

  // The mean difference from W and N, in 16ths.
  uint32_t busyness(const DensePlanes& p, uint32_t block) const {
    const uint32_t x = block % p.blocks_across * kBlockEdge, y = block / p.blocks_across * kBlockEdge;
    const uint32_t columns = smaller(kBlockEdge, p.width - x), rows = smaller(kBlockEdge, p.height - y);
    uint32_t sum = 0;
    for (uint32_t r = 0; r < rows; ++r) {
      NeighbourRow row;
      find_neighbours(p.samples[channel_], p.pitch, x, y + r, row);
      const int16_t* v = p.samples[channel_] + (y + r) * p.pitch + x;
      for (uint32_t k = 0; k < columns; ++k) {
        sum += static_cast<uint32_t>(std::abs(v[k] - row.at[kW][k]) + std::abs(v[k] - row.at[kN][k]));
      }
    }
    return sum * 16 / (columns * rows);
  }

  template <class Use>
  void for_classes(const Use& use) const {
    for (const auto& tile : tiles_) use(tile->planes().classes[channel_], tile->planes().block_count());
  }

  void refit() {
    const uint32_t count = feature_count(channel_);
    const uint32_t chunks = chunk_count(tiles_);
    const size_t each = size_t{classes_} * kMaxProducts;
    std::vector<int64_t> products(each * chunks);
    for_tiles(tiles_, parallel_, [&](uint64_t chunk, DenseTile& tile) {
      kernels_.accumulate(tile.planes(), channel_, scales_, effort_.block_step, products.data() + each * chunk);
    });
    for (uint32_t chunk = 1; chunk < chunks; ++chunk) {
      for (size_t i = 0; i < each; ++i) products[i] += products[each * chunk + i];
    }
    for (uint32_t k = 0; k < classes_; ++k) {
      if (uses_[k] == 0) continue;
      const double ridge = kRidgeOfClass + kRidgeOfSample * kBlockSamples * static_cast<double>(uses_[k]);
      Equations equations = equations_of(products.data() + k * kMaxProducts, count, ridge);
      Equations solution = equations;
      if (!solution.solve()) continue;
      round_solution(equations, solution, count);
      set_weights(solution, channel_, DenseForm::kMaxPair, share_, weights()[k]);
    }
  }

  void assign() {
    const std::vector<uint32_t> costs = class_costs();
    for_tiles(tiles_, parallel_, [&](uint64_t, DenseTile& tile) {
      kernels_.assign(tile.planes(), channel_, scales_, weights(), costs.data(), classes_, effort_.half_blocks);
    });
  }

  void evaluate() {
    count_uses();
    uint64_t sums[kChunks][kFitLevels][2] = {};
    for_tiles(tiles_, parallel_, [&](uint64_t chunk, DenseTile& tile) {
      kernels_.evaluate(tile.planes(), channel_, weights(), sums[chunk]);
    });
    for (uint32_t chunk = 1; chunk < kChunks; ++chunk) {
      for (uint32_t level = 0; level < kFitLevels; ++level) {
        for (uint32_t i = 0; i < 2; ++i) sums[0][level][i] += sums[chunk][level][i];
      }
    }
    set_scales(scales_, sums[0]);
    estimate_ = estimate(sums[0]);
  }

  // An estimate of the bits per sample, without a constant that is the same for all predictors.
  double estimate(const uint64_t (*sums)[2]) const {
    double bits = 0, samples = 0;
    for (uint32_t level = 0; level < kFitLevels; ++level) {
      const double here = static_cast<double>(sums[level][0]);
      const double expected = (static_cast<double>(sums[level][1]) + 0.5) / (here + 1);
      bits += here * logarithm(floored_error(expected));
      samples += here;
    }
    for (const uint64_t uses : uses_) {
      const double times = static_cast<double>(uses);
      if (uses > 0) bits -= times * logarithm(times / static_cast<double>(blocks_));
    }
    return bits / samples;
  }

  void count_uses() {
    uses_.assign(classes_, 0);
    for_classes([&](const uint8_t* classes, size_t count) {
      for (size_t i = 0; i < count; ++i) ++uses_[classes[i]];
    });
  }

  void fit_activity() {
    count_uses();
    set_simple_activity();
    int16_t scale_of_level[kLevels];
    for (uint32_t level = 0; level < kLevels; ++level) {
      // The middle of the level, in samples, plus a small constant.
      const double activity = std::ldexp(4 + (level & 3) + 0.5, static_cast<int>(level / 4) + 1) / 64;
      scale_of_level[level] = row_scale(256 / (activity + 0.55));
    }
    const uint32_t chunks = chunk_count(tiles_);
    for (uint32_t round = 0; round < effort_.activity_rounds; ++round) {
      std::vector<int64_t> products(size_t{kMaxProducts} * chunks);
      for_tiles(tiles_, parallel_, [&](uint64_t chunk, DenseTile& tile) {
        kernels_.accumulate_activity(tile.planes(), channel_, model_.activity[channel_], scale_of_level,
                                     effort_.block_step, products.data() + kMaxProducts * chunk);
      });
      for (uint32_t chunk = 1; chunk < chunks; ++chunk) {
        for (uint32_t i = 0; i < kMaxProducts; ++i) products[i] += products[kMaxProducts * chunk + i];
      }
      if (!solve_activity(equations_of(products.data(), activity_terms(), 1024))) return;
    }
  }

  const Tiles& tiles_;
  const DenseEffort& effort_;
  const DenseKernels& kernels_;
  const l3_parallel& parallel_;
  FitScales& scales_;
  uint64_t blocks_ = 0;
  std::vector<uint64_t> uses_;  // by class
};

}  // namespace

DenseEffort effort_of(uint32_t effort) {
  // classes, rounds, more; half; settle, tables; pixels, more; step, activity, levels, table rounds; refine rounds
  switch (effort) {
    case 1: return {4, 2, 0, true, 1, 20, 1u << 16, 0, 2, 1, 3, 2, 0, {}};
    case 2: return {8, 3, 0, true, 1, 24, 1u << 17, 0, 1, 1, 8, 3, 0, {}};
    case 3: return {16, 4, 0, false, 1, 24, 1u << 17, 0, 1, 2, 12, 4, 0, {}};
    case 4: return {20, 4, 1, false, 1, 24, 1u << 17, 1u << 19, 1, 2, 16, 6, 0, {}};
    case 5: return {24, 6, 3, false, 2, 24, 1u << 17, 1u << 20, 1, 2, 16, 6, 0, {}};
    case 6: return {24, 6, 3, false, 2, 24, 1u << 17, 1u << 20, 1, 2, 16, 6, 1, {0, 512}};
    case 7: return {32, 8, 3, false, 2, 24, 1u << 18, 1u << 21, 1, 3, 16, 6, 1, {32, 512}};
    case 8: return {32, 8, 3, false, 2, 24, 1u << 18, 1u << 22, 1, 3, 16, 6, 1, {64, 512}};
    default: return {32, 14, 4, false, 2, 24, 1u << 19, 1u << 23, 1, 3, 16, 6, 2, {96, 1024}};
  }
}

FitScales first_scales() {
  FitScales scales{};
  const uint64_t none[kFitLevels][2] = {};
  set_scales(scales, none);
  return scales;
}

void set_scales(FitScales& scales, const uint64_t (*sums)[2]) {
  for (uint32_t level = 0; level < kFitLevels; ++level) {
    const double expected = (static_cast<double>(sums[level][1]) + 0.5) / (static_cast<double>(sums[level][0]) + 1);
    const double mean = floored_error(expected);
    for (uint32_t e = 0; e < 256; ++e) scales.scale[level][e] = scale_of_error(expected, e);
    const auto rounded = [](double v) { return static_cast<int16_t>(std::floor(v + 0.5)); };
    scales.cost[level][0] = rounded(kCostOne * 0.5 / mean);
    scales.cost[level][1] = rounded(kCostOne * 4 * 0.175 / (mean * mean));
  }
}

void fit_predictors(const Tiles& tiles, uint32_t channels, const DenseEffort& effort, bool again,
                    const DenseKernels& kernels, const l3_parallel& parallel, DenseModel& model, FitScales* scales,
                    std::vector<uint32_t>* class_costs) {
  model.channels = channels;
  for (uint32_t c = 0; c < channels; ++c) {
    ChannelFit fit(tiles, c, effort, kernels, parallel, model, scales[c]);
    if (again) {
      fit.run_again(effort.more_rounds);
    } else {
      fit.run(effort.rounds);
    }
    class_costs[c] = fit.class_costs();
  }
}

}  // namespace l3
