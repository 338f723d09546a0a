// Implements token_follow.h: goes through a tile in the order of a decoder.
#include "encode/token_follow.h"

#include <algorithm>
#include <vector>

#include "engine/follow.h"

namespace l3 {
namespace {

class Follower {
 public:
  explicit Follower(const TokenPlanes& planes)
      : planes_(planes),
        log_lanes_(log_follow_lanes(planes.width, planes.height)),
        period_(dense_period(planes.width, 1u << log_lanes_)),
        steps_{log_lanes_, period_},
        kept_(size_t{planes.width} * planes.height),
        table_(kFollowEntries) {}

  void run() {
    const uint32_t lanes = 1u << log_lanes_, count = dense_steps(planes_.width, planes_.height, lanes);
    for (uint32_t step = 0; step < count; ++step) {
      asked_ = 0;
      for (uint32_t lane = 0; lane < lanes && 2 * lane <= step; ++lane) {
        const uint32_t x = (step - 2 * lane) % period_, y = (step - 2 * lane) / period_ * lanes + lane;
        if (x < planes_.width && y < planes_.height) find(x, y, step);
      }
      for (uint32_t i = 0; i < asked_; ++i) {
        uint32_t& entry = table_[entries_[i]];
        entry = std::max(entry, places_[i]);
      }
    }
  }

 private:
  void find(uint32_t x, uint32_t y, uint32_t step) {
    const size_t at = y * planes_.pitch + x;
    if (planes_.symbols[at] == kNoSymbol) return;
    const ptrdiff_t up = -static_cast<ptrdiff_t>(planes_.pitch);
    uint32_t* const kept = &kept_[size_t{y} * planes_.width + x];
    const uint32_t of_w = x > 0 ? kept[-1] : 0, of_n = y > 0 ? kept[-static_cast<ptrdiff_t>(planes_.width)] : 0;
    // Neighbours as in section 13.3.
    const bool is_first = x == 0 && y == 0;
    const ptrdiff_t w = x > 0 ? -1 : is_first ? 0 : up, n = y > 0 ? up : w;
    const ptrdiff_t nw = y > 0 && x > 0 ? up - 1 : n, ne = y > 0 && x + 1 < planes_.width ? up + 1 : n;
    uint32_t place = 0, source = kFollowTable;
    if (of_n != 0) {
      place = of_n + kNextRow;
      source = of_w != 0 && of_w + kNextColumn == place ? kFollowBoth : kFollowN;
    } else if (of_w != 0) {
      place = of_w + kNextColumn;
      source = kFollowW;
    } else {
      uint32_t hash = 0;
      for (uint32_t c = 0; c < planes_.channels && !is_first; ++c) {
        const int32_t* const here = planes_.values[c] + at;
        const uint16_t* const of = kFollowFactors[c];
        hash += static_cast<uint32_t>(here[w]) * of[0] + static_cast<uint32_t>(here[n]) * of[1] +
                static_cast<uint32_t>(here[nw]) * of[2] + static_cast<uint32_t>(here[ne]) * of[3];
      }
      const uint32_t entry = (hash & 0xFFFF) >> (16 - kFollowBits);
      entries_[asked_] = entry;
      places_[asked_++] = follow_place(x, y);
      place = table_[entry];
    }
    planes_.follows[at] = 0;
    if (place == 0 || (place & 0xFFFF) > planes_.width || place >> 16 >= planes_.height || steps_(place) >= step)
      return;
    const ptrdiff_t from =
        static_cast<ptrdiff_t>(size_t{place >> 16} * planes_.pitch + (place & 0xFFFF) - 1) - static_cast<ptrdiff_t>(at);
    const auto equals = [&](ptrdiff_t a, ptrdiff_t b) {
      for (uint32_t c = 0; c < planes_.channels; ++c) {
        if (planes_.values[c][static_cast<ptrdiff_t>(at) + a] != planes_.values[c][static_cast<ptrdiff_t>(at) + b])
          return false;
      }
      return true;
    };
    const uint32_t relation = equals(from, w) ? 0 : equals(from, n) ? 1 : equals(from, ne) || equals(from, nw) ? 2 : 3;
    planes_.follows[at] = static_cast<uint8_t>(1 + 4 * relation + source);
    if (!equals(from, 0)) return;
    *kept = place;
    if (planes_.symbols[at] == kMatchNone) planes_.symbols[at] = kMatchFollow;
  }

  const TokenPlanes& planes_;
  const uint32_t log_lanes_, period_;
  const FollowSteps steps_;
  std::vector<uint32_t> kept_;   // of each pixel, the place that it followed and equals, or 0
  std::vector<uint32_t> table_;  // places
  uint32_t asked_ = 0, entries_[1 << kMaxLogLanes], places_[1 << kMaxLogLanes];
};

}  // namespace

uint32_t log_follow_lanes(uint32_t width, uint32_t height) {
  const uint32_t pixels = width * height;
  return pixels >= 1u << 14 ? 5 : pixels >= 1u << 12 ? 4 : 3;
}

void find_follows(const TokenPlanes& planes) { Follower(planes).run(); }

}  // namespace l3
