// Implements token_fit.h: least squares for predictors, alternating with the choice of each block's class.
#include "encode/token_fit.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "container/logarithm.h"
#include "encode/class_fit.h"
#include "encode/token_features.h"

namespace l3 {
namespace {

constexpr float kMinScale = 0.3f;

void choose_classes(TokenTile& tile, uint32_t c, const TapWeights* weights, uint32_t classes, int32_t hole,
                    const TokenScales& scales) {
  const uint32_t count = feature_count(c);
  FeatureReader(tile, c, hole).run(scales, [&](uint32_t number, FeatureBlock& block) {
    clear_outside(block, count);
    int64_t best = INT64_MAX;
    for (uint32_t k = 0; k < classes; ++k) {
      const int64_t cost = cost_of(block, weights[k], count);
      if (cost >= best) continue;
      best = cost;
      tile.classes[c][number] = static_cast<uint8_t>(k);
    }
  });
}

class ChannelFit : public ClassFit<ChannelFit, TokenModel> {
 public:
  ChannelFit(const TokenTiles& tiles, uint32_t c, const TokenEffort& effort, TokenModel& model, TokenScales& scales)
      : ClassFit(model, c), tiles_(tiles), scales_(scales), hole_(hole_of(model)) {
    uint64_t blocks = 0;
    for (const auto& tile : tiles) {
      for (uint32_t b = 0; b < tile->block_count(); ++b) blocks += counts(*tile, b);
    }
    classes_ = static_cast<uint32_t>(std::clamp<uint64_t>(blocks / 8, 1, effort.classes));
  }

 private:
  friend ClassFit;

  template <class Use>
  void for_classes(const Use& use) const {
    for (const auto& tile : tiles_) use(tile->classes[channel_].data(), tile->classes[channel_].size());
  }

  // Whether a block has any sample that is predicted.
  bool counts(const TokenTile& tile, uint32_t b) const {
    const uint32_t x = b % tile.blocks_across * kBlockEdge, y = b / tile.blocks_across * kBlockEdge;
    for (uint32_t r = y; r < std::min(y + kBlockEdge, tile.height); ++r) {
      for (uint32_t k = x; k < std::min(x + kBlockEdge, tile.width); ++k) {
        if (tile.symbols[size_t{r} * tile.width + k] == kMatchNone) return true;
      }
    }
    return false;
  }

  // The starting point: blocks sorted by activity, cut into classes of equal size; a simple predictor.
  void start() {
    set_simple_weights();
    scales_ = first_token_scales();
    for_classes([](uint8_t* classes, size_t count) { std::fill_n(classes, count, uint8_t{0}); });
    evaluate();
    if (classes_ == 1) return;
    struct Busy {
      uint64_t sum;
      uint8_t* class_of;
    };
    std::vector<Busy> order;
    for (const auto& tile : tiles_) {
      const size_t first = order.size();
      for (uint32_t b = 0; b < tile->block_count(); ++b) {
        order.push_back({0, counts(*tile, b) ? &tile->classes[channel_][b] : nullptr});
      }
      for (size_t i = 0; i < tile->pixels(); ++i) {
        const size_t x = i % tile->width, y = i / tile->width;
        order[first + y / kBlockEdge * tile->blocks_across + x / kBlockEdge].sum +=
            static_cast<uint64_t>(std::abs(tile->errors[channel_][i]));
      }
    }
    // Blocks without predicted samples have no class.
    order.erase(std::remove_if(order.begin(), order.end(), [](const Busy& block) { return block.class_of == nullptr; }),
                order.end());
    std::stable_sort(order.begin(), order.end(), [](const Busy& a, const Busy& b) { return a.sum < b.sum; });
    for (size_t i = 0; i < order.size(); ++i) *order[i].class_of = static_cast<uint8_t>(i * classes_ / order.size());
  }

  // Predicts all tiles, and estimates the bits per sample without a constant.
  void evaluate() {
    double sums[TokenScales::kLevels][2] = {};
    for (const auto& tile : tiles_) {
      predict_tile(*tile, channel_, weights(), model_.depth[channel_], hole_);
      add_scales(*tile, sums);
    }
    double bits = 0, samples = 0;
    for (uint32_t level = 0; level < TokenScales::kLevels; ++level) {
      const auto [number, sum] = sums[level];
      if (number >= 16) scales_.of[level] = kMinScale + static_cast<float>(sum / number);
      if (number > 0) bits += number * logarithm(kMinScale + sum / number);
      samples += number;
    }
    estimate_ = samples > 0 ? bits / samples : 0;
  }

  void add_scales(const TokenTile& tile, double (*sums)[2]) const {
    NeighbourRows own(tile.width), errors(tile.width);
    for (uint32_t y = 0; y < tile.height; ++y) {
      own.find(tile.values[channel_].data(), y);
      if (hole_ >= 0) own.fill_holes(hole_);
      errors.find(tile.errors[channel_].data(), y);
      for (uint32_t x = 0; x < tile.width; ++x) {
        const size_t i = size_t{y} * tile.width + x;
        if (tile.symbols[i] != kMatchNone) continue;
        const uint32_t level = scale_level(own, errors, x);
        sums[level][0] += 1;
        sums[level][1] += std::abs(tile.errors[channel_][i]);
      }
    }
  }

