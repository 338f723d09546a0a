// A streaming JSON reader (RFC 8259). It builds no tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace base {

// After the first fault every function returns false. Check failed() at the end.
class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}

  bool open_object() { return open('{'); }
  bool open_array() { return open('['); }
  // Reads the name of the next member, whose value must be read or skipped next. Returns false at the end of the
  // object.
  bool next_member(std::string& name);
  // Returns whether there is another element, which must be read or skipped next. Returns false at the end of the
  // array.
  bool next_element();

  bool text(std::string& value);
  // A whole number of at most 2^53, without fraction and exponent.
  bool integer(uint64_t& value);
  // Skips any value.
  bool skip();
  // Checks that only white space follows.
  bool end();

  bool failed() const { return reason_ != nullptr; }
  const char* reason() const { return reason_; }
  // The byte at which the fault was found.
  size_t place() const { return at_; }
  // Reports a fault that the user of the reader found in a value.
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
  bool first_ = false;  // a bracket was just opened
};

}  // namespace base
