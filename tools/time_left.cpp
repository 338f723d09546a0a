#include "time_left.h"

#include <algorithm>

namespace tools {

void TimeLeft::begin(double bytes) {
  ++begun_.count;
  begun_.bytes += bytes;
}

void TimeLeft::end(double bytes, double pixels) {
  ++done_.count;
  done_.bytes += bytes;
  pixels_ += pixels;
  largest_ = std::max(largest_, bytes);
  bytes_by_bytes_ += bytes * bytes;
  bytes_by_pixels_ += bytes * pixels;
}

// Uses the line of least squares if it rises and begins above zero. If all pieces have the same size, pixels are
// proportional to bytes.
double TimeLeft::pixels_of(Pieces pieces) const {
  if (done_.bytes <= 0) return pixels_ / done_.count * pieces.count;
  const double in_proportion = pixels_ / done_.bytes;
  const double spread = bytes_by_bytes_ * done_.count - done_.bytes * done_.bytes;
  const double together = bytes_by_pixels_ * done_.count - done_.bytes * pixels_;
  const bool alike = spread <= 1e-6 * bytes_by_bytes_ * done_.count;
  const double slope = alike ? in_proportion : std::clamp(together / spread, 0.0, in_proportion);
  const double of_each = (pixels_ - slope * done_.bytes) / done_.count;
  const double estimate = of_each * pieces.count + slope * pieces.bytes;
  if (pieces.bytes <= largest_ * pieces.count) return estimate;
  constexpr double kReach = 8;
  return std::min(estimate, kReach * pixels_ / done_.count * pieces.count);
}

std::optional<double> TimeLeft::seconds(double elapsed) const {
  constexpr double kSoonest = 1, kSoonestOfFew = 10, kFew = 3;
  if (elapsed < kSoonest || pixels_ <= 0 || done_.count > all_.count) return std::nullopt;
  if (done_.count < kFew && elapsed < kSoonestOfFew) return std::nullopt;
  const Pieces in_work = {std::max(0.0, begun_.count - done_.count), std::max(0.0, begun_.bytes - done_.bytes)};
  const double half = pixels_of(in_work) / 2;
  // Of pieces that begin together, the smallest end first. So there is no estimate until enough is done.
  if (2 * half > pixels_) return std::nullopt;
  const double left = pixels_of({all_.count - done_.count, std::max(0.0, all_.bytes - done_.bytes)}) - half;
  return elapsed * std::max(0.0, left) / (pixels_ + half);
}

}  // namespace tools
