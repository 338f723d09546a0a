// Text for pages and plots.
#pragma once

#include <string>
#include <string_view>

namespace bench {

// Escapes text for HTML and XML, both for content and for attributes. Control characters and bytes that are not valid
// UTF-8 become question marks.
std::string escaped(std::string_view text);

std::string fixed(double value, int digits);

// Formats a number with about three digits: 0.123, 1.23, 12.3, 123, 1234.
std::string three_digits(double value);

// "1,234,567".
std::string grouped(uint64_t value);

// "12.3 MB".
std::string format_size(uint64_t bytes);

}  // namespace bench
