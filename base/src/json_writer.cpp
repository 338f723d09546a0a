#include "base/json_writer.h"

#include <cmath>
#include <cstdio>

#include "base/utf8.h"

namespace base {

void append_json_text(std::string& json, std::string_view text) {
  json += '"';
  while (!text.empty()) {
    const size_t size = utf8_size(text);
    const auto byte = static_cast<unsigned char>(text[0]);
    if (size == 0) {
      json += "\\ufffd";
    } else if (byte == '"' || byte == '\\') {
      json += '\\';
      json += text[0];
    } else if (byte < 0x20 || byte == 0x7F) {
      char spelled[8];
      std::snprintf(spelled, sizeof spelled, "\\u%04x", byte);
      json += spelled;
    } else {
      json += text.substr(0, size);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  json += '"';
}

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
  append_json_text(line_, value);
  return *this;
}

void Json::separate() {
  if (!first_) line_ += ',';
  first_ = false;
}

}  // namespace base
