// Finds steps of a token tile in which nothing is decoded.
#pragma once

#include "models/token.h"

namespace l3 {

// Finds steps in which all lanes are in still segments: rows of blocks that are still, or of which this row is.
template <class Classes>
class StillAhead {
 public:
  // `rows`: of each block a bit for each row that is still, or null.
  StillAhead(uint32_t width, uint32_t height, const Classes& classes, const uint16_t* rows)
      : width_(width), height_(height), across_(ceil_div(width, kBlockEdge)), classes_(classes), rows_(rows) {}

  // idle: for how many steps from now on all lanes stay in still segments and away from the tile's edges, or 0 if they
  // are too few to be worth it. busy: if idle is 0, for how many steps that cannot change. Lane 0 is at `column` and
  // `row`; each further lane is one row below and two columns behind.
  struct Steps {
    uint32_t idle, busy;
  };
  Steps from(uint32_t column, uint32_t row, uint32_t lanes) const {
    uint32_t steps = width_ - 1 - column;
    const uint32_t rows = smaller(lanes, height_ > row ? height_ - row : 0);
    for (uint32_t lane = 0; lane < rows && steps >= kFew; ++lane) {
      const uint32_t x = column - 2 * lane, y = row + lane;
      if (!is_still(x, y)) return {0, kBlockEdge - x % kBlockEdge};
      uint32_t end = (x / kBlockEdge + 1) * kBlockEdge;
      while (end - x < steps && is_still(end, y)) end += kBlockEdge;
      steps = smaller(steps, end - x);
    }
    return steps >= kFew ? Steps{steps, 0} : Steps{0, steps + 1};
  }

 private:
  static constexpr uint32_t kFew = 3;

  bool is_still(uint32_t x, uint32_t y) const {
    const uint32_t block = y / kBlockEdge * across_ + x / kBlockEdge;
    return (classes_[block] & kStillBlock) != 0 || (rows_ != nullptr && (rows_[block] >> y % kBlockEdge & 1) != 0);
  }

  const uint32_t width_, height_, across_;
  const Classes& classes_;
  const uint16_t* const rows_;
};

}  // namespace l3
