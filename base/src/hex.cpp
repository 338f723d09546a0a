#include "base/hex.h"

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

}  // namespace base
