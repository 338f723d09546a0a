// Text for pages and plots.
#pragma once

#include <string>
#include <string_view>

#include "base/escape.h"

namespace bench {

using base::escaped;

std::string fixed(double value, int digits);

// Formats a number with about three digits: 0.123, 1.23, 12.3, 123, 1234.
std::string three_digits(double value);

// "1,234,567".
std::string grouped(uint64_t value);

// "12.3 MB".
std::string format_size(uint64_t bytes);

}  // namespace bench
