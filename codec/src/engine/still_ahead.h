// Finds steps of a token tile in which nothing is decoded.
#pragma once

#include "models/token.h"

namespace l3 {

// Finds steps in which all lanes are in still blocks.
class StillAhead {
 public:
  template <class Classes>
  void scan(uint32_t width, uint32_t height, const Classes& classes) {
    width_ = width;
    height_ = height;
    across_ = ceil_div(width, kBlockEdge);
    for (uint32_t block = across_ * ceil_div(height, kBlockEdge); block-- > 0;) {
      const uint32_t right = block % across_ + 1;
      const bool goes_on = right < across_ && ends_[block + 1] != 0;
      const bool still = (classes[block] & kStillBlock) != 0;
      ends_[block] = static_cast<uint8_t>(!still ? 0 : goes_on ? ends_[block + 1] : right);
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
      const uint32_t end = ends_[((row + lane) >> 4) * across_ + (x >> 4)] * kBlockEdge;
      if (end == 0) return {0, kBlockEdge - x % kBlockEdge};
      steps = smaller(steps, end - x);
    }
    return steps >= kFew ? Steps{steps, 0} : Steps{0, steps + 1};
  }

 private:
  static constexpr uint32_t kFew = 3;
  uint32_t width_ = 0, height_ = 0, across_ = 0;
  // The column of blocks after the run of still blocks that begins with this block, or 0 if this block is not still.
  uint8_t ends_[kMaxTileEdge / kBlockEdge * (kMaxTileEdge / kBlockEdge) + 1];
};

}  // namespace l3
