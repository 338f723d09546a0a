// Decodes a tile of few lanes with a literal token model on a processor: small images such as digits have such tiles.
// One pixel after the other, in numbers and not in vectors, of which the lanes would use few elements. The rules are
// those of TokenLoop.
#pragma once

#include "engine/still_rows.h"
#include "engine/wavefront.h"

namespace l3 {

template <class W, uint32_t kCount, class Sink>
class TokenLanes : Wavefront<W, Sink> {
  using Base = Wavefront<W, Sink>;
  using typename Base::Classes;

 public:
  TokenLanes(const TileShape& shape, const TileEntry& entry, const TokenTables& tables, Sink& sink, Classes& classes)
      : Base(shape, entry, sink, classes), tables_(tables) {}

  Fault decode() {
    this->load_states();
    if (!this->decode_token_blocks(tables_, still_rows_.blocks())) return {Reason::dense_words, payload_bytes_};
    if (tables_.still) still_rows_.turn(width_, height_, tables_.rows ? nullptr : &this->classes_);
    if (!decode_values()) return {Reason::dense_words, payload_bytes_};
    return this->check_end();
  }

 private:
  using Base::at_, Base::ending_, Base::height_, Base::payload_bytes_, Base::sink_, Base::state_, Base::width_;

  // The rows that are needed at a time, a power of two. Each has margins.
  static constexpr uint32_t kRows = kCount == 1 ? 4 : 4 * kCount, kMargin = 2;

  // A lane, and its pixel in a step. All values have the bias.
  struct Lane {
    uint32_t state, x, y;
    uint32_t w, ww;
    uint16_t *here, *above, *above_two;
    uint64_t still;   // a bit for each segment of the row
    uint32_t ending;  // the column from which on the lane takes no words
    uint32_t value, number;

    L3_INLINE bool is_still() const { return (still >> (x / kBlockEdge) & 1) != 0; }
  };
  struct Neighbours {
    uint32_t w, n, nw, ne, ww, nn, nne, nww;

    L3_INLINE explicit Neighbours(const Lane& lane)
        : w(lane.w), n(w), nw(w), ne(w), ww(lane.ww), nn(w), nne(w), nww(w) {
      if (lane.y == 0) return;
      const uint16_t *const above = lane.above + lane.x, *const above_two = lane.above_two + lane.x;
      n = above[0];
      nw = *(above - 1);
      nww = *(above - 2);
      ne = above[1];
      nn = above_two[0];
      nne = above_two[1];
    }
    // The equalities of section 14.4. Those with W are known last.
    L3_INLINE uint32_t pattern() const {
      const uint32_t known = uint32_t{n == ne} << 1 | uint32_t{n == nw} << 2 | uint32_t{nn == n} << 5 |
                             uint32_t{nne == ne} << 6 | uint32_t{nww == nw} << 7;
      return known | (uint32_t{w == n} | uint32_t{w == nw} << 3 | uint32_t{ww == w} << 4);
    }
    // What a match repeats. Without branches, which no processor predicts.
    L3_INLINE uint32_t repeated(uint32_t match) const {
      static_assert(kMatchW == 0 && kMatchN == 1 && kMatchNe == 2 && kMatchNw == 3);
      return static_cast<uint16_t>((w | uint64_t{n} << 16 | uint64_t{ne} << 32 | uint64_t{nw} << 48) >>
                                   (16 * (match % 4)));
    }
    L3_INLINE uint32_t still() const { return n == nw ? w : n; }
  };

  uint16_t* row(uint32_t y) { return values_[y % kRows] + kMargin; }

  bool decode_values() {
    sink_.save_states(0, at_, state_);
    sink_.begin(width_, height_, kCount);
    for (uint32_t i = 0; i < kMatchPatterns && tables_.match; ++i) {
      first_[i] = static_cast<uint16_t>(tables_.match_table[tables_.match_row[i] * kMatchOctaves] * kTokenBuckets);
    }
    alignas(64) uint32_t states[kLanes];
    for (uint32_t part = 0; part < W::kParts; ++part) W::store(states + part * W::kPartLanes, state_[part]);
    Lane lanes[kCount] = {};
    for (uint32_t l = 0; l < kCount; ++l) lanes[l].state = states[l];
    if constexpr (kCount == 1) {
      if (!decode_rows(lanes[0])) return false;
    } else {
      if (!decode_steps(lanes)) return false;
    }
    for (uint32_t l = 0; l < kCount; ++l) states[l] = lanes[l].state;
    for (uint32_t part = 0; part < W::kParts; ++part) state_[part] = W::load(states + part * W::kPartLanes);
    return true;
  }

  // ---- one lane: a segment after the other

  bool decode_rows(Lane& lane) {
    for (; lane.y < height_; ++lane.y) {
      begin_row(lane);
      for (lane.x = 0; lane.x < width_;) {
        if (!decode_segment(lane, smaller(lane.x + kBlockEdge, width_))) return false;
      }
      end_row(lane);
    }
    return true;
  }
  bool decode_segment(Lane& all, uint32_t end) {
    Lane lane = all;  // a copy that need not be in memory
    const uint8_t* words = this->reader_.window(at_);
    const uint8_t* const first_word = words;
    if (lane.is_still()) {
      for (; lane.x < end; ++lane.x) keep(lane, Neighbours(lane).still());
    } else {
      for (; lane.x < end; ++lane.x) {
        if (!decode_match(lane, words) && decode_token(lane, words)) decode_raw(lane, words);
        keep(lane, lane.value);
      }
    }
    all = lane;
    return this->advance(static_cast<uint32_t>(words - first_word));
  }

  // ---- several lanes: a step after the other, as TokenLoop does

