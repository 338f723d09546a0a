// What fitting the predictors of a channel has in common for dense and token models: rounds of least squares and of
// choosing the class of each block, of which the best one is kept.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "encode/dense_fit_equations.h"

namespace l3 {

// `Fit` derives from this. It has the functions start(), refit(), assign(), evaluate(), which sets `estimate_`,
// fit_activity(), and for_classes(), which calls use(classes, count) for the blocks of each tile.
template <class Fit, class Model>
class ClassFit {
 public:
  void run(uint32_t rounds) {
    fit().start();
    continue_for(rounds);
  }
  // The same from the weights and classes that the model and its tiles already have.
  void run_again(uint32_t rounds) {
    classes_ = model_.classes[channel_];
    fit().evaluate();
    continue_for(rounds);
  }

 protected:
  ClassFit(Model& model, uint32_t channel) : model_(model), channel_(channel) {}

  TapWeights* weights() { return model_.weights[channel_]; }
  uint32_t activity_terms() const { return 9 + cross_channels(channel_); }

  void set_simple_weights() {
    TapWeights simple{};
    simple.of[0] = 64;
    if (channel_ == 0) {
      simple.of[1] = 64;
      simple.of[2] = -64;
    } else {
      simple.of[16] = -64;
      simple.of[19] = 64;
    }
    std::fill_n(weights(), classes_, simple);
  }

  void set_simple_activity() {
    constexpr uint8_t kFirst[kActivityTerms] = {16, 16, 8, 8, 4, 4, 3, 3, 3, 6, 6};
    std::memcpy(model_.activity[channel_], kFirst, sizeof(kFirst));
  }

  // Sets the activity weights, in 64ths, so that the terms add up to the expected |error|, or to a part of it if the
  // weights would add up to too much. Returns false and changes nothing if there is no solution.
  bool solve_activity(Equations equations) {
    if (!equations.solve()) return false;
    uint32_t sum = 0;
    uint8_t rounded[kActivityTerms] = {};
    double scale = 1;
    do {
      sum = 0;
      for (uint32_t i = 0; i < activity_terms(); ++i) {
        const double exact = std::clamp(equations.right(i) * 64, 0.0, kMaxActivityWeight);
        rounded[i] = static_cast<uint8_t>(std::floor(exact * scale + 0.5));
        sum += rounded[i];
      }
      scale *= 0.95;
    } while (sum > Model::Form::kMaxActivity);
    if (sum > 0) std::copy_n(rounded, activity_terms(), model_.activity[channel_]);
    return sum > 0;
  }

  Model& model_;
  const uint32_t channel_;
  uint32_t classes_ = 1;
  double estimate_ = 0;  // bits per sample, without a constant that is the same for all predictors
  double share_ = 1;     // the fraction of the way from the old weights to the new solution

 private:
  static constexpr uint32_t kPatience = 6;  // rounds without a gain before the fit stops
  // Bits per sample: after a round that loses more than this, weights change more slowly.
  static constexpr double kWild = 0.02;
  static constexpr double kMaxActivityWeight = 90;

  struct Best {
    double estimate;
    TapWeights weights[kMaxClasses];
    std::vector<uint8_t> classes;
  };

  Fit& fit() { return static_cast<Fit&>(*this); }

  void continue_for(uint32_t rounds) {
    keep();
    uint32_t vain = 0, wild = 0;
    for (uint32_t round = 0; round < rounds && vain < kPatience; ++round) {
      fit().refit();
      if (classes_ > 1) fit().assign();
      fit().evaluate();
      if (estimate_ < best_.estimate) {
        keep();
        vain = wild = 0;
        share_ = 1;
        continue;
      }
      ++vain;
      if (estimate_ < best_.estimate + kWild) continue;
      // Errors depend on other errors, so weights may oscillate. Then move them half the way only, and sometimes go
      // back to the best ones.
      share_ = 0.5;
      if (++wild % 3 == 0) restore();
    }
    if (estimate_ > best_.estimate) restore();
    drop_unused();
    fit().fit_activity();
  }

  void keep() {
    best_.estimate = estimate_;
    std::copy_n(weights(), classes_, best_.weights);
    best_.classes.clear();
    fit().for_classes([&](const uint8_t* classes, size_t count) {
      best_.classes.insert(best_.classes.end(), classes, classes + count);
    });
  }

  void restore() {
    std::copy_n(best_.weights, classes_, weights());
    const uint8_t* from = best_.classes.data();
    fit().for_classes([&](uint8_t* classes, size_t count) {
      std::memcpy(classes, from, count);
      from += count;
    });
    fit().evaluate();
  }

  // Drops classes that no block uses, since they would take space in the model.
  void drop_unused() {
    bool is_used[kMaxClasses] = {};
    fit().for_classes([&](const uint8_t* classes, size_t count) {
      for (size_t i = 0; i < count; ++i) is_used[classes[i]] = true;
    });
    uint8_t renamed[kMaxClasses] = {};
    uint32_t kept = 0;
    for (uint32_t k = 0; k < classes_; ++k) {
      if (!is_used[k]) continue;
      renamed[k] = static_cast<uint8_t>(kept);
      weights()[kept++] = weights()[k];
    }
    classes_ = model_.classes[channel_] = kept;
    fit().for_classes([&](uint8_t* classes, size_t count) {
      for (size_t i = 0; i < count; ++i) classes[i] = renamed[classes[i]];
    });
  }

  Best best_;
};

}  // namespace l3
