// How far a work over many files has come.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

#include "console.h"
#include "time_left.h"

namespace tools {

// "1.234 GB", in powers of 1000.
std::string format_bytes(uint64_t bytes);
// A number with so many digits after the point.
std::string format_number(double value, int digits);

struct Totals {
  uint64_t files = 0;
  uint64_t failed = 0;
  uint64_t pixels = 0;
  uint64_t bytes_in = 0;
  uint64_t bytes_out = 0;
};

// Safe to use from many threads at once.
class Progress {
 public:
  // For a person, or events for a program: a line of JSON each on stdout.
  enum class Style : uint8_t { person, json };

  // `files` to come, of `bytes` in all, in so many pieces that are done as a whole (0: each file is one).
  Progress(Console& console, uint64_t files, uint64_t bytes, Style style = Style::person, uint64_t pieces = 0);

  // A piece of so many listed bytes begins, and ends (TimeLeft).
  void begin(uint64_t listed_bytes);
  void end(uint64_t listed_bytes, uint64_t pixels);

  // Adds to the totals, and now and then shows them: on a terminal some times a second, else every ten seconds.
  void count(const Totals& done);
  // The same for what failed, which is said.
  void count(const Failure& failure);

  // A piece of one file is done: end and count.
  void add(const Totals& done, uint64_t listed_bytes);
  void fail(const Failure& failure, uint64_t listed_bytes);

  Totals totals() const;
  double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;
  std::string line() const;
  std::string event() const;
  void show();

  Console& console_;
  const Style style_;
  const uint64_t files_;
  const Clock::time_point start_ = Clock::now();
  mutable std::mutex mutex_;
  Clock::time_point shown_ = start_;
  TimeLeft time_left_;
  bool begun_ = false;
  Totals totals_;
};

}  // namespace tools
