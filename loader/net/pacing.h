// How many requests are sent at once, and how long to wait before a request is repeated.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <random>

#include "http_job.h"

namespace loader::net {

// Requests in progress at once, as TCP's congestion window: each success adds one, so that it doubles per round trip.
// The first sign of congestion ends that and halves it; from then on it grows by about one per round trip.
class Window {
 public:
  explicit Window(uint32_t limit) : limit_(limit), size_(limit < kFirst ? limit : kFirst) {}

  uint32_t size() const { return static_cast<uint32_t>(size_); }
  void succeed();
  // `sent` is when the request was sent. All requests that were in progress when the window was halved tell the same.
  void congest(Time sent, Time now);

 private:
  static constexpr double kFirst = 64;
  double limit_, size_;
  bool grows_fast_ = true;
  Time halved_{};
};

// How long answers took, to tell which requests are slow.
class AnswerTimes {
 public:
  void add(Clock::duration time);
  // After how long a second request is worth sending; nothing until enough answers came.
  std::optional<Clock::duration> patience() const;

 private:
  std::array<Clock::duration, 64> last_{};
  uint64_t count_ = 0;
};

class Backoff {
 public:
  explicit Backoff(uint32_t seed) : random_(seed) {}
  // Between 0 and 100 ms after the first failure; the limit doubles with each, up to 5 s.
  std::chrono::milliseconds after(uint32_t failures);

 private:
  std::minstd_rand random_;
};

}  // namespace loader::net
