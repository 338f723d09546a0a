#include "base/escape.h"

#include <cstddef>

#include "base/utf8.h"

namespace base {

std::string escaped(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t size = utf8_size(text);
    const char c = text[0];
    if (size == 0 || (size == 1 && static_cast<unsigned char>(c) < 0x20) || c == 0x7F) {
      result += '?';
    } else if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '"') {
      result += "&quot;";
    } else if (c == '\'') {
      result += "&#39;";
    } else {
      result += text.substr(0, size);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return result;
}

}  // namespace base
