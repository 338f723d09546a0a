// Batches of images of similar shape: changes the order of an epoch within windows of some steps.
#pragma once

#include <functional>
#include <vector>

#include "sampler.h"

namespace loader {

class Buckets {
 public:
  // `step` units make a batch on all ranks. `shape_of` is the shape of a unit as a number.
  Buckets(uint64_t units, uint64_t step, uint64_t key, std::function<uint64_t(uint64_t unit)> shape_of)
      : units_(units), step_(step), key_(key), shape_of_(std::move(shape_of)) {}

  // The unit at a place of the epoch with this order. Each place of a window belongs to a unit of the same window. One
  // thread at a time may call this.
  uint64_t unit_at(const EpochOrder& order, uint64_t place);

 private:
  // Windows of so many steps: enough for similar shapes to meet, few enough to keep the order random.
  static constexpr uint64_t kSteps = 32;

  uint64_t units_, step_, key_;
  std::function<uint64_t(uint64_t)> shape_of_;
  uint64_t window_ = UINT64_MAX;
  std::vector<uint64_t> of_window_;
};

}  // namespace loader
