// The progress of work on many files.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

#include "console.h"
#include "time_left.h"

namespace tools {

// "1.23 GB", in powers of 1000.
std::string format_bytes(uint64_t bytes);
// A number with `digits` digits after the point.
std::string format_number(double value, int digits);
// "1:02:03", or "2:03" below an hour.
std::string format_time(double seconds);

struct Totals {
  uint64_t files = 0;
  uint64_t failed = 0;
  uint64_t pixels = 0;
  uint64_t bytes_in = 0;
  uint64_t bytes_out = 0;
};

// Threads may use it at the same time.
class Progress {
 public:
  // `person` shows a status line on stderr. `json` prints events as lines of JSON on stdout.
  enum class Style : uint8_t { person, json };

  // `bytes` is the size of all `files`. `pieces` is the number of groups of files that are done together; 0 means that
  // each file is a piece.
  Progress(Console& console, uint64_t files, uint64_t bytes, Style style = Style::person, uint64_t pieces = 0);

  // The work on a piece of this listed size begins, and ends (see TimeLeft).
  void begin(uint64_t listed_bytes);
  void end(uint64_t listed_bytes, uint64_t pixels);

  // Adds to the totals. Shows them several times a second on a terminal, else every ten seconds.
  void count(const Totals& done);
  // The same for a failure, which is printed.
  void count(const Failure& failure);

  // Calls end() and count() for a piece that is one file.
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
