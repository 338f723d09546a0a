// Which pixels of a tile follow others, for tiles that are coded by hand. It follows section 15.6 of spec/format.md,
// not codec/.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace by_hand {

class FollowedPixels {
 public:
  struct At {
    uint32_t x, y;
  };
  // What a pixel follows: its number, the entry of the table that was asked if any, and where it is.
  struct Source {
    uint32_t number = 0;
    std::optional<uint32_t> asked;
    std::optional<At> at;
  };

  FollowedPixels(uint32_t width, uint32_t height, uint32_t lanes)
      : width_(width), height_(height), lanes_(lanes), entries_(1024), kept_(size_t{width} * height) {}

  // `around`: of each engine channel W, N, NW and NE. `value` gives the value of (engine channel, column, row).
  template <class Value>
  Source source_of(uint32_t x, uint32_t y, uint32_t step, const std::vector<std::array<uint32_t, 4>>& around,
                   const Value& value) const {
    std::optional<At> below, beside;
    if (y > 0) below = kept_[(size_t{y} - 1) * width_ + x];
    if (x > 0) beside = kept_[size_t{y} * width_ + x - 1];
    if (below) ++below->y;
    if (beside) ++beside->x;
    Source source;
    uint32_t from = 0;
    if (below) {
      source.at = below;
      from = beside && beside->x == below->x && beside->y == below->y ? 3 : 2;
    } else if (beside) {
      source.at = beside;
      from = 1;
    } else {
      source.asked = entry_of(around);
      source.at = entries_[*source.asked];
    }
    if (source.at && (source.at->x >= width_ || source.at->y >= height_)) source.at.reset();
    if (source.at && step_of(*source.at) >= step) source.at.reset();
    if (!source.at) return source;
    const auto equals = [&](size_t neighbour) {
      for (uint32_t e = 0; e < around.size(); ++e) {
        if (value(e, source.at->x, source.at->y) != around[e][neighbour]) return false;
      }
      return true;
    };
    const uint32_t relation = equals(0) ? 0 : equals(1) ? 1 : equals(2) || equals(3) ? 2 : 3;
    source.number = 1 + 4 * relation + from;
    return source;
  }

  // After its step: what a pixel keeps, and what becomes of the entry that it asked.
  void keep(uint32_t x, uint32_t y, const Source& source, bool equals) {
    if (source.at && equals) kept_[size_t{y} * width_ + x] = source.at;
    if (!source.asked) return;
    std::optional<At>& entry = entries_[*source.asked];
    if (!entry || entry->y < y || (entry->y == y && entry->x < x)) entry = At{x, y};
  }

 private:
  static uint32_t entry_of(const std::vector<std::array<uint32_t, 4>>& around) {
    constexpr uint64_t kFactors[4][4] = {{40503, 34283, 49843, 10197},
                                         {31161, 51819, 44605, 60207},
                                         {5719, 54179, 64881, 46427},
                                         {26545, 25709, 18117, 20233}};
    uint64_t sum = 0;
    for (size_t e = 0; e < around.size(); ++e) {
      for (size_t i = 0; i < 4; ++i) sum += kFactors[e][i] * around[e][i];
    }
    return static_cast<uint32_t>(sum % 65536 / 64);
  }
  uint32_t step_of(const At& at) const {
    return std::max(width_, 2 * lanes_) * (at.y / lanes_) + at.x + 2 * (at.y % lanes_);
  }

  uint32_t width_, height_, lanes_;
  std::vector<std::optional<At>> entries_;  // of the table
  std::vector<std::optional<At>> kept_;     // of each pixel
};

}  // namespace by_hand
