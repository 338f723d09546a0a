// The median of measurements.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace base {

// For an even number of values, returns the mean of the two in the middle. Without values, returns 0.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace base
