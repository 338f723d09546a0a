#include "markup.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>

namespace bench {

std::string fixed(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

std::string three_digits(double value) {
  const double size = std::abs(value);
  return fixed(value, size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3);
}

std::string grouped(uint64_t value) {
  const std::string digits = std::to_string(value);
  std::string result;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) result += ',';
    result += digits[i];
  }
  return result;
}

std::string format_size(uint64_t bytes) {
  const double size = static_cast<double>(bytes);
  if (size < 1e3) return std::to_string(bytes) + " bytes";
  if (size < 1e6) return three_digits(size / 1e3) + " kB";
  if (size < 1e9) return three_digits(size / 1e6) + " MB";
  return three_digits(size / 1e9) + " GB";
}

}  // namespace bench
