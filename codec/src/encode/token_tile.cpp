// Implements token_tile.h: neighbours, matches, predictions and contexts of a tile (section 15 of the spec).
#include "encode/token_tile.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace l3 {
namespace {

// The level of an activity of at least 8: four levels per octave.
uint32_t level_of(uint32_t activity) {
  const uint32_t top = 31 - static_cast<uint32_t>(__builtin_clz(activity));
  return 4 * (top - 3) + (activity >> (top - 2) & 3);
}

uint32_t bit_length_of(uint32_t v) { return v == 0 ? 0 : 32 - static_cast<uint32_t>(__builtin_clz(v)); }

}  // namespace

void NeighbourRows::find(const int32_t* plane, uint32_t y) {
  const uint32_t w = width_;
  const int32_t* here = plane + size_t{y} * w;
  const int32_t* up = y > 0 ? here - w : nullptr;
  const int32_t* up_2 = y > 1 ? up - w : up;
  const size_t bytes = w * sizeof(int32_t);
  const int32_t corner = y > 0 ? up[0] : 0;
  // W and WW. A row of one pixel has no second column.
  row(kTokenW)[0] = row(kTokenWw)[0] = corner;
  if (w > 1) {
    std::memcpy(row(kTokenW) + 1, here, bytes - sizeof(int32_t));
    row(kTokenWw)[1] = corner;
  }
  if (w > 2) std::memcpy(row(kTokenWw) + 2, here, bytes - 2 * sizeof(int32_t));
  if (y == 0) {
    for (uint32_t i = kTokenN; i < kTokenNeighbours; ++i) {
      if (i != kTokenWw) std::memcpy(row(i), row(kTokenW), bytes);
    }
    return;
  }
  std::memcpy(row(kTokenN), up, bytes);
  row(kTokenNw)[0] = row(kTokenNww)[0] = up[0];
  if (w > 1) {
    std::memcpy(row(kTokenNw) + 1, up, bytes - sizeof(int32_t));
    std::memcpy(row(kTokenNe), up + 1, bytes - sizeof(int32_t));
    row(kTokenNww)[1] = up[0];
  }
  row(kTokenNe)[w - 1] = up[w - 1];
  if (w > 2) std::memcpy(row(kTokenNww) + 2, up, bytes - 2 * sizeof(int32_t));
  std::memcpy(row(kTokenNn), up_2, bytes);
  if (y == 1) {
    std::memcpy(row(kTokenNne), row(kTokenNe), bytes);
    return;
  }
  if (w > 1) std::memcpy(row(kTokenNne), up_2 + 1, bytes - sizeof(int32_t));
  row(kTokenNne)[w - 1] = up_2[w - 1];
}

void NeighbourRows::fill_holes(int32_t hole) {
  int32_t held = 0;
  for (uint32_t x = 0; x < width_; ++x) {
    if (row(kTokenW)[x] != hole) {
      held = row(kTokenW)[x];
    } else if (row(kTokenN)[x] != hole) {
      held = row(kTokenN)[x];
    }
    for (uint32_t i = 0; i < kTokenNeighbours; ++i) {
      int32_t& v = row(i)[x];
      v = v == hole ? held : v;
    }
  }
}

TokenTile::TokenTile(uint32_t w, uint32_t h, uint32_t engine_channels)
    : width(w),
      height(h),
      channels(engine_channels),
      blocks_across(ceil_div(w, kBlockEdge)),
      blocks_down(ceil_div(h, kBlockEdge)) {
  for (uint32_t c = 0; c < channels; ++c) {
    values[c].resize(pixels());
    errors[c].resize(pixels());
    predicted[c].resize(pixels());
    classes[c].resize(block_count());
  }
  symbols.assign(pixels(), kMatchNone);
  still.assign(block_count(), 0);
}

