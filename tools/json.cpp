#include "json.h"

#include <cmath>
#include <cstdio>

namespace tools {
namespace {

// Bytes of the UTF-8 sequence that `text` begins with; 0 if it begins with none.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto follows = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first < 0xF0) {
    const bool overlong = first == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = first == 0xED && byte(1) >= 0xA0;
    return follows(1) && follows(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xF0 && first < 0xF5) {
    const bool overlong = first == 0xF0 && byte(1) < 0x90;
    const bool too_large = first == 0xF4 && byte(1) >= 0x90;
    return follows(1) && follows(2) && follows(3) && !overlong && !too_large ? 4 : 0;
  }
  return 0;
}

}  // namespace

Json& Json::open(char bracket) {
  separate();
  line_ += bracket;
  first_ = true;
  return *this;
}

Json& Json::close(char bracket) {
  line_ += bracket;
  first_ = false;
  return *this;
}

Json& Json::key(std::string_view name) {
  text(name);
  line_ += ':';
  first_ = true;
  return *this;
}

Json& Json::raw(std::string_view value) {
  separate();
  line_ += value;
  return *this;
}

Json& Json::number(double value, int digits) {
  if (!std::isfinite(value)) return raw("null");
  char digits_text[64];
  std::snprintf(digits_text, sizeof digits_text, "%.*f", digits, value);
  return raw(digits_text);
}

Json& Json::text(std::string_view value) {
  separate();
  line_ += '"';
  while (!value.empty()) {
    const size_t length = utf8_length(value);
    const auto byte = static_cast<unsigned char>(value[0]);
    if (length == 0) {
      line_ += "\\ufffd";
    } else if (byte == '"' || byte == '\\') {
      line_ += '\\';
      line_ += value[0];
    } else if (byte < 0x20) {
      char spelled[8];
      std::snprintf(spelled, sizeof spelled, "\\u%04x", byte);
      line_ += spelled;
    } else {
      line_ += value.substr(0, length);
    }
    value.remove_prefix(length == 0 ? 1 : length);
  }
  line_ += '"';
  return *this;
}

void Json::separate() {
  if (!first_) line_ += ',';
  first_ = false;
}

}  // namespace tools
