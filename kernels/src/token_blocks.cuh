// Blocks of token tiles (sections 13.2 and 15.4 of the spec): which are still, and the classes of the others.
#pragma once

#include "token_neighbours.cuh"

namespace l3 {

template <class W, uint32_t kChannels, TokenUse kUse, class Sink>
class TokenBlocks : protected TokenNeighbours<W, kChannels, kUse, Sink> {
 protected:
  using Base = TokenNeighbours<W, kChannels, kUse, Sink>;
  using Base::classes_, Base::pixel, Base::pixel_here_, Base::tables_;
  using Base::kLiteral, Base::kParts, Base::kWords;
  using typename Base::At, typename Base::Classes, typename Base::Delay, typename Base::Front, typename Base::Lanes,
      typename Base::Mask, typename Base::Place, typename Base::Tables;
  using typename Base::Front::Round;

 public:
  L3_INLINE TokenBlocks(const TileShape& shape, const TileEntry& entry, const Tables& tables, Sink& sink, Delay& delay,
                        Classes& classes)
      : Base(shape, entry, tables, sink, delay, classes), weights_(tables) {}

 protected:
  // Decodes which blocks are still, and the classes of the others.
  L3_INLINE bool decode_blocks() {
    if (kLiteral && !tables_.still()) return true;
    for (uint32_t first = 0; first < this->blocks(); first += this->lanes_) {
      Round round = this->begin_round(first);
      if (tables_.still()) {
        const uint32_t frequencies[] = {tables_.still_frequency(0), tables_.still_frequency(1)};
        L3_FOR_USED_PARTS this->decode_still(part, round, frequencies);
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
      if (entering) weights_.enter(part, entering, this->block_of(at), classes_);
    }
    if (!tables_.still()) return;
    // For literals, this is looked up in each step.
    const Lanes classes = kLiteral ? classes_.of(this->block_of(at), W::lane_bits(at.active)) : weights_.classes();
    copy_still(part, at.active, W::both(at.active, W::at_least(classes & constant<kStillBlock>, 1)));
  }

  typename W::template TokenWeights<kChannels> weights_;
  Mask to_decode_[kParts];  // the lanes whose pixel is coded in this step

 private:
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
};

}  // namespace l3