void TokenTile::find_matches(int32_t hole, bool with_still) {
  equalities.resize(pixels());
  std::vector<uint8_t> stays(pixels());  // whether the pixel has the value that a still block would give it
  std::vector<NeighbourRows> rows(channels, NeighbourRows(width));
  for (uint32_t y = 0; y < height; ++y) {
    for (uint32_t c = 0; c < channels; ++c) rows[c].find(values[c].data(), y);
    const auto same = [&](uint32_t a, uint32_t b, uint32_t x) {
      bool equal = true;
      for (uint32_t c = 0; c < channels; ++c) equal &= rows[c][a][x] == rows[c][b][x];
      return equal;
    };
    uint8_t* const equal = equalities.data() + size_t{y} * width;
    uint8_t* const symbol = symbols.data() + size_t{y} * width;
    for (uint32_t x = 0; x < width; ++x) {
      equal[x] = static_cast<uint8_t>(same(kTokenW, kTokenN, x) | same(kTokenN, kTokenNe, x) << 1 |
                                      same(kTokenN, kTokenNw, x) << 2 | same(kTokenW, kTokenNw, x) << 3 |
                                      same(kTokenWw, kTokenW, x) << 4 | same(kTokenNn, kTokenN, x) << 5 |
                                      same(kTokenNne, kTokenNe, x) << 6 | same(kTokenNww, kTokenNw, x) << 7);
      const auto is = [&](uint32_t neighbour) {
        bool equal_to = true;
        for (uint32_t c = 0; c < channels; ++c) {
          equal_to &= rows[c][neighbour][x] == values[c][size_t{y} * width + x];
        }
        return equal_to;
      };
      symbol[x] = is(kTokenW)                                             ? kMatchW
                  : is(kTokenN)                                           ? kMatchN
                  : is(kTokenNe)                                          ? kMatchNe
                  : is(kTokenNw)                                          ? kMatchNw
                  : hole >= 0 && values[0][size_t{y} * width + x] == hole ? kMatchHole
                                                                          : kMatchNone;
      stays[size_t{y} * width + x] = is(same(kTokenN, kTokenNw, x) ? kTokenW : kTokenN);
    }
  }
  if (with_still) find_still(stays);
}

void TokenTile::find_still(const std::vector<uint8_t>& stays) {
  const auto for_block = [&](uint32_t block, const auto& use) {
    const uint32_t left = block % blocks_across * kBlockEdge, top = block / blocks_across * kBlockEdge;
    const uint32_t right = std::min(left + kBlockEdge, width), bottom = std::min(top + kBlockEdge, height);
    for (uint32_t y = top; y < bottom; ++y) use(size_t{y} * width + left, size_t{y} * width + right);
  };
  for (uint32_t block = 0; block < block_count(); ++block) {
    bool all = true;
    for_block(block, [&](size_t from, size_t to) {
      all = all && std::all_of(&stays[from], &stays[to - 1] + 1, [](uint8_t pixel) { return pixel != 0; });
    });
    still[block] = all;
    if (!all) continue;
    for_block(block, [&](size_t from, size_t to) {
      std::fill(&symbols[from], &symbols[to - 1] + 1, static_cast<uint8_t>(kNoSymbol));
    });
  }
}

void predict_tile(TokenTile& tile, uint32_t c, const TapWeights* weights, uint32_t depth, int32_t hole) {
  const uint32_t w = tile.width;
  NeighbourRows own(w), errors(w);
  std::vector<NeighbourRows> cross(cross_channels(c), NeighbourRows(w));
  std::vector<int32_t> sums(w);
  const int32_t maximum = (1 << depth) - 1;
  for (uint32_t y = 0; y < tile.height; ++y) {
    own.find(tile.values[c].data(), y);
    if (hole >= 0) own.fill_holes(hole);
    // W and WW lie in this row and are not known yet; the loop below adds them.
    errors.find(tile.errors[c].data(), y);
    for (uint32_t i = 0; i < cross.size(); ++i) cross[i].find(tile.values[c - 1 - i].data(), y);
    const uint8_t* const classes = tile.classes[c].data() + size_t{y / kBlockEdge} * tile.blocks_across;
    const size_t row = size_t{y} * w;
    for (uint32_t first = 0; first < w; first += kBlockEdge) {
      const int8_t* of = weights[classes[first / kBlockEdge]].of;
      const uint32_t end = std::min(first + kBlockEdge, w);
      int32_t* const sum = sums.data();
      for (uint32_t x = first; x < end; ++x) sum[x] = 1 << kWeightShift >> 1;
      const auto add = [&](int32_t weight, const int32_t* values) {
        if (weight == 0) return;
        for (uint32_t x = first; x < end; ++x) sum[x] += weight * values[x];
      };
      for (uint32_t i = 0; i < kTokenNeighbours; ++i) add(of[i], own[i]);
      if (y > 0) {
        for (const uint32_t i : {kTokenN, kTokenNw, kTokenNe, kTokenNn}) add(of[8 + i], errors[i]);
      }
      for (uint32_t i = 0; i < cross.size(); ++i) {
        add(of[14 + i], tile.errors[c - 1 - i].data() + row);
        const int8_t* const cross_of = of + (kCrossWord + i) * kTapsOfWord;
        add(cross_of[0], cross[i][kTokenW]);
        add(cross_of[1], cross[i][kTokenN]);
        add(cross_of[2], cross[i][kTokenNw]);
        add(cross_of[3], tile.values[c - 1 - i].data() + row);
      }
      const int32_t of_w = of[8], of_ww = of[12];
      const bool no_n = y == 0;  // then N and all other upper neighbours are W
      const int32_t of_above = no_n ? of[9] + of[10] + of[11] + of[13] : 0;
      const int32_t corner = y > 0 ? tile.errors[c][row - w] : 0;
      for (uint32_t x = first; x < end; ++x) {
        const int32_t e_w = x > 0 ? tile.errors[c][row + x - 1] : corner;
        const int32_t e_ww = x > 1 ? tile.errors[c][row + x - 2] : corner;
        const int32_t total = sum[x] + (of_w + of_above) * e_w + of_ww * e_ww;
        const int32_t twice = total >> (kWeightShift - 1);
        const int32_t p = std::clamp(twice >> 1, 0, maximum);
        const int32_t up = total - (p << kWeightShift) >= 1 << kWeightShift >> 1;
        tile.predicted[c][row + x] = p << 1 | up;
        const int32_t error = std::clamp(tile.values[c][row + x] - p, -kMaxTokenError, kMaxTokenError);
        tile.errors[c][row + x] = tile.symbols[row + x] == kMatchNone ? error : 0;
      }
    }
  }
}

