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
        keys_(kept_.size()),
        near_(kNearEntries),
        wide_(kWideEntries) {}

  void run() {
    find_keys();
    const uint32_t lanes = 1u << log_lanes_, count = dense_steps(planes_.width, planes_.height, lanes);
    for (uint32_t step = 0; step < count; ++step) {
      offered_ = 0;
      for (uint32_t lane = 0; lane < lanes && 2 * lane <= step; ++lane) {
        const uint32_t x = (step - 2 * lane) % period_, y = (step - 2 * lane) / period_ * lanes + lane;
        if (x < planes_.width && y < planes_.height) find(x, y, step);
      }
      for (uint32_t i = 0; i < offered_; ++i) *offers_[i].entry = std::max(*offers_[i].entry, offers_[i].word);
    }
  }

 private:
  struct Offer {
    uint32_t *entry, word;
  };

  // Finds the keys of all pixels, row by row. A row's scenes take the place of those of the row above.
  void find_keys() {
    const uint32_t width = planes_.width;
    std::vector<uint32_t> scenes(width + 1);
    for (uint32_t y = 0; y < planes_.height; ++y) {
      uint32_t trail = 0;
      for (uint32_t x = 0; x < width; ++x) {
        keys_[size_t{y} * width + x] = wide_key(trail, scenes[x + 1]);
        uint32_t values = 0;
        for (uint32_t c = 0; c < planes_.channels; ++c) {
          values += static_cast<uint32_t>(planes_.values[c][y * planes_.pitch + x]) * kValueFactors[c];
        }
        trail = trail_of(values, trail);
        scenes[x] = scene_of(trail, scenes[x + 1]);
      }
    }
  }

  void offer(uint32_t& entry, uint32_t word) { offers_[offered_++] = {&entry, word}; }

  void find(uint32_t x, uint32_t y, uint32_t step) {
    const size_t at = y * planes_.pitch + x;
    if (planes_.symbols[at] == kNoSymbol) return;
    const ptrdiff_t up = -static_cast<ptrdiff_t>(planes_.pitch);
    const size_t pixel = size_t{y} * planes_.width + x;
    // Neighbours as in section 13.3. Those of the first pixel, which are all 0, count as the pixel itself.
    const bool is_first = x == 0 && y == 0;
    const ptrdiff_t w = x > 0 ? -1 : is_first ? 0 : up, n = y > 0 ? up : w;
    const ptrdiff_t nw = y > 0 && x > 0 ? up - 1 : n, ne = y > 0 && x + 1 < planes_.width ? up + 1 : n;
    const auto equals = [&](ptrdiff_t a, ptrdiff_t b) {
      for (uint32_t c = 0; c < planes_.channels; ++c) {
        if (planes_.values[c][static_cast<ptrdiff_t>(at) + a] != planes_.values[c][static_cast<ptrdiff_t>(at) + b])
          return false;
      }
      return true;
    };
    FollowKept found = FollowKept::of(y > 0 ? kept_[pixel - planes_.width] : 0, x > 0 ? kept_[pixel - 1] : 0);
    if (!(equals(n, w) && equals(n, nw) && equals(n, ne))) {
      const uint32_t key = keys_[pixel];
      uint32_t& entry = wide_[wide_entry(key)];
      offer(entry, wide_word(x, y, key));
      found = found.or_wide(wide_place(entry, key));
    }
    if (found.place == 0) {
      uint32_t sum = 0;
      for (uint32_t c = 0; c < planes_.channels && !is_first; ++c) {
        const int32_t* const here = planes_.values[c] + at;
        const uint16_t* const of = kNearFactors[c];
        sum += static_cast<uint32_t>(here[w]) * of[0] + static_cast<uint32_t>(here[n]) * of[1] +
               static_cast<uint32_t>(here[nw]) * of[2] + static_cast<uint32_t>(here[ne]) * of[3];
      }
      uint32_t& entry = near_[near_entry(sum)];
      offer(entry, follow_place(x, y));
      found = {entry, kFollowNear};
    }
    const uint32_t place = found.place;
    planes_.follows[at] = 0;
    if (place == 0 || (place & 0xFFFF) > planes_.width || place >> 16 >= planes_.height || steps_(place) >= step)
      return;
    const ptrdiff_t from =
        static_cast<ptrdiff_t>(size_t{place >> 16} * planes_.pitch + (place & 0xFFFF) - 1) - static_cast<ptrdiff_t>(at);
    const uint32_t relation = equals(from, w) ? 0 : equals(from, n) ? 1 : equals(from, ne) || equals(from, nw) ? 2 : 3;
    planes_.follows[at] = static_cast<uint8_t>(1 + kFollowSources * relation + found.source);
    if (!equals(from, 0)) return;
    kept_[pixel] = place;
    if (planes_.symbols[at] == kMatchNone) planes_.symbols[at] = kMatchFollow;
  }

  const TokenPlanes& planes_;
  const uint32_t log_lanes_, period_;
  const FollowSteps steps_;
  std::vector<uint32_t> kept_;  // of each pixel, the place that it followed and equals, or 0
  std::vector<uint32_t> keys_;  // of each pixel
  std::vector<uint32_t> near_, wide_;
  uint32_t offered_ = 0;
  Offer offers_[2 << kMaxLogLanes];
};

}  // namespace

uint32_t log_follow_lanes(uint32_t width, uint32_t height) {
  const uint32_t pixels = width * height;
  return pixels >= 1u << 14 ? 5 : pixels >= 1u << 12 ? 4 : 3;
}

void find_follows(const TokenPlanes& planes) { Follower(planes).run(); }

}  // namespace l3
