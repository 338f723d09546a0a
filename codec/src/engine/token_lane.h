// Decodes a tile of one lane with a literal token model on a processor: small images such as digits have such tiles.
// One pixel after the other, in numbers and not in vectors, of which a lane would use one element. The rules are those
// of TokenLoop.
#pragma once

#include "engine/still_rows.h"
#include "engine/wavefront.h"

namespace l3 {

template <class W, class Sink>
class TokenLane : Wavefront<W, Sink> {
  using Base = Wavefront<W, Sink>;
  using typename Base::Classes;

 public:
  TokenLane(const TileShape& shape, const TileEntry& entry, const TokenTables& tables, Sink& sink, Classes& classes)
      : Base(shape, entry, sink, classes), tables_(tables) {}

  Fault decode() {
    this->load_states();
    if (!this->decode_token_blocks(tables_, rows_.blocks())) return {Reason::dense_words, payload_bytes_};
    if (tables_.still) rows_.turn(width_, height_, tables_.rows ? nullptr : &this->classes_);
    if (!decode_values()) return {Reason::dense_words, payload_bytes_};
    return this->check_end();
  }

 private:
  using Base::at_, Base::height_, Base::payload_bytes_, Base::sink_, Base::state_, Base::width_;

  struct Neighbours {
    uint32_t w, n, nw, ne, ww, nn, nne, nww;

    // The equalities of section 14.4.
    L3_INLINE uint32_t pattern() const {
      return uint32_t{w == n} | uint32_t{n == ne} << 1 | uint32_t{n == nw} << 2 | uint32_t{w == nw} << 3 |
             uint32_t{ww == w} << 4 | uint32_t{nn == n} << 5 | uint32_t{nne == ne} << 6 | uint32_t{nww == nw} << 7;
    }
  };

  bool decode_values() {
    sink_.save_states(0, at_, state_);
    sink_.begin(width_, height_, 1);
    alignas(64) uint32_t states[kLanes];
    for (uint32_t part = 0; part < W::kParts; ++part) W::store(states + part * W::kPartLanes, state_[part]);
    lane_state_ = states[0];
    const uint32_t period = dense_period(width_, 1);
    for (uint32_t y = 0; y < height_; ++y) {
      if (!decode_row(y, y * period)) return false;
      // The steps in which the lane waits.
      for (uint32_t x = width_; x < period && y + 1 < height_; ++x) sink_.end_step(y * period + x);
    }
    states[0] = lane_state_;
    for (uint32_t part = 0; part < W::kParts; ++part) state_[part] = W::load(states + part * W::kPartLanes);
    return true;
  }
  bool decode_row(uint32_t y, uint32_t step) {
    uint16_t* const here = values_[y % 3];
    const uint16_t *const above = values_[(y + 2) % 3], *const above_two = values_[(y + 1) % 3];
    Neighbours near{};
    for (uint32_t x = 0; x < width_; ++x) {
      // Section 13.3. Neighbours move on by a column; what is at an edge is corrected.
      near.ww = near.w;
      near.nww = near.nw;
      near.nw = near.n;
      if (x > 0) near.w = here[x - 1];
      near.n = y > 0 ? above[x] : near.w;
      if (x == 0) near.w = near.ww = near.n;
      if (x == 0 || y == 0) near.nw = near.nww = near.n;
      const bool is_last = x + 1 == width_;
      near.ne = is_last || y == 0 ? near.n : above[x + 1];
      near.nn = y > 1 ? above_two[x] : near.n;
      near.nne = y < 2 ? near.ne : is_last ? near.nn : above_two[x + 1];
      uint32_t value = near.n == near.nw ? near.w : near.n;
      if (!(tables_.still && rows_.is_still(x, y)) && !decode_pixel(near, !this->ending_.has(x, y), value))
        return false;
      here[x] = static_cast<uint16_t>(value);
      *sink_.place(step + x) = static_cast<uint16_t>(value ^ kValueBias);
      sink_.end_step(step + x);
    }
    return true;
  }
  // `takes`: whether the lane takes words after this pixel's symbols. Returns false if the payload has no more of them.
  L3_INLINE bool decode_pixel(const Neighbours& near, bool takes, uint32_t& value) {
    const uint8_t* words = this->reader_.window(at_);
    const uint8_t* const first = words;
    uint32_t match = kMatchNone;
    if (tables_.match) {
      match = decode_symbol(tables_.match_table[tables_.match_row[near.pattern()] * kMatchOctaves], takes, words);
    }
    if (match <= kMatchNw) {
      value = match == kMatchW ? near.w : match == kMatchN ? near.n : match == kMatchNe ? near.ne : near.nw;
    } else {
      uint32_t number = decode_symbol(tables_.literal_table[smaller(near.w, 255)], takes, words);
      if (number >= kDirectTokens) {
        const uint32_t count = raw_bits_of(number);
        number = first_of(number) | (lane_state_ & ((1u << count) - 1));
        lane_state_ >>= count;
        refill(takes, words);
      }
      value = number & ((1u << tables_.depth[0]) - 1);
    }
    return this->advance(static_cast<uint32_t>(words - first));
  }
  // As Wavefront does for lanes.
  L3_INLINE uint32_t decode_symbol(uint32_t table, bool takes, const uint8_t*& words) {
    constexpr uint32_t kSlots = kProbabilities / kTokenBuckets;
    const uint32_t slot = lane_state_ % kProbabilities, place = slot % kSlots;
    const Bucket bucket = tables_.buckets[table * kTokenBuckets + slot / kSlots];
    const uint32_t chosen = place < (bucket.own >> 16 & 0xFF) ? bucket.own & 0xFF000FFF : bucket.other;
    const uint32_t number = ((chosen >> 12) + place) % kProbabilities;
    lane_state_ = chosen % kProbabilities * (lane_state_ >> kProbabilityBits) + number;
    refill(takes, words);
    return chosen >> 24;
  }
  L3_INLINE void refill(bool takes, const uint8_t*& words) {
    const bool is_low = takes & (lane_state_ < kStateFloor);
    const uint32_t filled = lane_state_ << 16 | load_u16(words);
    lane_state_ = is_low ? filled : lane_state_;
    words += 2 * uint32_t{is_low};
  }

  const TokenTables& tables_;
  uint32_t lane_state_ = 0;
  uint16_t values_[3][kMaxTileEdge];  // of the last rows, without the bias
  StillRows rows_;
};

}  // namespace l3
