#include "pacing.h"

#include <algorithm>

namespace loader::net {

void Window::succeed() { size_ = std::min(limit_, size_ + (grows_fast_ ? 1 : 1 / size_)); }

void Window::congest(Time sent, Time now) {
  grows_fast_ = false;
  if (sent <= halved_) return;
  halved_ = now;
  size_ = std::max(1.0, size_ / 2);
}

void AnswerTimes::add(Clock::duration time) { last_[count_++ % last_.size()] = time; }

std::optional<Clock::duration> AnswerTimes::patience() const {
  constexpr uint64_t kEnough = 8;
  if (count_ < kEnough) return std::nullopt;
  std::array<Clock::duration, 64> times = last_;
  const auto end = times.begin() + static_cast<ptrdiff_t>(std::min<uint64_t>(count_, times.size()));
  const auto middle = times.begin() + (end - times.begin()) / 2;
  std::nth_element(times.begin(), middle, end);
  return std::max<Clock::duration>(4 * *middle, std::chrono::milliseconds(20));
}

std::chrono::milliseconds Backoff::after(uint32_t failures) {
  const uint32_t limit = std::min(5000U, 100U << std::min(failures == 0 ? 0 : failures - 1, 6U));
  return std::chrono::milliseconds(std::uniform_int_distribution<uint32_t>(0, limit)(random_));
}

}  // namespace loader::net
