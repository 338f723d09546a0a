#include "buckets.h"

#include <algorithm>

namespace loader {

uint64_t Buckets::unit_at(const EpochOrder& order, uint64_t place) {
  const uint64_t size = std::min(step_, units_) * kSteps;
  const uint64_t window = place / size, begin = window * size;
  if (window == window_) return of_window_[place - begin];
  window_ = UINT64_MAX;
  const uint64_t count = std::min(size, units_ - begin);
  struct Entry {
    uint64_t shape, number, unit;  // equal shapes keep their random order
  };
  std::vector<Entry> entries(count);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t unit = order.unit_at(begin + i);
    entries[i] = {shape_of_(unit), i, unit};
  }
  // What does not fill a step at the end of the epoch stays there, and is chosen before sorting.
  const uint64_t steps = count / step_;
  std::sort(
      entries.begin(), entries.begin() + static_cast<ptrdiff_t>(steps * step_),
      [](const Entry& a, const Entry& b) { return a.shape != b.shape ? a.shape < b.shape : a.number < b.number; });
  of_window_.resize(count);
  const Permutation shuffled(std::max<uint64_t>(steps, 1), hash_of(key_, window));
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t step = i / step_;
    const uint64_t from = step < steps ? shuffled(step) * step_ + i % step_ : i;
    of_window_[i] = entries[from].unit;
  }
  window_ = window;
  return of_window_[place - begin];
}

}  // namespace loader
