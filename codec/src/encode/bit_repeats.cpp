// Implements bit_repeats.h.
#include "encode/bit_repeats.h"

#include <algorithm>
#include <bit>

namespace l3 {
namespace {

// A piece has a row above the pixel where it begins, and columns to the left of it. There must be enough in it.
constexpr uint32_t kPieceEdge = 16, kColumnsBefore = 4, kMinOnes = 24;
constexpr size_t kMaxPieces = 1u << 17;  // that are compared; if there are more, a part of them

// The 16 columns of a row from x on.
uint64_t columns(const uint64_t* row, uint32_t x) {
  const uint64_t low = row[x / 64] >> (x % 64);
  return (x % 64 > 64 - kPieceEdge ? low | row[x / 64 + 1] << (64 - x % 64) : low) & ((1u << kPieceEdge) - 1);
}

// Hashes of pieces. Of equal pieces it has all or none.
class Pieces {
 public:
  void add(const BitPlane& plane, uint32_t x, uint32_t y) {
    uint64_t hash = 0;
    int ones = 0;
    for (uint32_t i = 0; i < kPieceEdge; ++i) {
      const uint64_t bits = columns(plane.row(y + i), x);
      ones += std::popcount(bits);
      hash = (hash ^ bits) * 0x9E3779B97F4A7C15;
      hash ^= hash >> 29;
    }
    if (ones < static_cast<int>(kMinOnes) || (hash & mask_) != 0) return;
    hashes_.push_back(hash);
    if (hashes_.size() < kMaxPieces) return;
    mask_ = 2 * mask_ + 1;
    hashes_.erase(std::remove_if(hashes_.begin(), hashes_.end(), [&](uint64_t h) { return (h & mask_) != 0; }),
                  hashes_.end());
  }
  double share_of_equal() {
    std::sort(hashes_.begin(), hashes_.end());
    size_t equal = 0;
    for (size_t i = 1; i < hashes_.size(); ++i) equal += hashes_[i] == hashes_[i - 1];
    return hashes_.empty() ? 0 : static_cast<double>(equal) / static_cast<double>(hashes_.size());
  }

 private:
  uint64_t mask_ = 0;  // a piece is kept if its hash has none of these bits set
  std::vector<uint64_t> hashes_;
};

// Adds a piece for each corner: a pixel of 1 whose neighbours above and to the left are 0.
void add_pieces(const BitPlane& plane, Pieces& pieces) {
  for (uint32_t y = 1; y + kPieceEdge <= plane.height(); ++y) {
    const uint64_t *const row = plane.row(y), *const above = plane.row(y - 1);
    for (uint32_t i = 0; i < plane.row_words(); ++i) {
      const auto before = [&](const uint64_t* of) { return of[i] << 1 | (i > 0 ? of[i - 1] >> 63 : 0); };
      const uint64_t after = above[i] >> 1 | (i + 1 < plane.row_words() ? above[i + 1] << 63 : 0);
      uint64_t corners = row[i] & ~(before(row) | before(above) | above[i] | after);
      for (; corners != 0; corners &= corners - 1) {
        const uint32_t x = 64 * i + static_cast<uint32_t>(std::countr_zero(corners));
        if (x < kColumnsBefore || x - kColumnsBefore + kPieceEdge > plane.width()) continue;
        pieces.add(plane, x - kColumnsBefore, y - 1);
      }
    }
  }
}

}  // namespace

double share_of_recurring(const TileSource& source, const BitColours& colours) {
  Pieces pieces;
  BitPlane plane;
  for (uint64_t tile = 0; tile < source.tile_count(); ++tile) {
    if (plane.load(source, tile, colours)) add_pieces(plane, pieces);
  }
  return pieces.share_of_equal();
}

}  // namespace l3
