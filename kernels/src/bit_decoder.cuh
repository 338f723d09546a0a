// Decodes a tile of a bit model with a warp of a GPU (section 24 of the spec). Processors have
// codec/src/engine/bit_loop.h.
#pragma once

#include "bit_context.cuh"
#include "engine/wavefront.h"

namespace l3 {

// A word of each step in shared memory, for as many steps as lane 0 is behind the last lane, and one more.
class BitDelay {
 public:
  L3_INLINE explicit BitDelay(uint4* first) : first_(reinterpret_cast<uint32_t*>(first)), at_(first_), end_(first_) {}

  L3_INLINE void clear(uint32_t steps) {
    for (uint32_t i = lane_number(); i < steps; i += kLanes) first_[i] = 0;
    end_ = first_ + CudaWordWarp::uniform(steps);
    next_ = after(at_);
    __syncwarp();
  }
  // Whether lane 0 is not behind the last lane. Then nothing needs to be stored.
  L3_INLINE bool is_empty() const { return end_ - first_ == 1; }
  L3_INLINE uint32_t oldest() const { return *next_; }
  L3_INLINE void store(uint32_t word) {
    if (lane_number() == 0) *at_ = word;
    at_ = next_;
    next_ = after(at_);
    __syncwarp();
  }

 private:
  L3_INLINE uint32_t* after(uint32_t* at) const { return at + 1 == end_ ? first_ : at + 1; }

  uint32_t *first_, *at_, *end_;
  uint32_t* next_ = nullptr;
};

template <class Context, class Sink>
class BitDecoder : Wavefront<CudaWordWarp, Sink> {
  using W = CudaWordWarp;
  using Front = Wavefront<W, Sink>;

 public:
  L3_INLINE BitDecoder(const TileShape& shape, const TileEntry& entry, const Context& context, Sink& sink,
                       BitDelay& delay, W::Classes& no_classes)
      : Front(shape, entry, sink, no_classes), context_(context), delay_(delay) {}

  L3_INLINE Fault decode() {
    this->load_states();
    if (!decode_bits()) return {Reason::dense_words, this->payload_bytes_};
    return this->check_end();
  }

 private:
  L3_INLINE bool decode_bits() {
    const auto way = this->start_lanes(delay_);
    for (uint32_t step = 0; step < way.steps; ++step) {
      const bool active = this->find_place(0).active;
      const uint32_t above = delay_.oldest();
      // With the frequency 0, an inactive lane decodes 0, and its state stays as it is.
      const uint32_t of_context = context_.frequency(near_, far_);
      const bool bit = decode_bit(active ? of_context : 0);
      const uint32_t bits = W::bits(bit);
      if (!take_words()) return false;
      this->sink_.put(step, 0, this->row_[0], this->column_[0], bit, active);
      this->next_column(0, way.period);
      keep(bits, above);
      this->sink_.end_step(step);
    }
    return true;
  }

  L3_INLINE bool decode_bit(uint32_t frequency) {
    uint32_t& state = this->state_[0].v;
    const uint32_t slot = state & (kProbabilities - 1), high = state >> kProbabilityBits;
    const bool bit = slot < frequency;
    const uint32_t if_one = frequency * high + slot, if_zero = state - frequency - frequency * high;
    state = bit ? if_one : if_zero;
    return bit;
  }

  // In most steps no lane takes a word.
  L3_INLINE bool take_words() {
    const bool takes = this->refills_[0] && W::below_floor(this->state_[0]);
    if (!W::any(takes)) return true;
    uint32_t taken = 0;
    W::refill(this->state_[0], takes, this->reader_.window(this->at_), taken);
    return this->advance(taken);
  }

  // Adds a step to the histories. `bits` has the bit of each lane, and the top three bits of `above` those of the lanes
  // above lane 0: the upper one is of the lane next to it.
  L3_INLINE void keep(uint32_t bits, uint32_t above) {
    if (delay_.is_empty()) {
      // They are bits of this step. With one or two lanes, some of them follow from others of them.
      above = last_three(bits, last_three(bits, last_three(bits, 0)));
    } else {
      delay_.store(last_three(bits, above));
    }
    const uint32_t four = __funnelshift_rc(above, bits, lane_number() + 1);
    far_ = __funnelshift_l(near_, far_, kBitRows);
    near_ = __funnelshift_l(four, near_, kBitRows);
  }
  // The bits of the last three lanes in the top bits. With one or two lanes, some of them are above lane 0.
  L3_INLINE uint32_t last_three(uint32_t bits, uint32_t above) const {
    return __funnelshift_rc(above, bits, this->lanes_);
  }

  const Context& context_;
  BitDelay& delay_;
  // Four bits for each of the last eight steps, and of the eight before them: of this lane and the three above it. The
  // lowest ones are of the last step, and of those the top one is the lane's own.
  uint32_t near_ = 0, far_ = 0;
};

}  // namespace l3
