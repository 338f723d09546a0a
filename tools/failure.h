// Failures as values, and how they are printed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "formats/formats.h"

namespace tools {

struct Failure {
  std::string file;                // as the user named it
  std::optional<uint64_t> offset;  // of the byte where it failed, if that is known
  std::string reason;              // one line
  bool silent = false;             // not printed: the reader of our output is gone
};

// The name of a path in messages. For "-" it is `when_dash`, which is "stdin" or "stdout".
std::string display_name(const std::string& path, const char* when_dash);

// Spells out control characters, so that a message stays one line.
std::string one_line(std::string_view text);

// Returns "l3: FILE: offset N: reason" without a newline.
std::string message(const Failure& failure);

inline Failure failure_in(std::string file, const formats::Error& error) {
  return Failure{std::move(file), error.offset, error.reason};
}

// Turns the exception that is being handled into a failure of `file`. Must be called in a handler.
Failure caught(std::string file);

// Whether memory ran out. Such a failure does not mean that the file is bad: with more memory it could be read.
bool is_out_of_memory(const Failure& failure);

// Either a T or a Failure. The operators * and -> need a T, failure() needs a Failure.
template <typename T>
class [[nodiscard]] Outcome {
 public:
  Outcome(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Outcome(Failure failure) : state_(std::in_place_index<1>, std::move(failure)) {}

  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() { return *std::get_if<0>(&state_); }
  const T& operator*() const { return *std::get_if<0>(&state_); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }
  const Failure& failure() const { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, Failure> state_;
};

}  // namespace tools
