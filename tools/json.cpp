#include "json.h"

#include <cmath>
#include <cstdio>

#include "loader/json_reader.h"

namespace tools {

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
    const size_t length = loader::utf8_size(value);
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