  bool decode_steps(Lane (&lanes)[kCount]) {
    const uint32_t period = dense_period(width_, kCount), steps = dense_steps(width_, height_, kCount);
    for (uint32_t l = 1; l < kCount; ++l) {
      // Each lane begins two steps after the one above it. Until then it is above the tile.
      lanes[l].x = period - 2 * l;
      lanes[l].y = l - kCount;
    }
    for (uint32_t step = 0; step < steps; ++step) {
      if (!decode_step(lanes)) return false;
      for (Lane& lane : lanes) {
        if (++lane.x < period) continue;
        lane.x = 0;
        lane.y += kCount;
      }
    }
    return true;
  }
  L3_INLINE bool decode_step(Lane (&lanes)[kCount]) {
    const uint8_t* words = this->reader_.window(at_);
    const uint8_t* const first_word = words;
    uint32_t escaped = 0, raw = 0;  // a bit for each lane
    for (uint32_t l = 0; l < kCount; ++l) {
      Lane& lane = lanes[l];
      if (!is_inside(lane)) continue;
      if (lane.x == 0) begin_row(lane);
      if (lane.is_still()) {
        lane.value = Neighbours(lane).still();
      } else if (!decode_match(lane, words)) {
        escaped |= 1u << l;
      }
    }
    for (uint32_t l = 0; l < kCount; ++l) {
      if ((escaped >> l & 1) != 0 && decode_token(lanes[l], words)) raw |= 1u << l;
    }
    for (uint32_t l = 0; l < kCount; ++l) {
      if ((raw >> l & 1) != 0) decode_raw(lanes[l], words);
    }
    for (Lane& lane : lanes) {
      if (!is_inside(lane)) continue;
      keep(lane, lane.value);
      if (lane.x + 1 == width_) end_row(lane);
    }
    return this->advance(static_cast<uint32_t>(words - first_word));
  }
  L3_INLINE bool is_inside(const Lane& lane) const { return lane.x < width_ && lane.y < height_; }

  // ---- rows and pixels

  // Section 13.3: what is beyond the tile's edges.
  L3_INLINE void begin_row(Lane& lane) {
    lane.here = row(lane.y);
    lane.w = lane.ww = kValueBias;
    if (lane.y > 0) {
      lane.above = row(lane.y - 1);
      lane.above_two = row(lane.y - (lane.y > 1 ? 2 : 1));
      lane.w = lane.ww = lane.above[-1] = lane.above[-2] = lane.above[0];
    }
    lane.still = tables_.still ? still_rows_.from(0, lane.y) : 0;
    lane.ending = lane.y >= ending_.row ? ending_.column : width_;
  }
  L3_INLINE void end_row(const Lane& lane) {
    lane.here[width_] = lane.here[width_ - 1];
    sink_.put_row(lane.y, lane.here);
  }
  L3_INLINE static void keep(Lane& lane, uint32_t value) {
    lane.ww = lane.w;
    lane.w = value;
    lane.here[lane.x] = static_cast<uint16_t>(value);
  }
  // Decodes what a pixel repeats. Returns false if it repeats nothing.
  L3_INLINE bool decode_match(Lane& lane, const uint8_t*& words) const {
    if (!tables_.match) return false;
    const Neighbours near(lane);
    const uint32_t match = decode_symbol(lane, first_[near.pattern()], words);
    lane.value = near.repeated(match);
    return match <= kMatchNw;
  }
  // Returns whether raw bits follow.
  L3_INLINE bool decode_token(Lane& lane, const uint8_t*& words) const {
    const uint32_t table = tables_.literal_table[smaller(lane.w ^ kValueBias, 255)];
    lane.number = decode_symbol(lane, table * kTokenBuckets, words);
    lane.value = value_of(lane.number);
    return lane.number >= kDirectTokens;
  }
  L3_INLINE void decode_raw(Lane& lane, const uint8_t*& words) const {
    const uint32_t count = raw_bits_of(lane.number);
    lane.value = value_of(first_of(lane.number) | (lane.state & ((1u << count) - 1)));
    lane.state >>= count;
    refill(lane, words);
  }
  L3_INLINE uint32_t value_of(uint32_t number) const { return (number & ((1u << tables_.depth[0]) - 1)) ^ kValueBias; }
  // As Wavefront does for lanes.
  L3_INLINE uint32_t decode_symbol(Lane& lane, uint32_t first_bucket, const uint8_t*& words) const {
    constexpr uint32_t kSlots = kProbabilities / kTokenBuckets;
    const uint32_t slot = lane.state % kProbabilities, place = slot % kSlots;
    const Bucket bucket = tables_.buckets[first_bucket + slot / kSlots];
    const uint32_t chosen = place < (bucket.own >> 16 & 0xFF) ? bucket.own & 0xFF000FFF : bucket.other;
    const uint32_t number = ((chosen >> 12) + place) % kProbabilities;
    lane.state = chosen % kProbabilities * (lane.state >> kProbabilityBits) + number;
    refill(lane, words);
    return chosen >> 24;
  }
  L3_INLINE static void refill(Lane& lane, const uint8_t*& words) {
    const bool is_low = (lane.x < lane.ending) & (lane.state < kStateFloor);
    const uint32_t filled = lane.state << 16 | load_u16(words);
    lane.state = is_low ? filled : lane.state;
    words += 2 * uint32_t{is_low};
  }

  const TokenTables& tables_;
  uint16_t first_[kMatchPatterns];  // the first bucket of each pattern of equalities
  uint16_t values_[kRows][kMargin + kMaxTileEdge + 1];
  StillRows still_rows_;
};

}  // namespace l3
