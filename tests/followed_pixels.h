// Which pixels of a tile follow others, for tiles that are coded by hand. It follows section 15.6 of spec/format.md,
// not codec/.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

namespace by_hand {

class FollowedPixels {
 public:
  struct At {
    uint32_t x, y;
    bool operator==(const At&) const = default;
  };
  // What a pixel follows: its number, the entries that it asked if any, with its own tag, and where it is.
  struct Source {
    uint32_t number = 0;
    std::optional<uint32_t> near, wide;
    uint32_t tag = 0;
    std::optional<At> at;
  };
  // Of each engine channel W, N, NW and NE.
  using Around = std::vector<std::array<uint32_t, 4>>;

  FollowedPixels(uint32_t width, uint32_t height, uint32_t lanes)
      : width_(width), height_(height), lanes_(lanes), kept_(size_t{width} * height) {}

  // `value` gives the value of (engine channel, column, row).
  template <class Value>
  Source source_of(uint32_t x, uint32_t y, uint32_t step, const Around& around, const Value& value) const {
    std::optional<At> below, beside;
    if (y > 0) below = kept_[(size_t{y} - 1) * width_ + x];
    if (x > 0) beside = kept_[size_t{y} * width_ + x - 1];
    if (below) ++below->y;
    if (beside) ++beside->x;
    Source source;
    source.at = below ? below : beside;
    uint32_t from = below && below == beside ? 2 : 1;
    const auto is_flat = [](const std::array<uint32_t, 4>& of) {
      return of[0] == of[1] && of[0] == of[2] && of[0] == of[3];
    };
    if (!std::all_of(around.begin(), around.end(), is_flat)) {
      const uint32_t key = key_of(x, y);
      source.wide = key >> 18;
      source.tag = key / 64 % 4096;
      const auto found = wide_.find(*source.wide);
      if (found != wide_.end() && std::get<2>(found->second) == source.tag) {
        const At at{std::get<1>(found->second), std::get<0>(found->second)};
        from = source.at == at ? 4 : 3;
        source.at = at;
      }
    }
    if (!source.at) {
      source.near = near_entry_of(around);
      const auto found = near_.find(*source.near);
      if (found != near_.end()) source.at = At{found->second.second, found->second.first};
      from = 0;
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
    source.number = 1 + 5 * relation + from;
    return source;
  }

  // After its step: what a pixel keeps, and what becomes of the entries that it asked.
  void keep(uint32_t x, uint32_t y, const Source& source, bool equals) {
    if (source.at && equals) kept_[size_t{y} * width_ + x] = source.at;
    if (source.near) near_[*source.near] = std::max(near_[*source.near], {y, x});
    if (source.wide) wide_[*source.wide] = std::max(wide_[*source.wide], {y, x, source.tag});
  }

  // After its step, of every pixel: its values in all engine channels.
  void pass(uint32_t x, uint32_t y, const std::vector<uint32_t>& values) {
    constexpr uint32_t kFactors[4] = {3266489917u, 668265263u, 374761393u, 3550635117u};
    uint32_t trail = 3816266512u * trail_of_w(x, y);
    for (size_t e = 0; e < values.size(); ++e) trail += kFactors[e] * values[e];
    const uint32_t scene = trail + 3955914496u * scene_of_ne(x, y);
    trails_[{y, x}] = trail;
    scenes_[{y, x}] = scene;
  }

 private:
  using RowAndColumn = std::pair<uint32_t, uint32_t>;

  static uint32_t near_entry_of(const Around& around) {
    constexpr uint64_t kFactors[4][4] = {{40503, 34283, 49843, 10197},
                                         {31161, 51819, 44605, 60207},
                                         {5719, 54179, 64881, 46427},
                                         {26545, 25709, 18117, 20233}};
    uint64_t sum = 0;
    for (size_t e = 0; e < around.size(); ++e) {
      for (size_t i = 0; i < 4; ++i) sum += kFactors[e][i] * around[e][i];
    }
    return static_cast<uint32_t>(sum % 65536 / 16);
  }
  uint32_t trail_of_w(uint32_t x, uint32_t y) const { return x > 0 ? trails_.at({y, x - 1}) : 0; }
  uint32_t scene_of_ne(uint32_t x, uint32_t y) const {
    return y > 0 && x + 1 < width_ ? scenes_.at({y - 1, x + 1}) : 0;
  }
  uint32_t key_of(uint32_t x, uint32_t y) const {
    const uint32_t a = 2654435761u * trail_of_w(x, y) + 2246822507u * scene_of_ne(x, y);
    return 739982445u * (a ^ a / 32768);
  }
  uint32_t step_of(const At& at) const {
    return std::max(width_, 2 * lanes_) * (at.y / lanes_) + at.x + 2 * (at.y % lanes_);
  }

  uint32_t width_, height_, lanes_;
  std::map<uint32_t, RowAndColumn> near_;
  std::map<uint32_t, std::tuple<uint32_t, uint32_t, uint32_t>> wide_;  // row, column, tag
  std::map<RowAndColumn, uint32_t> trails_, scenes_;
  std::vector<std::optional<At>> kept_;  // of each pixel
};

}  // namespace by_hand
