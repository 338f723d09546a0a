// Implements token_fit.h: least squares for predictors, alternating with the choice of each block's class.
#include "encode/token_fit.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "container/logarithm.h"
#include "encode/class_fit.h"
#include "encode/dense_fit_equations.h"

namespace l3 {
namespace {

constexpr float kMinScale = 0.3f;

class ChannelFit : public ClassFit<ChannelFit, TokenModel> {
 public:
  ChannelFit(const TokenTiles& tiles, const TokenKernels& kernels, uint32_t c, const TokenEffort& effort,
             TokenModel& model, TokenScales& scales)
      : ClassFit(model, c), tiles_(tiles), kernels_(kernels), scales_(scales) {
    uint64_t blocks = 0;
    for (const auto& tile : tiles) {
      for (uint32_t b = 0; b < tile->planes().block_count(); ++b) blocks += counts(tile->planes(), b);
    }
    classes_ = static_cast<uint32_t>(std::clamp<uint64_t>(blocks / 8, 1, effort.classes));
  }

 private:
  friend ClassFit;

  template <class Use>
  void for_classes(const Use& use) const {
    for (const auto& tile : tiles_) use(tile->planes().classes[channel_], tile->planes().block_count());
  }

  // Whether a block has any sample that is predicted.
  static bool counts(const TokenPlanes& tile, uint32_t b) {
    bool any = false;
    for_rows(tile, b, [&](size_t at, uint32_t columns) {
      any |= std::memchr(tile.symbols + at, kMatchNone, columns) != nullptr;
    });
    return any;
  }
  template <class Use>
  static void for_rows(const TokenPlanes& tile, uint32_t b, const Use& use) {
    const uint32_t x = b % tile.blocks_across * kBlockEdge, y = b / tile.blocks_across * kBlockEdge;
    for (uint32_t r = y; r < std::min(y + kBlockEdge, tile.height); ++r)
      use(r * tile.pitch + x, std::min(kBlockEdge, tile.width - x));
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
      const TokenPlanes& planes = tile->planes();
      for (uint32_t b = 0; b < planes.block_count(); ++b) {
        if (!counts(planes, b)) continue;
        order.push_back({0, &planes.classes[channel_][b]});
        for_rows(planes, b, [&](size_t at, uint32_t columns) {
          for (uint32_t k = 0; k < columns; ++k)
            order.back().sum += static_cast<uint64_t>(std::abs(planes.errors[channel_][at + k]));
        });
      }
    }
    std::stable_sort(order.begin(), order.end(), [](const Busy& a, const Busy& b) { return a.sum < b.sum; });
    for (size_t i = 0; i < order.size(); ++i) *order[i].class_of = static_cast<uint8_t>(i * classes_ / order.size());
  }

  // Predicts all tiles, and estimates the bits per sample without a constant.
  void evaluate() {
    uint64_t sums[kScaleLevels][2] = {};
    for (const auto& tile : tiles_) {
      kernels_.predict(tile->planes(), channel_, weights(), model_.depth[channel_]);
      kernels_.add_scales(tile->planes(), channel_, sums);
    }
    double bits = set_class_costs(), samples = 0;
    for (uint32_t level = 0; level < kScaleLevels; ++level) {
      const double number = static_cast<double>(sums[level][0]), sum = static_cast<double>(sums[level][1]);
      if (number >= 16) scales_.of[level] = kMinScale + static_cast<float>(sum / number);
      if (number > 0) bits += number * logarithm(kMinScale + sum / number);
      samples += number;
    }
    estimate_ = samples > 0 ? bits / samples : 0;
  }

  // Sets the costs of classes to what they are if each is coded with its own frequency. Returns the sum of all.
  double set_class_costs() {
    uint32_t times[kMaxClasses] = {}, all = 0;
    for (const auto& tile : tiles_) {
      const TokenPlanes& planes = tile->planes();
      for (uint32_t b = 0; b < planes.block_count(); ++b) {
        if (planes.still[b] != 0) continue;
        ++times[planes.classes[channel_][b]];
        ++all;
      }
    }
    double sum = 0;
    for (uint32_t k = 0; k < classes_; ++k) {
      const double bits = logarithm(all + 0.5 * classes_) - logarithm(times[k] + 0.5);
      scales_.class_costs[k] = static_cast<int32_t>(bits * (1 << 15));
      sum += times[k] * bits;
    }
    return sum;
  }