  void assign() {
    for (const auto& tile : tiles_) choose_classes(*tile, channel_, weights(), classes_, hole_, scales_);
  }

  // The sum of the diagonal of a triangle of products.
  static double trace_of(const double* products, uint32_t count) {
    double trace = 0;
    for (uint32_t i = 0, at = 0; i < count; at += ++i + 1) trace += products[at];
    return trace;
  }

  void refit() {
    const uint32_t count = feature_count(channel_);
    std::vector<double> products(size_t{classes_} * kMaxProducts);
    std::vector<double> seen(classes_);
    for (const auto& tile : tiles_) {
      FeatureReader(*tile, channel_, hole_).run(scales_, [&](uint32_t number, FeatureBlock& block) {
        clear_outside(block, count);
        const uint32_t k = tile->classes[channel_][number];
        add_products(block.at, block.weight, count + 1, block.rows * kBlockEdge, &products[k * kMaxProducts]);
        seen[k] += 1;
      });
    }
    for (uint32_t k = 0; k < classes_; ++k) {
      if (seen[k] == 0) continue;
      const double* p = &products[k * kMaxProducts];
      Equations equations = equations_of(p, count, 1e-4 * trace_of(p, count) / count + 1e-3);
      Equations solution = equations;
      if (!solution.solve()) continue;
      round_solution(equations, solution, count);
      set_weights(solution, channel_, share_, weights()[k]);
    }
  }

  void fit_activity() {
    set_simple_activity();
    const uint32_t count = activity_terms();
    for (uint32_t round = 0; round < 2; ++round) {
      std::vector<double> products(kMaxProducts);
      for (const auto& tile : tiles_) add_activity(*tile, model_.activity[channel_], count, products.data());
      if (!solve_activity(
              equations_of(products.data(), count, 1e-4 * trace_of(products.data(), count) / count + 1e-6))) {
        return;
      }
    }
  }

  void add_activity(const TokenTile& tile, const uint8_t* activity, uint32_t count, double* products) const {
    ContextFinder finder(tile, hole_);
    alignas(16) float rows[kActivityTerms + 1][kBlockEdge * kBlockEdge];
    alignas(16) float weight[kBlockEdge * kBlockEdge];
    for (uint32_t y = 0; y < tile.height; ++y) {
      const std::vector<int32_t>* terms = finder.terms(channel_, y);
      uint32_t filled = 0;
      const auto flush = [&] {
        for (; filled % 4 != 0; ++filled) {
          weight[filled] = 0;
          for (uint32_t i = 0; i <= count; ++i) rows[i][filled] = 0;
        }
        add_products(rows, weight, count + 1, filled, products);
        filled = 0;
      };
      for (uint32_t x = 0; x < tile.width; ++x) {
        const size_t at = size_t{y} * tile.width + x;
        if (tile.symbols[at] != kMatchNone) continue;
        float sum = kActivityFloor;
        for (uint32_t i = 0; i < count; ++i) {
          rows[i][filled] = static_cast<float>(terms[i][x]);
          sum += activity[i] * rows[i][filled];
        }
        rows[count][filled] = static_cast<float>(std::abs(tile.errors[channel_][at]));
        const float expected = sum / 64 + 0.55f;
        weight[filled] = 1 / (expected * expected);
        if (++filled == kBlockEdge * kBlockEdge) flush();
      }
      flush();
    }
  }

  const TokenTiles& tiles_;
  TokenScales& scales_;
  const int32_t hole_;
};

}  // namespace

TokenEffort token_effort_of(uint32_t effort) {
  switch (effort) {
    case 1: return {2, 1, 16, 2, 1u << 15};
    case 2: return {4, 2, 20, 3, 1u << 16};
    case 3: return {8, 2, 24, 3, 1u << 17};
    case 4: return {12, 3, 32, 4, 1u << 18};
    case 5: return {16, 4, 32, 6, 1u << 19};
    case 6: return {16, 5, 40, 6, 1u << 20};
    case 7: return {24, 6, 48, 8, 1u << 21};
    case 8: return {32, 8, 56, 10, 1u << 22};
    default: return {32, 12, 64, 12, 1u << 23};
  }
}

TokenScales first_token_scales() {
  TokenScales scales;
  for (uint32_t level = 0; level < TokenScales::kLevels; ++level) {
    scales.of[level] = kMinScale + std::bit_cast<float>((level + (127u << 1)) << 22) / 8;
  }
  return scales;
}

void fit_token_channel(const TokenTiles& tiles, uint32_t c, const TokenEffort& effort, TokenModel& model,
                       TokenScales& scales) {
  ChannelFit(tiles, c, effort, model, scales).run(effort.rounds);
}

void choose_tile_classes(TokenTile& tile, uint32_t c, const TokenModel& model, const TokenScales& scales) {
  std::fill(tile.classes[c].begin(), tile.classes[c].end(), static_cast<uint8_t>(model.classes[c] / 2));
  predict_tile(tile, c, model.weights[c], model.depth[c], hole_of(model));
  if (model.classes[c] == 1) return;
  for (uint32_t round = 0; round < 2; ++round) {
    choose_classes(tile, c, model.weights[c], model.classes[c], hole_of(model), scales);
    predict_tile(tile, c, model.weights[c], model.depth[c], hole_of(model));
  }
}

}  // namespace l3
