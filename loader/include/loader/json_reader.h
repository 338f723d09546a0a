// JSON, read from front to back, without building anything (RFC 8259).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace loader {

// Every function gives false once something was not as asked for, and from then on: look at `failed` at the end.
class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}

  bool open_object() { return open('{'); }
  bool open_array() { return open('['); }
  // The name of the next member, whose value must then be read or skipped; false at the end of the object.
  bool next_member(std::string& name);
  // Whether there is a next element, which must then be read or skipped; false at the end of the array.
  bool next_element();

  bool text(std::string& value);
  // A whole number up to 2^53, written without a fraction and an exponent.
  bool integer(uint64_t& value);
  // Any value.
  bool skip();
  // Nothing but white space follows.
  bool end();

  bool failed() const { return reason_ != nullptr; }
  const char* reason() const { return reason_; }
  // The byte where it went wrong.
  size_t place() const { return at_; }
  // To be called by the reader's user, for what is wrong with a value.
  bool fail(const char* reason);

 private:
  bool open(char bracket);
  bool close_or_comma(char bracket, bool& closed);
  void skip_space();
  bool take(char letter);
  bool skip_number();
  bool escape(std::string& value);
  bool four_digits(uint32_t& value);
  bool utf8_character(std::string& value);

  std::string_view text_;
  size_t at_ = 0;
  const char* reason_ = nullptr;
  bool first_ = false;  // a bracket was opened, and nothing came behind it yet
};

// The bytes of the UTF-8 character that `text`, which is not empty, begins with; 0 where it begins with none (RFC
// 3629).
size_t utf8_size(std::string_view text);

// `text` as JSON's, with quotes; false where it is not UTF-8.
bool append_json_text(std::string& json, std::string_view text);

}  // namespace loader
