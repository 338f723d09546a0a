#include "base/json_reader.h"

#include <array>

#include "base/utf8.h"

namespace base {
namespace {

constexpr size_t kDeepest = 64;

void append_utf8(std::string& to, uint32_t code) {
  const auto put = [&](uint32_t byte) { to += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

}  // namespace

bool JsonReader::fail(const char* reason) {
  if (reason_ == nullptr) reason_ = reason;
  return false;
}

void JsonReader::skip_space() {
  while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
}

bool JsonReader::take(char letter) {
  skip_space();
  if (failed() || at_ >= text_.size() || text_[at_] != letter) return false;
  ++at_;
  return true;
}

bool JsonReader::open(char bracket) {
  if (!take(bracket)) return fail(bracket == '{' ? "expected an object" : "expected an array");
  first_ = true;
  return true;
}

// Called after an opening bracket or after a value.
bool JsonReader::close_or_comma(char bracket, bool& closed) {
  closed = false;
  if (failed()) return false;
  const bool first = first_;
  first_ = false;
  if (take(bracket)) {
    closed = true;
    return true;
  }
  if (!first && !take(',')) return fail("expected a comma or a closing bracket");
  return true;
}

bool JsonReader::next_member(std::string& name) {
  bool closed = false;
  if (!close_or_comma('}', closed) || closed) return false;
  if (!text(name)) return false;
  return take(':') || fail("expected a colon");
}

bool JsonReader::next_element() {
  bool closed = false;
  return close_or_comma(']', closed) && !closed;
}

bool JsonReader::four_digits(uint32_t& value) {
  value = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    const char letter = at_ < text_.size() ? text_[at_] : ' ';
    const uint32_t digit = is_digit(letter)                 ? static_cast<uint32_t>(letter - '0')
                           : letter >= 'a' && letter <= 'f' ? static_cast<uint32_t>(letter - 'a' + 10)
                           : letter >= 'A' && letter <= 'F' ? static_cast<uint32_t>(letter - 'A' + 10)
                                                            : 16;
    if (digit == 16) return fail("expected four hexadecimal digits");
    value = value << 4 | digit;
  }
  return true;
}

bool JsonReader::escape(std::string& value) {
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  if (at_ >= text_.size()) return fail("a string does not end");
  const char letter = text_[at_++];
  if (const size_t found = kLetters.find(letter); found != kLetters.npos) {
    value += kMeanings[found];
    return true;
  }
  if (letter != 'u') return fail("unknown escape in a string");
  uint32_t code = 0;
  if (!four_digits(code)) return false;
  if (code >= 0xDC00 && code < 0xE000) return fail("half a surrogate pair");
  if (code >= 0xD800 && code < 0xDC00) {
    uint32_t low = 0;
    if (text_.substr(at_, 2) != "\\u") return fail("half a surrogate pair");
    at_ += 2;
    if (!four_digits(low)) return false;
    if (low < 0xDC00 || low >= 0xE000) return fail("half a surrogate pair");
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }
  append_utf8(value, code);
  return true;
}

bool JsonReader::text(std::string& value) {
  value.clear();
  if (!take('"')) return fail("expected a string");
  first_ = false;
  for (;;) {
    if (at_ >= text_.size()) return fail("a string does not end");
    const char letter = text_[at_];
    if (letter == '"') {
      ++at_;
      return true;
    }
    if (letter == '\\') {
      ++at_;
      if (!escape(value)) return false;
    } else if (static_cast<uint8_t>(letter) < 0x20) {
      return fail("a control character in a string");
    } else {
      const size_t size = utf8_size(text_.substr(at_));
      if (size == 0) return fail("not UTF-8");
      value.append(text_.substr(at_, size));
      at_ += size;
    }
  }
}

bool JsonReader::integer(uint64_t& value) {
  constexpr uint64_t kMax = uint64_t{1} << 53;
  skip_space();
  value = 0;
  const size_t begin = at_;
  while (!failed() && at_ < text_.size() && is_digit(text_[at_])) {
    value = value * 10 + static_cast<uint64_t>(text_[at_] - '0');
    ++at_;
    if (value > kMax) return fail("a number above 2^53");
  }
  if (at_ == begin) return fail("expected a whole number");
  if (at_ - begin > 1 && text_[begin] == '0') return fail("a number with a leading zero");
  if (at_ < text_.size() && (text_[at_] == '.' || text_[at_] == 'e' || text_[at_] == 'E')) {
    return fail("expected a whole number");
  }
  first_ = false;
  return true;
}

bool JsonReader::skip_number() {
  const auto digits = [&] {
    const size_t begin = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    return at_ > begin;
  };
  if (at_ < text_.size() && text_[at_] == '-') ++at_;
  const size_t begin = at_;
  if (!digits()) return fail("expected a value");
  if (at_ - begin > 1 && text_[begin] == '0') return fail("a number with a leading zero");
  if (at_ < text_.size() && text_[at_] == '.') {
    ++at_;
    if (!digits()) return fail("a number without digits");
  }
  if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
    ++at_;
    if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
    if (!digits()) return fail("a number without digits");
  }
  return true;
}

bool JsonReader::skip() {
  std::string open;  // the open brackets
  std::string unused;
  for (;;) {
    skip_space();
    if (failed()) return false;
    const char letter = at_ < text_.size() ? text_[at_] : '\0';
    if (letter == '{' || letter == '[') {
      if (open.size() == kDeepest) return fail("nested too deep");
      ++at_;
      first_ = true;
      open += letter;
    } else if (letter == '"') {
      if (!text(unused)) return false;
    } else if (constexpr std::array<std::string_view, 3> kNames = {"true", "false", "null"};
               letter == 't' || letter == 'f' || letter == 'n') {
      const std::string_view name = kNames[letter == 't' ? 0 : letter == 'f' ? 1 : 2];
      if (text_.substr(at_, name.size()) != name) return fail("expected a value");
      at_ += name.size();
      first_ = false;
    } else {
      if (!skip_number()) return false;
      first_ = false;
    }
    // Leaves everything that ends here, and moves to the next value to skip.
    for (;;) {
      if (open.empty()) return true;
      if (open.back() == '{' ? next_member(unused) : next_element()) break;
      if (failed()) return false;
      open.pop_back();
    }
  }
}

bool JsonReader::end() {
  skip_space();
  if (!failed() && at_ < text_.size()) return fail("unexpected text after the end");
  return !failed();
}

}  // namespace base
