// Blocks of token tiles (sections 13.2 and 15.4 of the spec): which are still, and the classes of the others.
#pragma once

#include "engine/token_neighbours.h"

namespace l3 {

template <class W, uint32_t kChannels, TokenUse kUse, class Sink>
class TokenBlocks : protected TokenNeighbours<W, kChannels, kUse, Sink> {
 protected:
  using Base = TokenNeighbours<W, kChannels, kUse, Sink>;
  using Base::active_, Base::classes_, Base::column_, Base::error_, Base::error_here_, Base::errors_above_, Base::pixel,
      Base::pixel_, Base::pixel_here_, Base::row_, Base::state_, Base::tables_;
  using Base::kLiteral, Base::kParts, Base::kWords;
  using typename Base::At, typename Base::Classes, typename Base::Delay, typename Base::Front, typename Base::Lanes,
      typename Base::Mask, typename Base::Place, typename Base::Tables;
  using typename Base::Front::Round, typename Base::Front::Way;

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
        L3_FOR_USED_PARTS decode_still(part, round);
      }
      if constexpr (!kLiteral) this->decode_classes(round, tables_.all(), this->channels());
      if (!this->end_round(round)) return false;
    }
    if constexpr (W::kLooksAhead) {
      if (tables_.still()) ahead_.scan(this->width_, this->height_, classes_);
    }
    return true;
  }

  // Loads the weights of lanes that enter a block, and copies the pixels of still blocks. The others are to be decoded.
  L3_INLINE void enter_blocks(uint32_t part, const Place& at) {
    to_decode_[part] = at.active;
    const bool has_classes = !kLiteral && weights_.change();
    if (!has_classes && !tables_.still()) return;
    const Mask enters = Base::entering_block(at);
    const auto entering = W::lane_bits(enters);
    if (entering) {
      const Lanes block = this->block_of(at);
      if (has_classes) weights_.enter(part, entering, block, classes_);
      if constexpr (W::kLooksAhead) {
        if (tables_.still()) still_[part] = W::either(W::and_not(still_[part], enters), still_among(block, entering));
      }
    }
    if (!tables_.still()) return;
    if constexpr (W::kLooksAhead) {
      copy_still(part, at.active, W::both(at.active, still_[part]));
    } else {
      // A GPU looks this up in each step rather than keep it in a register.
      copy_still(part, at.active, still_among(this->block_of(at), at.active));
    }
  }

  // A step in which all lanes are in still blocks and none is at an edge of the tile: nothing is decoded.
  L3_INLINE void still_step(uint32_t step, const Way& way) {
    const typename Delay::Entry from_last = this->delay_.load();
    this->track_errors(from_last);
    for (uint32_t part = this->end_part(); part-- > this->first_part();) {
      this->slide(part, from_last);
      Mask level = W::same(pixel_[part][0].n, pixel_[part][0].nw);
      for (uint32_t word = 1; word < kWords; ++word) {
        level = W::both(level, W::same(pixel_[part][word].n, pixel_[part][word].nw));
      }
      if (this->has_holes()) this->track_last_value(part, W::equal(W::numbers(part), uint32_t{kLanes}));
      for (uint32_t word = 0; word < kWords; ++word) {
        pixel_here_[part][word] = W::select(level, pixel_[part][word].w, pixel_[part][word].n);
        if constexpr (!kLiteral) error_here_[part][word] = W::splat(0);
      }
    }
    L3_FOR_USED_PARTS this->sink_.put(step, part, row_[part], column_[part], pixel_here_[part], active_[part]);
    this->sink_.end_step(step);
    this->store_delay(way.last_part, way.last_lane);
  }

  // Updates the state that still_step() does not, after `idle` such steps.
  L3_INLINE void skip_columns(uint32_t idle) {
    L3_FOR_USED_PARTS {
      column_[part] = column_[part] + idle;
      still_[part] = W::less(W::numbers(part), uint32_t{kLanes});  // each lane may have entered another block
      for (uint32_t word = 0; word < kWords && !kLiteral; ++word) {
        errors_above_[part][word] = Front::upper_of(error_[part][word]);
      }
    }
  }

  typename W::template TokenWeights<kChannels> weights_;
  typename W::Ahead ahead_;
  Mask still_[kParts];      // the lanes in still blocks, if the warp looks ahead
  Mask to_decode_[kParts];  // the lanes whose pixel is coded in this step

 private:
  // Decodes which lanes' blocks are still, in a round. Only the others remain active.
  L3_INLINE void decode_still(uint32_t part, Round& round) {
    const Lanes lane = W::numbers(part);
    const uint32_t first = round.first, across = this->blocks_across();
    // The block above is a context only if an earlier round decoded it.
    const Mask known = W::both(W::less(lane, across), W::not_less(lane + first, W::splat(across)));
    const Lanes above = classes_.of(lane + (first - across), W::lane_bits(known));
    const Lanes frequency = W::select(W::equal(above & constant<kStillBlock>, kStillBlock),
                                      W::splat(tables_.still_frequency(1)), W::splat(tables_.still_frequency(0)));
    const Lanes slot = state_[part] & constant<kProbabilities - 1>;
    const Mask still = W::and_not(active_[part], W::not_less(slot, frequency));
    const Lanes own_frequency = W::select(still, frequency, W::splat(constant<kProbabilities>) - frequency);
    const Lanes number = W::select(still, slot, slot - frequency);
    const Lanes next = own_frequency * (state_[part] >> kProbabilityBits) + number;
    state_[part] = W::select(active_[part], next, state_[part]);
    this->refill(part, active_[part], round.window, round.taken);
    active_[part] = W::and_not(active_[part], still);
    round.classes[part] = W::select_or_zero(still, W::splat(kStillBlock));
  }

  // The lanes, among those given, whose block is still.
  template <class Which>
  L3_INLINE Mask still_among(Lanes block, Which lanes) const {
    return W::equal(classes_.of(block, lanes) & constant<kStillBlock>, kStillBlock);
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
};

}  // namespace l3
