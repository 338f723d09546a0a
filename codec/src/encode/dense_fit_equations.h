// The least-squares equations of the fit: built from sums of products, solved, and rounded to integer weights.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "engine/dense_fit_kernels.h"

namespace l3 {

// Ridge regularisation, per class and per sample: it favours small weights.
constexpr double kRidgeOfClass = 51, kRidgeOfSample = 0.02;

// A symmetric system of linear equations, solved by Cholesky's method.
class Equations {
 public:
  explicit Equations(uint32_t size) : size_(size), rows_(size_t{size} * size), right_(size) {}

  double& at(uint32_t i, uint32_t j) { return rows_[size_t{i} * size_ + j]; }  // j <= i
  double& right(uint32_t i) { return right_[i]; }

  // Leaves the solution in right(). Returns false if the matrix is not positive definite.
  bool solve() {
    for (uint32_t i = 0; i < size_; ++i) {
      double diagonal = at(i, i);
      for (uint32_t k = 0; k < i; ++k) diagonal -= at(i, k) * at(i, k);
      if (!(diagonal > 1e-9)) return false;
      at(i, i) = std::sqrt(diagonal);
      for (uint32_t j = i + 1; j < size_; ++j) {
        double v = at(j, i);
        for (uint32_t k = 0; k < i; ++k) v -= at(j, k) * at(i, k);
        at(j, i) = v / at(i, i);
      }
    }
    for (uint32_t i = 0; i < size_; ++i) {
      for (uint32_t k = 0; k < i; ++k) right_[i] -= at(i, k) * right_[k];
      right_[i] /= at(i, i);
    }
    for (uint32_t i = size_; i-- > 0;) {
      for (uint32_t k = i + 1; k < size_; ++k) right_[i] -= at(k, i) * right_[k];
      right_[i] /= at(i, i);
    }
    return true;
  }

 private:
  uint32_t size_;
  std::vector<double> rows_, right_;
};

// Builds equations from sums of products, stored as rows of a triangle whose last row belongs to the target.
template <class Sum>
Equations equations_of(const Sum* products, uint32_t size, double ridge) {
  Equations equations(size);
  const Sum* p = products;
  for (uint32_t i = 0; i < size; ++i) {
    for (uint32_t j = 0; j <= i; ++j) equations.at(i, j) = static_cast<double>(*p++);
    equations.at(i, i) += ridge;
  }
  for (uint32_t j = 0; j < size; ++j) equations.right(j) = static_cast<double>(*p++);
  return equations;
}

// Rounds a solution to 64ths: first each number separately, then single steps, in order of how much they gain.
inline void round_solution(Equations& equations, Equations& solution, uint32_t size) {
  constexpr double kOne = 1 << kWeightShift;
  double rounded[kMaxFeatures], slope[kMaxFeatures];
  const auto cell = [&](uint32_t i, uint32_t j) { return i > j ? equations.at(i, j) : equations.at(j, i); };
  for (uint32_t i = 0; i < size; ++i) rounded[i] = std::floor(solution.right(i) * kOne + 0.5);
  for (uint32_t i = 0; i < size; ++i) {
    slope[i] = -equations.right(i) * kOne;
    for (uint32_t j = 0; j < size; ++j) slope[i] += cell(i, j) * rounded[j];
  }
  constexpr uint32_t kMaxSteps = 64;
  for (uint32_t step = 0; step < kMaxSteps; ++step) {
    uint32_t best = size;
    double best_gain = 0;
    for (uint32_t i = 0; i < size; ++i) {
      const double gain = 2 * std::abs(slope[i]) - cell(i, i);
      if (gain > best_gain) {
        best_gain = gain;
        best = i;
      }
    }
    if (best == size) break;
    const double direction = slope[best] > 0 ? -1 : 1;
    rounded[best] += direction;
    for (uint32_t j = 0; j < size; ++j) slope[j] += direction * cell(best, j);
  }
  for (uint32_t i = 0; i < size; ++i) solution.right(i) = rounded[i] / kOne;
}

// The weights of taps that follow from those of features, in 64ths.
struct WideWeights {
  int32_t of[kMaxTaps] = {1 << kWeightShift};

  WideWeights(const int32_t* features, uint32_t channel) {
    for (uint32_t f = 0; f < feature_count(channel); ++f) {
      const uint32_t tap = tap_of(f);
      of[tap] += features[f];
      if (tap < 8) of[0] -= features[f];
      if (tap >= kCrossWord * kTapsOfWord) of[tap / kTapsOfWord * kTapsOfWord] -= features[f];
    }
  }

  // Changes weights of errors until no pair adds up to more than `max_pair`.
  void bound_pairs(int32_t max_pair) {
    for (uint32_t tap = kFirstErrorTap; tap < kFirstErrorTap + kErrorTaps; ++tap) {
      const int32_t sample = of[tap_of_same_sample(tap)];
      of[tap] = std::clamp(of[tap], -max_pair - sample, max_pair - sample);
    }
  }

  bool fit(int32_t max_pair) const {
    for (uint32_t tap = kFirstErrorTap; tap < kFirstErrorTap + kErrorTaps; ++tap) {
      if (std::abs(of[tap] + of[tap_of_same_sample(tap)]) > max_pair) return false;
    }
    return std::all_of(of, of + kMaxTaps, [](int32_t v) { return v >= -128 && v <= 127; });
  }

  TapWeights narrow() const {
    TapWeights weights;
    for (uint32_t tap = 0; tap < kMaxTaps; ++tap) weights.of[tap] = static_cast<int8_t>(of[tap]);
    return weights;
  }
};

// Converts to the fixed point that the kernels use for scales. `v` is at most 256 / 0.3.
inline int16_t row_scale(double v) { return static_cast<int16_t>(std::floor(v * (1 << kScaleShift) + 0.5)); }

// The expected |error| plus a constant, so that it is never 0.
inline double floored_error(double expected) { return 0.3 + expected; }

// The weight in the equations of a sample that has this error where `expected` was expected.
inline int16_t scale_of_error(double expected, uint32_t error) {
  const double mean = floored_error(expected);
  return row_scale(256 / std::sqrt(mean * (mean + 0.7 * error)));
}

// Sets a predictor's weights from a solution. Weights that are implied by others must be in range too, so all are
// scaled down until they are. If `share` is below 1, the weights move only that fraction of the way.
inline void set_weights(Equations& solution, uint32_t channel, int32_t max_pair, double share, TapWeights& weights) {
  const uint32_t count = feature_count(channel);
  constexpr double kOne = 1 << kWeightShift;
  for (double scale = 1; scale > 0.05; scale *= 0.9) {
    int32_t features[kMaxFeatures];
    for (uint32_t f = 0; f < count; ++f) {
      const double before = weights.of[tap_of(f)];
      const double exact = solution.right(f) * kOne * scale;
      const double moved = share < 1 ? before + share * (exact - before) : exact;
      features[f] = static_cast<int32_t>(std::floor(std::clamp(moved, -1000.0, 1000.0) + 0.5));
    }
    WideWeights wide(features, channel);
    wide.bound_pairs(max_pair);
    if (wide.fit(max_pair)) {
      weights = wide.narrow();
      return;
    }
  }
}

}  // namespace l3
