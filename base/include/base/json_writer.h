// Writes JSON.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace base {

// Appends `text` as a JSON string with quotes. It should be UTF-8. Each byte that is not becomes U+FFFD.
void append_json_text(std::string& json, std::string_view text);

// Builds one line of JSON from left to right. The caller must make the calls in an order that is valid JSON.
class Json {
 public:
  Json& open_object() { return open('{'); }
  Json& close_object() { return close('}'); }
  Json& open_array() { return open('['); }
  Json& close_array() { return close(']'); }
  Json& key(std::string_view name);

  // As append_json_text.
  Json& text(std::string_view value);
  Json& number(double value, int digits);
  template <std::unsigned_integral T>
  Json& number(T value) {
    return raw(std::to_string(value));
  }
  Json& boolean(bool value) { return raw(value ? "true" : "false"); }

  template <typename T>
  Json& member(std::string_view name, T value) {
    key(name);
    if constexpr (std::same_as<T, bool>) {
      return boolean(value);
    } else if constexpr (std::unsigned_integral<T>) {
      return number(value);
    } else {
      return text(value);
    }
  }

  const std::string& line() const { return line_; }

 private:
  Json& open(char bracket);
  Json& close(char bracket);
  Json& raw(std::string_view value);
  void separate();

  std::string line_;
  bool first_ = true;  // the next value is the first one at its level
};

}  // namespace base