ContextFinder::ContextFinder(const TokenTile& tile, int32_t hole)
    : tile_(tile), hole_(hole), values_(tile.width), errors_(tile.width), sum_(tile.width) {
  for (auto& term : terms_) term.resize(tile.width);
}

const std::vector<int32_t>* ContextFinder::terms(uint32_t c, uint32_t y) {
  const uint32_t w = tile_.width;
  values_.find(tile_.values[c].data(), y);
  if (hole_ >= 0) values_.fill_holes(hole_);
  errors_.find(tile_.errors[c].data(), y);
  constexpr uint32_t kOrder[] = {kTokenW, kTokenN, kTokenNw, kTokenNe, kTokenWw, kTokenNn};
  for (uint32_t i = 0; i < 6; ++i) {
    const int32_t* from = errors_[kOrder[i]];
    for (uint32_t x = 0; x < w; ++x) terms_[i][x] = std::abs(from[x]);
  }
  const auto slope = [&](uint32_t i, uint32_t a, uint32_t b) {
    for (uint32_t x = 0; x < w; ++x) terms_[i][x] = std::min(std::abs(values_[a][x] - values_[b][x]), kMaxTokenError);
  };
  slope(6, kTokenW, kTokenNw);
  slope(7, kTokenN, kTokenNw);
  slope(8, kTokenN, kTokenNe);
  for (uint32_t i = 0; i < cross_channels(c); ++i) {
    const int32_t* from = tile_.errors[c - 1 - i].data() + size_t{y} * w;
    for (uint32_t x = 0; x < w; ++x) terms_[9 + i][x] = std::abs(from[x]);
  }
  return terms_;
}

void ContextFinder::find(uint32_t c, uint32_t y, const uint8_t* activity, uint32_t depth, ContextRow& row) {
  const uint32_t w = tile_.width;
  terms(c, y);
  std::fill(sum_.begin(), sum_.end(), static_cast<int32_t>(kActivityFloor));
  for (uint32_t i = 0; i < 9 + cross_channels(c); ++i) {
    const int32_t weight = activity[i];
    if (weight == 0) continue;
    for (uint32_t x = 0; x < w; ++x) sum_[x] += weight * terms_[i][x];
  }
  const int32_t maximum = (1 << depth) - 1;
  const int32_t* predicted = tile_.predicted[c].data() + size_t{y} * w;
  for (uint32_t x = 0; x < w; ++x) {
    row.level[x] = static_cast<uint8_t>(level_of(std::min(static_cast<uint32_t>(sum_[x]), kMaxActivity)));
    const int32_t p = predicted[x] >> 1;
    const bool up = (predicted[x] & 1) != 0;
    row.zone[x] = static_cast<uint8_t>(std::min(15u, bit_length_of(static_cast<uint32_t>(up ? maximum - p : p))));
    const uint32_t pattern = static_cast<uint32_t>((errors_[kTokenW][x] < 0) | (errors_[kTokenN][x] < 0) << 1 |
                                                   (errors_[kTokenNw][x] < 0) << 2 | (errors_[kTokenNe][x] < 0) << 3 |
                                                   (values_[kTokenW][x] >= p) << 4 | (values_[kTokenN][x] >= p) << 5);
    row.pattern[x] = static_cast<uint8_t>(up ? pattern ^ 63 : pattern);
  }
}

void ContextFinder::find_octaves(uint32_t y, const uint8_t* activity, uint8_t* octaves) {
  terms(0, y);
  for (uint32_t x = 0; x < tile_.width; ++x) {
    uint32_t sum = kActivityFloor;
    for (uint32_t i = 0; i < 9; ++i) sum += activity[i] * static_cast<uint32_t>(terms_[i][x]);
    octaves[x] = static_cast<uint8_t>(level_of(std::min(sum, kMaxActivity)) / 4);
  }
}

}  // namespace l3
