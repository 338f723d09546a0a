// Bytes as hexadecimal digits, and as base64.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace base {

// In lower case.
std::string hexadecimal(std::span<const uint8_t> bytes);

// Reads digits in lower or upper case. Returns false unless they are exactly as many as `bytes` takes.
bool from_hexadecimal(std::string_view text, std::span<uint8_t> bytes);

// With padding, without line breaks.
std::string base64(std::span<const uint8_t> bytes);

}  // namespace base
