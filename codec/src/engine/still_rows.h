// Which rows of a token tile are still, and how far.
#pragma once

#include <cstring>

#include "models/token.h"

namespace l3 {

// A tile consists of segments: the parts of its rows that are in one block. Of each row, StillRows keeps which segments
// are still.
class StillRows {
 public:
  // Of each block, a bit for each row that is still: what Wavefront::decode_token_blocks() decodes into. turn() makes
  // bits of rows from it.
  uint16_t* blocks() { return bits_; }
  // `classes`: tell which blocks are still, for tiles of which no single rows are; else null.
  template <class Classes>
  void turn(uint32_t width, uint32_t height, const Classes* classes) {
    const uint32_t across = ceil_div(width, kBlockEdge);
    // From the end, since the rows of a block take more space after that.
    for (uint32_t y = ceil_div(height, kBlockEdge); y-- > 0;) {
      uint64_t all = 0, rows[kBlockEdge] = {};
      for (uint32_t x = 0; x < across; ++x) {
        const uint32_t block = y * across + x;
        const uint64_t bit = uint64_t{1} << x;
        if (classes != nullptr) {
          all |= ((*classes)[block] & kStillBlock) != 0 ? bit : 0;
        } else if (bits_[block] == 0xFFFF) {
          all |= bit;
        } else {
          for (uint32_t left = bits_[block]; left != 0; left &= left - 1) rows[__builtin_ctz(left)] |= bit;
        }
      }
      for (uint64_t& row : rows) row |= all;
      std::memcpy(bits_ + y * kBlockEdge * kRowSize, rows, sizeof(rows));
    }
  }

  // From here on: after turn(). A bit for each segment of a row, from the segment that contains column x.
  L3_INLINE uint64_t from(uint32_t x, uint32_t y) const {
    uint64_t row;
    std::memcpy(&row, bits_ + y * kRowSize, sizeof(row));
    return row >> (x / kBlockEdge);
  }
  L3_INLINE bool is_still(uint32_t x, uint32_t y) const { return (from(x, y) & 1) != 0; }
  // The column of the next segment that is still, if that of column x is not, or else that is not. A column beyond the
  // tile if there is none.
  L3_INLINE uint32_t next_change(uint32_t x, uint32_t y) const {
    const uint64_t row = from(x, y), others = row ^ (0 - (row & 1));
    const uint32_t blocks = others == 0 ? kMaxTileEdge / kBlockEdge : static_cast<uint32_t>(__builtin_ctzll(others));
    return (x / kBlockEdge + blocks) * kBlockEdge;
  }

  // idle: for how many steps from now on all lanes stay in still segments and away from the tile's edges, or 0 if they
  // are too few to be worth it. busy: if idle is 0, for how many steps that cannot change. Lane 0 is at `column` and
  // `row`; each further lane is one row below and two columns behind.
  struct Steps {
    uint32_t idle, busy;
  };
  Steps ahead(uint32_t width, uint32_t height, uint32_t column, uint32_t row, uint32_t lanes) const {
    uint32_t steps = width - 1 - column;
    const uint32_t rows = smaller(lanes, height > row ? height - row : 0);
    for (uint32_t lane = 0; lane < rows && steps >= kFew; ++lane) {
      const uint32_t x = column - 2 * lane, y = row + lane, end = smaller(next_change(x, y), width);
      if (!is_still(x, y)) return {0, end - x};
      steps = smaller(steps, end - x);
    }
    return steps >= kFew ? Steps{steps, 0} : Steps{0, steps + 1};
  }

 private:
  static constexpr uint32_t kFew = 3, kRowSize = sizeof(uint64_t) / sizeof(uint16_t);
  static_assert(kMaxTileEdge / kBlockEdge == 64);

  uint16_t bits_[kMaxTileEdge / kBlockEdge * (kMaxTileEdge / kBlockEdge)];
};

}  // namespace l3
