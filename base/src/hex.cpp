#include "base/hex.h"

#include <algorithm>
#include <cstddef>

namespace base {

std::string hexadecimal(std::span<const uint8_t> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

bool from_hexadecimal(std::string_view text, std::span<uint8_t> bytes) {
  if (text.size() != 2 * bytes.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    const int value = letter >= '0' && letter <= '9'   ? letter - '0'
                      : letter >= 'a' && letter <= 'f' ? letter - 'a' + 10
                      : letter >= 'A' && letter <= 'F' ? letter - 'A' + 10
                                                       : -1;
    if (value < 0) return false;
    bytes[i / 2] = static_cast<uint8_t>(i % 2 == 0 ? value << 4 : bytes[i / 2] | value);
  }
  return true;
}

std::string base64(std::span<const uint8_t> bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(bytes.size() - i, 3);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) group = group << 8 | (k < count ? bytes[i + k] : 0u);
    for (size_t k = 0; k < 4; ++k) text += k <= count ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

}  // namespace base
