// Decodes a tile of a token model with a warp of a GPU (section 15 of the spec). Processors have
// codec/src/engine/token_loop.h.
#pragma once

#include "token_matches.cuh"

namespace l3 {

template <class W, uint32_t kChannels, TokenUse kUse, TokenMore kMore, class Sink>
class TokenDecoder : TokenMatches<W, kChannels, kUse, kMore, Sink> {
  using Base = TokenMatches<W, kChannels, kUse, kMore, Sink>;
  using Base::kParts;
  using typename Base::Mask, typename Base::Window;
  static_assert(kParts == 1);

 public:
  using Base::Base;
  using typename Base::Delay;

  L3_INLINE Fault decode() {
    this->load_states();
    if (!this->decode_blocks() || !decode_values()) return {Reason::dense_words, this->payload_bytes_};
    return this->check_end();
  }

 private:
  L3_INLINE bool decode_values() {
    const auto way = this->start_lanes(this->delay_);
    this->clear_neighbours();
    if constexpr (Base::kFollow) this->follow_.begin(this->width_, this->height_, this->lanes_, way.period);
    for (uint32_t step = 0; step < way.steps; ++step) {
      L3_FOR_USED_PARTS gather_neighbours(part);
      if constexpr (Base::kFollow) this->follow_.begin_step(this->column_[0].v, this->active_[0]);
      if (any_of(this->to_decode_) && !decode_step(step)) return false;
      if constexpr (Base::kFollow) {
        this->follow_.end_step(step, this->column_[0].v, this->row_[0].v, this->active_[0], this->pixel_here_[0]);
      }
      L3_FOR_USED_PARTS {
        this->sink_.put(step, part, this->row_[part], this->column_[part], this->pixel_here_[part],
                        this->active_[part]);
        this->next_column(part, way.period);
      }
      this->sink_.end_step(step);
      this->delay_.store(way.last_lane, this->for_lane_below(way.last_part));
    }
    return true;
  }

  // Collects the neighbours of each lane's pixel in a part.
  L3_INLINE void gather_neighbours(uint32_t part) {
    this->slide(part);
    const auto at = this->find_place(part);
    this->fix_neighbours(part, at);
    for (uint32_t word = 0; word < Base::kWords; ++word) {
      this->pixel_here_[part][word] = W::splat(0);
      if constexpr (!Base::kLiteral) this->error_here_[part][word] = W::splat(0);
    }
    if constexpr (Base::kHoles) this->track_last_value(part, W::equal(at.column, 0));
    this->enter_blocks(part, at);
  }

  // Decodes the pixels of one step.
  L3_INLINE bool decode_step(uint32_t step) {
    const Window window = this->reader_.window(this->at_);
    uint32_t taken = 0;
    if (this->has_match()) {
      this->decode_match(step, window, taken);
    } else {
      L3_FOR_USED_PARTS this->escaped_[part] = this->to_decode_[part];
    }
    if (any_of(this->escaped_)) this->decode_numbers(window, taken);
    return this->advance(taken);
  }

  L3_INLINE bool any_of(const Mask* masks) const {
    bool any = false;
    L3_FOR_USED_PARTS any = any || W::any(masks[part]);
    return any;
  }
};

}  // namespace l3
