// Blocks of token tiles (sections 13.2, 15.4 and 15.5 of the spec): which are still, which rows of the others are, and
// the classes of the others.
#pragma once

#include "token_follow.cuh"
#include "token_neighbours.cuh"

namespace l3 {

// Where a tile keeps what only some models have.
struct TokenMemory {
  uint16_t* rows;  // with still rows, a bit for each row of each block: whether it is still
  FollowMemory follow;
};

template <class W, uint32_t kChannels, TokenUse kUse, TokenMore kMore, class Sink>
class TokenBlocks : protected TokenNeighbours<W, kChannels, kUse, Sink> {
 protected:
  using Base = TokenNeighbours<W, kChannels, kUse, Sink>;
  using Base::classes_, Base::pixel, Base::pixel_here_, Base::tables_;
  using Base::kLiteral, Base::kParts, Base::kWords;
  static constexpr bool kFollow = kMore == TokenMore::all;  // whether pixels may follow others
  using typename Base::At, typename Base::Classes, typename Base::Delay, typename Base::Front, typename Base::Lanes,
      typename Base::Mask, typename Base::Place, typename Base::Tables;
  using typename Base::Front::Round;

 public:
  L3_INLINE TokenBlocks(const TileShape& shape, const TileEntry& entry, const Tables& tables, Sink& sink, Delay& delay,
                        Classes& classes, const TokenMemory& memory)
      : Base(shape, entry, tables, sink, delay, classes),
        weights_(tables),
        follow_(memory.follow),
        rows_(memory.rows) {}

 protected:
  // Whether rows of blocks may be still. Only some models of the kind TokenMore::all let them.
  L3_INLINE bool has_rows() const { return kMore == TokenMore::rows || (kMore == TokenMore::all && tables_.rows()); }

  // Decodes which blocks are still, which rows of the others are, and the classes of the others.
  L3_INLINE bool decode_blocks() {
    if (kLiteral && !tables_.still()) return true;
    for (uint32_t first = 0; first < this->blocks(); first += this->lanes_) {
      Round round = this->begin_round(first);
      if (tables_.still()) {
        const uint32_t frequencies[] = {tables_.still_frequency(0), tables_.still_frequency(1)};
        L3_FOR_USED_PARTS this->decode_still(part, round, frequencies);
        if (has_rows()) decode_rows(round);
      }
      if constexpr (!kLiteral) this->decode_classes(round, tables_.all(), this->channels());
      if (!this->end_round(round)) return false;
    }
    return true;
  }

  // Loads the weights of lanes that enter a block, and copies the pixels of still blocks. The others are to be decoded.
  L3_INLINE void enter_blocks(uint32_t part, const Place& at) {
    to_decode_[part] = at.active;
    if (!kLiteral && weights_.change()) {
      const auto entering = W::lane_bits(Base::entering_block(at));
      if (entering) {
        weights_.enter(part, entering, this->block_of(at), classes_);
        // A lane enters a block in each of its rows.
        if (has_rows()) weights_.set_still(is_still_row(at));
      }
    }
    if (!tables_.still()) return;
    copy_still(part, at.active, W::both(at.active, is_still(at)));
  }

  typename W::template TokenWeights<kChannels> weights_;
  FollowedPixels<kChannels> follow_;
  Mask to_decode_[kParts];  // the lanes whose pixel is coded in this step

 private:
  // Whether the pixel of each lane is in a still block or row. For literals, this is looked up in each step.
  L3_INLINE Mask is_still(const Place& at) const {
    if (kLiteral && has_rows()) return at.active && is_still_row(at);
    const Lanes classes = kLiteral ? classes_.of(this->block_of(at), W::lane_bits(at.active)) : weights_.classes();
    return W::at_least(classes & constant<kStillBlock>, 1);
  }
  // All rows of a still block are still.
  L3_INLINE bool is_still_row(const Place& at) const {
    return (rows_[this->block_of(at).v] >> (at.row.v & (kBlockEdge - 1)) & 1) != 0;
  }

  // Decodes which rows of a round's blocks are still (section 15.5). A lane has a bit for each row of its block in the
  // upper half of a word, and for those of the block above it in the lower half: 0 if the row is known not to be still.
  L3_INLINE void decode_rows(Round& round) {
    const uint32_t lane = lane_number(), across = this->blocks_across(), block = round.first + lane;
    const bool has_left = block % across != 0, has_right = (block + 1) % across != 0;
    const uint32_t first_row = block / across * kBlockEdge;
    // A block counts if an earlier round decoded it. Numbers below 0 are large.
    const auto known = [&](uint32_t other) { return other < round.first ? uint32_t{rows_[other]} : 0xFFFFu; };
    uint32_t own = 0xFFFF0000u | known(block - across);
    // The words of the blocks beside a lane's are those of other lanes where these masks have bits. Conditions in their
    // place made compilers split the loop, with a copy for lane 0.
    const uint32_t from_lane_before = has_left && lane != 0 ? UINT32_MAX : 0;
    const uint32_t from_lane_after = has_right && block + 1 < round.end ? UINT32_MAX : 0;
    uint32_t other_left = 0, other_right = 0;
    if (from_lane_before == 0) {
      other_left = has_left ? known(block - 1) << 16 | known(block - 1 - across) : UINT32_MAX;
    }
    if (from_lane_after == 0) other_right = has_right ? 0xFFFF0000u | known(block + 1 - across) : UINT32_MAX;
    const uint32_t frequency = tables_.all().row_frequency[lane % kRowContexts];
#pragma unroll 1
    for (uint32_t k = 0; k < kBlockEdge; ++k) {
      const uint32_t from_left = __shfl_up_sync(kAllLanes, own, 1), from_right = __shfl_down_sync(kAllLanes, own, 1);
      const uint32_t left = (from_left & from_lane_before) | other_left;
      const uint32_t right = (from_right & from_lane_after) | other_right;
      // Of the two rows above, the nearer one is in the higher bit.
      const uint32_t shift = k + kBlockEdge - 2;
      const uint32_t context = (own >> (shift + 1) & 1) | (own >> shift & 1) << 1 | (right >> (shift + 1) & 1) << 2 |
                               (left >> (shift + 1) & 1) << 3;
      const Lanes its_frequency = {__shfl_sync(kAllLanes, frequency, static_cast<int>(context))};
      const Mask here = this->active_[0] && first_row + k < this->height_;
      const Mask still = this->decode_binary(0, round, its_frequency, here);
      if (here && !still) own &= ~(0x10000u << k);
    }
    if (block < round.end) rows_[block] = static_cast<uint16_t>(own >> 16);
  }

  // Pixels of still blocks (section 15.4): W if N equals NW, else N.
  L3_INLINE void copy_still(uint32_t part, Mask active, Mask still) {
    to_decode_[part] = W::and_not(active, still);
    Mask level = still;
    for (uint32_t word = 0; word < kWords; ++word) {
      level = W::both(level, W::same(pixel(At::n, part, word), pixel(At::nw, part, word)));
    }
    for (uint32_t word = 0; word < kWords; ++word) {
      const Lanes copied = W::select(level, pixel(At::w, part, word), pixel(At::n, part, word));
      pixel_here_[part][word] = W::select(still, copied, pixel_here_[part][word]);
    }
  }

  uint16_t* const rows_;
};

}  // namespace l3