  void assign() {
    for (const auto& tile : tiles_) kernels_.assign(tile->planes(), channel_, scales_, weights(), classes_);
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
    bool seen[kMaxClasses] = {};
    for (const auto& tile : tiles_) kernels_.accumulate(tile->planes(), channel_, scales_, products.data(), seen);
    for (uint32_t k = 0; k < classes_; ++k) {
      if (!seen[k]) continue;
      const double* p = &products[k * kMaxProducts];
      Equations equations = equations_of(p, count, 1e-4 * trace_of(p, count) / count + 1e-3);
      Equations solution = equations;
      if (!solution.solve()) continue;
      round_solution(equations, solution, count);
      set_weights(solution, channel_, TokenForm::kMaxPair, share_, weights()[k]);
    }
  }

  void fit_activity() {
    if (classes_ > 1) {
      set_class_costs();  // of the classes that are left
      assign();
    }
    evaluate();
    set_simple_activity();
    const uint32_t count = activity_terms();
    for (uint32_t round = 0; round < 2; ++round) {
      std::vector<double> products(kMaxProducts);
      for (const auto& tile : tiles_) {
        kernels_.accumulate_activity(tile->planes(), channel_, model_.activity[channel_], products.data());
      }
      if (!solve_activity(
              equations_of(products.data(), count, 1e-4 * trace_of(products.data(), count) / count + 1e-6))) {
        return;
      }
    }
  }

  const TokenTiles& tiles_;
  const TokenKernels& kernels_;
  TokenScales& scales_;
};

}  // namespace

TokenEffort token_effort_of(uint32_t effort) {
  switch (effort) {
    case 1: return {2, 1, 1, 7, 16, 2, 1u << 15, 1u << 15, 0};
    case 2: return {4, 2, 1, 7, 20, 3, 1u << 16, 1u << 15, 0};
    case 3: return {6, 2, 1, 3, 24, 3, 1u << 17, 1u << 15, 0};
    case 4: return {12, 3, 1, 3, 32, 3, 1u << 18, 1u << 16, 2};
    case 5: return {20, 6, 2, 3, 32, 4, 1u << 19, 1u << 17, 3};
    case 6: return {20, 6, 2, 1, 40, 6, 1u << 20, 1u << 17, 4};
    case 7: return {24, 7, 2, 1, 48, 8, 1u << 21, 1u << 18, 4};
    case 8: return {32, 8, 2, 1, 56, 10, 1u << 22, 1u << 18, 8};
    default: return {32, 12, 2, 1, 64, 12, 1u << 23, 1u << 18, 16};
  }
}

TokenScales first_token_scales() {
  TokenScales scales{};
  for (uint32_t level = 0; level < kScaleLevels; ++level) {
    scales.of[level] = kMinScale + std::bit_cast<float>((level + (127u << 1)) << 22) / 8;
  }
  return scales;
}

void fit_token_channel(const TokenTiles& tiles, const TokenKernels& kernels, uint32_t c, const TokenEffort& effort,
                       TokenModel& model, TokenScales& scales) {
  ChannelFit(tiles, kernels, c, effort, model, scales).run(effort.rounds);
}

void choose_tile_classes(const TokenPlanes& tile, const TokenKernels& kernels, uint32_t c, uint32_t rounds,
                         const TokenModel& model, const TokenScales& scales) {
  std::memset(tile.classes[c], static_cast<int>(model.classes[c] / 2), tile.block_count());
  kernels.predict(tile, c, model.weights[c], model.depth[c]);
  for (uint32_t round = 0; round < rounds && model.classes[c] > 1; ++round) {
    kernels.assign(tile, c, scales, model.weights[c], model.classes[c]);
    kernels.predict(tile, c, model.weights[c], model.depth[c]);
  }
}

}  // namespace l3
