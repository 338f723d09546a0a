// Base-2 logarithms that are the same on every processor: a table lookup and linear interpolation.
#pragma once

#include <bit>
#include <cstdint>

namespace l3 {

struct LogarithmTable {
  static constexpr int kBits = 10;
  double of[(1 << kBits) + 1];  // log2(1 + i / 2^kBits)

  constexpr LogarithmTable() : of() {
    constexpr double kLn2 = 0.69314718055994530942;
    for (int i = 0; i <= 1 << kBits; ++i) {
      // ln m = 2 artanh((m - 1) / (m + 1)); the series converges quickly, since m is at most 2.
      const double m = 1.0 + static_cast<double>(i) / (1 << kBits);
      const double y = (m - 1) / (m + 1);
      double power = y, sum = 0;
      for (int k = 1; k < 40; k += 2) {
        sum += power / k;
        power *= y * y;
      }
      of[i] = 2 * sum / kLn2;
    }
  }
};
inline constexpr LogarithmTable kLogarithms;

// `v` must be positive and normal.
constexpr double logarithm(double v) {
  const uint64_t bits = std::bit_cast<uint64_t>(v);
  const int exponent = static_cast<int>(bits >> 52) - 1023;
  const uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
  constexpr int kShift = 52 - LogarithmTable::kBits;
  const uint64_t i = fraction >> kShift;
  const double rest =
      static_cast<double>(fraction & ((uint64_t{1} << kShift) - 1)) / static_cast<double>(uint64_t{1} << kShift);
  return exponent + kLogarithms.of[i] + rest * (kLogarithms.of[i + 1] - kLogarithms.of[i]);
}

}  // namespace l3
