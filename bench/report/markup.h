// Text for pages and plots.
#pragma once

#include <string>
#include <string_view>

namespace bench {

// With the characters spelled out that mean something in HTML and XML, in text and in attributes. What is no UTF-8
// becomes a question mark, and so do control characters.
std::string escaped(std::string_view text);

std::string fixed(double value, int digits);

// With about three digits: 0.123, 1.23, 12.3, 123, 1234.
std::string three_digits(double value);

// "1,234,567".
std::string grouped(uint64_t value);

// "12.3 MB".
std::string format_size(uint64_t bytes);

}  // namespace bench
