// Failures as values, and the one way in which they are worded.
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
  std::optional<uint64_t> offset;  // of the byte of the file where it went wrong, where that means something
  std::string reason;              // one line
  bool silent = false;             // nobody is left to read it: the reader of our output has gone
};

// What a path is called in messages: "-" is what the caller says it is, "stdin" or "stdout".
std::string display_name(const std::string& path, const char* when_dash);

// `text` with control characters spelled out, so that a message stays one line.
std::string one_line(std::string_view text);

// "l3: FILE: offset N: reason", without the end of line.
std::string message(const Failure& failure);

inline Failure failure_in(std::string file, const formats::Error& error) {
  return Failure{std::move(file), error.offset, error.reason};
}

// What the exception that is being handled becomes: a failure of the file that was worked on. To be called in a
// handler.
Failure caught(std::string file);

// Whether a failure says nothing of the file: with more memory the same file is read, so that it must not count as one
// that is no good.
bool is_out_of_memory(const Failure& failure);

// A T or the Failure that took its place. `value` and the operators need a T to be there, `failure` a Failure.
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
