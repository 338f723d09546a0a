#include "progress.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/json_writer.h"

namespace tools {

using namespace std::chrono_literals;

std::string format_time(double seconds) {
  const auto whole = static_cast<unsigned long long>(std::llround(seconds));
  char text[48];
  if (whole < 3600) {
    std::snprintf(text, sizeof text, "%llu:%02llu", whole / 60, whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%llu:%02llu:%02llu", whole / 3600, whole / 60 % 60, whole % 60);
  }
  return text;
}

std::string format_number(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string format_bytes(uint64_t bytes) {
  constexpr std::array kUnits = {"kB", "MB", "GB", "TB", "PB", "EB"};
  if (bytes < 1000) return std::to_string(bytes) + " bytes";
  double value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return format_number(value, 2) + " " + kUnits[unit];
}

Progress::Progress(Console& console, uint64_t files, uint64_t bytes, Style style, uint64_t pieces)
    : console_(console),
      style_(style),
      files_(files),
      time_left_({static_cast<double>(pieces != 0 ? pieces : files), static_cast<double>(bytes)}) {}

void Progress::begin(uint64_t listed_bytes) {
  const std::lock_guard lock(mutex_);
  time_left_.begin(static_cast<double>(listed_bytes));
  if (std::exchange(begun_, true) || style_ == Style::json || !console_.stderr_is_terminal()) return;
  console_.status(line());
}

void Progress::end(uint64_t listed_bytes, uint64_t pixels) {
  const std::lock_guard lock(mutex_);
  time_left_.end(static_cast<double>(listed_bytes), static_cast<double>(pixels));
}

void Progress::count(const Totals& done) {
  const std::lock_guard lock(mutex_);
  totals_.files += done.files;
  totals_.failed += done.failed;
  totals_.pixels += done.pixels;
  totals_.bytes_in += done.bytes_in;
  totals_.bytes_out += done.bytes_out;
  show();
}

void Progress::count(const Failure& failure) {
  console_.fail(failure);
  if (style_ == Style::json) {
    base::Json json;
    json.open_object().member("event", "failure").member("file", failure.file);
    if (failure.offset) json.member("offset", *failure.offset);
    console_.print(json.member("reason", failure.reason).close_object().line());
  }
  Totals failed;
  failed.failed = 1;
  count(failed);
}

void Progress::add(const Totals& done, uint64_t listed_bytes) {
  end(listed_bytes, done.pixels);
  count(done);
}

void Progress::fail(const Failure& failure, uint64_t listed_bytes) {
  end(listed_bytes, 0);
  count(failure);
}

void Progress::show() {
  const Clock::time_point now = Clock::now();
  if (style_ == Style::json) {
    if (now - shown_ < 1s) return;
    shown_ = now;
    console_.print(event());
    return;
  }
  if (now - shown_ < (console_.stderr_is_terminal() ? Clock::duration(100ms) : Clock::duration(10s))) return;
  shown_ = now;
  console_.status(line());
}

Totals Progress::totals() const {
  const std::lock_guard lock(mutex_);
  return totals_;
}

double Progress::seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

std::string Progress::line() const {
  const double elapsed = seconds();
  std::string text = std::to_string(totals_.files + totals_.failed) + "/" + std::to_string(files_) + " files";
  if (totals_.pixels > 0) {
    text += ", " + format_number(static_cast<double>(totals_.pixels) / 1e6 / elapsed, 1) + " MP/s";
  }
  if (totals_.bytes_in > 0 && totals_.bytes_out > 0) {
    text +=
        ", ratio " + format_number(static_cast<double>(totals_.bytes_out) / static_cast<double>(totals_.bytes_in), 3);
  }
  if (totals_.failed > 0) text += ", " + std::to_string(totals_.failed) + " failed";
  if (const auto left = time_left_.seconds(seconds())) text += ", ETA " + format_time(*left);
  return text;
}

std::string Progress::event() const {
  base::Json json;
  json.open_object().member("event", "progress").member("files", totals_.files).member("of", files_);
  json.member("failed", totals_.failed).member("pixels", totals_.pixels).member("bytes_in", totals_.bytes_in);
  json.member("bytes_out", totals_.bytes_out).key("seconds").number(seconds(), 3);
  if (const auto left = time_left_.seconds(seconds())) json.key("seconds_left").number(*left, 0);
  return json.close_object().line();
}

}  // namespace tools
