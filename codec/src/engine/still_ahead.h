// Finds steps of a token tile in which nothing is decoded.
#pragma once

#include "models/token.h"

namespace l3 {

// Finds steps in which all lanes are in still blocks.
class StillAhead {
 public:
  // `rows`: of each block a bit for each row that is still, or null.
  template <class Classes>
  void scan(uint32_t width, uint32_t height, const Classes& classes, const uint16_t* rows) {
    width_ = width;
    height_ = height;
    across_ = ceil_div(width, kBlockEdge);
    log_rows_ = rows != nullptr ? 0 : 4;
    const auto is_still = [&](uint32_t segment) {
      const uint32_t y = segment / across_ << log_rows_, block = (y >> 4) * across_ + segment % across_;
      return (classes[block] & kStillBlock) != 0 || (rows != nullptr && (rows[block] >> y % kBlockEdge & 1) != 0);
    };
    for (uint32_t segment = across_ * (((height - 1) >> log_rows_) + 1); segment-- > 0;) {
      const uint32_t right = segment % across_ + 1;
      const bool goes_on = right < across_ && ends_[segment + 1] != 0;
      ends_[segment] = static_cast<uint8_t>(!is_still(segment) ? 0 : goes_on ? ends_[segment + 1] : right);
    }
  }

  // idle: for how many steps from now on all lanes stay in still blocks and away from the tile's edges, or 0 if they
  // are too few to be worth it. busy: if idle is 0, for how many steps that cannot change. Lane 0 is at `column` and
  // `row`; each further lane is one row below and two columns behind.
  struct Steps {
    uint32_t idle, busy;
  };
  Steps from(uint32_t column, uint32_t row, uint32_t lanes) const {
    uint32_t steps = width_ - 1 - column;
    const uint32_t rows = smaller(lanes, height_ > row ? height_ - row : 0);
    for (uint32_t lane = 0; lane < rows && steps >= kFew; ++lane) {
      const uint32_t x = column - 2 * lane;
      const uint32_t end = ends_[((row + lane) >> log_rows_) * across_ + (x >> 4)] * kBlockEdge;
      if (end == 0) return {0, kBlockEdge - x % kBlockEdge};
      steps = smaller(steps, end - x);
    }
    return steps >= kFew ? Steps{steps, 0} : Steps{0, steps + 1};
  }

 private:
  static constexpr uint32_t kFew = 3;
  uint32_t width_ = 0, height_ = 0, across_ = 0, log_rows_ = 4;
  // The column of blocks after the run of still segments that begins with this one, or 0 if it is not still. Segments
  // are rows of blocks, or whole blocks if no rows are still.
  uint8_t ends_[kMaxTileEdge * (kMaxTileEdge / kBlockEdge) + 1];
};

}  // namespace l3
