// Decodes a tile with a token model, on a processor, lane after lane (section 15 of the spec). For tiles in which nearly
// every pixel repeats a neighbour: the processor then guesses which, so that pixels need not wait for those before them,
// and still blocks take hardly any time. Where pixels are hard to guess, TokenLoop is quicker.
//
// The rows that lanes are in, and those above them, are kept in a ring. Pixels of still blocks are filled in once a lane
// needs them, or once the lane leaves the block. *Events* are the steps in which a lane begins or ends a row, or goes
// from still blocks to others or back. Between events the same lanes are busy.
#pragma once

#include <cstring>

#include "engine/wavefront.h"
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace l3 {

// For models with the flags match and literal.
template <class W, class Rows>
class RepeatLoop : Wavefront<W, Rows> {
  using Base = Wavefront<W, Rows>;
  using typename Base::Classes;
  using Base::kParts, Base::at_, Base::classes_, Base::height_, Base::lanes_, Base::payload_, Base::payload_bytes_,
      Base::state_, Base::width_;

 public:
  RepeatLoop(const TileShape& shape, const TileEntry& entry, const TokenTables& tables, Rows& rows, Classes& classes)
      : Base(shape, entry, rows, classes),
        tables_(tables),
        period_(dense_period(shape.width, lanes_)),
        used_lanes_(smaller(lanes_, height_)),
        ring_rows_(lanes_ + kRowsAbove),
        most_(static_cast<uint16_t>((1u << tables.depth[0]) - 1)) {}

  Fault decode() {
    this->load_states();
    if (!this->decode_token_blocks(tables_, rows_) || !decode_values()) return {Reason::dense_words, payload_bytes_};
    return this->check_end();
  }

 private:
  static constexpr uint32_t kMargin = 4;     // pixels beside a row
  static constexpr uint32_t kRowsAbove = 2;  // that are still needed when a lane begins its next row
  static constexpr uint32_t kAllEqual = kMatchPatterns - 1;
  static constexpr uint32_t kPitch = kMaxTileEdge + 2 * kMargin;
  static constexpr uint32_t kNever = UINT32_MAX, kNone = UINT32_MAX;

  struct Lane {
    uint32_t state;
    uint32_t begin;       // the step of the row's first pixel
    uint32_t refill_end;  // the lane takes words before this column
    uint16_t* values;     // of the row
    const uint16_t *above, *above_two;
    // The neighbours of the pixel before, from the lowest bits on: NWW, NW, N, NE; W of the pixel before, W of this
    // one, NN, NNE.
    uint64_t near_above, near_beside;
    uint32_t level;  // if they are all the same, and the next pixel's W too: their value; else kNone
    uint32_t row;
    uint32_t filled;  // in still blocks: the pixels before this column are there
  };

  bool decode_values() {
    prepare();
    this->sink_.save_states(0, at_, state_);
    uint32_t states[kLanes];
    for (uint32_t part = 0; part < kParts; ++part) W::store(states + part * W::kPartLanes, state_[part]);
    for (uint32_t l = 0; l < kLanes; ++l) {
      lane_[l].state = states[l];
      lane_[l].row = l;
      next_[l] = l < used_lanes_ ? 2 * l : kNever;
    }
    for (uint32_t step = 0; step != kNever;) {
      uint32_t next = kNever;
      for (uint32_t l = 0; l < used_lanes_; ++l) {
        if (next_[l] == step) next_[l] = change(l, step);
        next = smaller(next, next_[l]);
      }
      if (busy_ != 0 && !decode_steps(step, next)) return false;
      step = next;
    }
    for (uint32_t l = 0; l < kLanes; ++l) states[l] = lane_[l].state;
    for (uint32_t part = 0; part < kParts; ++part) state_[part] = W::load(states + part * W::kPartLanes);
    return true;
  }

  void prepare() {
    for (uint32_t i = 0; i < kMatchPatterns; ++i) {
      constexpr uint32_t kPlaces[8] = {4, 3, 5, 6, 7, 2, 1, 0};  // of the bits of pattern_of() in the model's patterns
      uint32_t pattern = 0;
      for (uint32_t bit = 0; bit < 8; ++bit) pattern |= (i >> bit & 1) << kPlaces[bit];
      match_[i] = tables_.buckets + kTokenBuckets * tables_.match_table[tables_.match_row[pattern] * kMatchOctaves];
    }
    const uint32_t across = this->blocks_across();
    log_rows_ = tables_.rows ? 0 : 4;
    for (uint32_t segment = across * (((height_ - 1) >> log_rows_) + 1); segment-- > 0;) {
      const uint32_t right = segment % across + 1;
      const bool goes_on = right < across && is_still(segment) == is_still(segment + 1);
      run_end_[segment] = static_cast<uint8_t>(goes_on ? run_end_[segment + 1] : right);
    }
  }
  // Segments are rows of blocks, or whole blocks if no rows are still.
  bool is_still(uint32_t segment) const {
    const uint32_t across = this->blocks_across(), y = segment / across << log_rows_;
    const uint32_t block = (y >> 4) * across + segment % across;
    return tables_.still && ((classes_[block] & kStillBlock) != 0 || (tables_.rows && (rows_[block] >> y % kBlockEdge & 1) != 0));
  }

  // ---- events

  // A lane begins or ends a row or a run of blocks. Returns the step of its next event.
  L3_STAGE uint32_t change(uint32_t l, uint32_t step) {
    Lane& lane = lane_[l];
    if ((in_row_ >> l & 1) == 0) return begin_row(l, step);
    const uint32_t x = step - lane.begin;
    fill(l, x);
    busy_ &= ~(1u << l);
    still_ &= ~(1u << l);
    if (x < width_) return begin_run(l, step);
    lane.values[width_] = lane.values[width_ - 1];
    this->sink_.store(lane.row, width_, lane.values);
    in_row_ &= ~(1u << l);
    if (lane.row + lanes_ >= height_) return kNever;
    lane.row += lanes_;
    return period_ == width_ ? begin_row(l, step) : step + (period_ - width_);
  }
  uint32_t begin_row(uint32_t l, uint32_t step) {
    Lane& lane = lane_[l];
    in_row_ |= 1u << l;
    lane.begin = step;
    lane.refill_end = lane.row >= this->ending_.row ? this->ending_.column : width_;
    lane.values = row_at(lane.row);
    if (lane.row == 0) {
      lane.values[-1] = lane.values[-2] = kValueBias;
      lane.above = lane.above_two = lane.values;  // not used
    } else {
      uint16_t* const above = row_at(lane.row - 1);
      fill_above(l, 1);
      lane.values[-1] = lane.values[-2] = above[-1] = above[-2] = above[0];
      lane.above = above;
      lane.above_two = lane.row == 1 ? above : row_at(lane.row - 2);
    }
    return begin_run(l, step);
  }
  uint32_t begin_run(uint32_t l, uint32_t step) {
    Lane& lane = lane_[l];
    const uint32_t x = step - lane.begin, block = (lane.row >> log_rows_) * this->blocks_across() + (x >> 4);
    if (is_still(block)) {
      still_ |= 1u << l;
      lane.filled = x;
    } else {
      busy_ |= 1u << l;
      fill_above(l, x + 1);
      // As if the pixel before had been decoded.
      lane.level = kNone;
      const uint16_t* const above = lane.above + x;
      lane.near_above = four(0, above[-2], above[-1], above[0]);
      const uint16_t* const values = lane.values + x;
      lane.near_beside = four(values[-2], values[-1], 0, lane.above_two[x]);
    }
    return step + smaller(run_end_[block] * kBlockEdge, width_) - x;
  }
  uint16_t* row_at(uint32_t row) { return ring_ + row % ring_rows_ * kPitch + kMargin; }
  L3_INLINE static uint64_t four(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
    return a | b << 16 | c << 32 | d << 48;
  }

  // ---- still blocks (section 15.4)

  // Fills in the pixels of still blocks before column `end`, in the row of a lane or in the one above it.
  L3_STAGE void fill(uint32_t l, uint32_t end) {
    Lane& lane = lane_[l];
    if ((still_ >> l & 1) == 0 || lane.filled >= end) return;
    uint16_t* const values = lane.values;
    uint16_t w = (values - 1)[lane.filled];
    uint32_t x = lane.filled;
    lane.filled = end;
    if (lane.row == 0) {
      for (; x < end; ++x) values[x] = w;
      return;
    }
    fill_above(l, end);
    const uint16_t *const n = lane.above, *const nw = n - 1;
    for (; x + W::kRecords <= end; x += W::kRecords) {
      const auto same = W::same(W::load_records(n + x), W::load_records(nw + x));
      if (!W::any(W::without(W::all_records(0xFFFF), same))) {
        W::store_records(values + x, W::all_records(w));
      } else {
        for (uint32_t i = x; i < x + W::kRecords; ++i) values[i] = w = n[i] == nw[i] ? w : n[i];
      }
    }
    for (; x < end; ++x) values[x] = w = n[x] == nw[x] ? w : n[x];
  }
  L3_INLINE void fill_above(uint32_t l, uint32_t end) {
    const uint32_t before = l == 0 ? lanes_ - 1 : l - 1;
    if (lane_[l].row > 0 && lane_[before].row == lane_[l].row - 1) fill(before, end);
  }

  // ---- other blocks

  // Decodes the pixels of busy lanes in steps without an event.
  L3_INLINE bool decode_steps(uint32_t step, uint32_t end) {
    // Busy lanes below still ones, which may be below busy ones: in three steps a still lane gets no further than to
    // pixels whose row above is there.
    const uint32_t below_still = busy_ & (still_ << 1 | (still_ >> (lanes_ - 1) & 1));
    const bool is_top = (busy_ & 1) != 0 && lane_[0].row == 0;
    while (step < end) {
      uint32_t stop = end;
      if (below_still != 0) {
        stop = smaller(end, step + 3);
        for (uint32_t m = below_still; m != 0; m &= m - 1) {
          const uint32_t l = static_cast<uint32_t>(__builtin_ctz(m));
          fill_above(l, smaller(stop - lane_[l].begin + 1, width_));
        }
      }
      for (; step < stop; ++step) {
        const uint32_t escaped = is_top ? decode_matches<true>(step) : decode_matches<false>(step);
        if (escaped != 0) decode_tokens(step, escaped);
      }
      if (at_ > payload_bytes_) return false;
    }
    return true;
  }

  // Decodes what the pixels of a step repeat. Returns the lanes that escaped, whose pixels get any value.
  template <bool kTop>
  L3_STAGE uint32_t decode_matches(uint32_t step) {
    uint32_t escaped = 0;
    for (uint32_t m = busy_; m != 0; m &= m - 1) {
      const uint32_t l = static_cast<uint32_t>(__builtin_ctz(m));
      Lane& lane = lane_[l];
      const uint32_t x = step - lane.begin;
      const uint32_t ne = lane.above[x + 1], nne = lane.above_two[x + 1];
      const bool is_level = ((ne ^ lane.level) | (nne ^ lane.level)) == 0;
      if (is_level) [[likely]] {
        const uint32_t symbol = decode_symbol(lane, x, match_[kAllEqual]);
        if (symbol < kMatchNone) [[likely]] {
          lane.values[x] = static_cast<uint16_t>(ne);
          continue;
        }
        escaped |= 1u << l;
        lane.level = kNone;
        continue;
      }
      uint64_t above = lane.near_above >> 16 | uint64_t{ne} << 48;
      uint64_t beside = (lane.near_beside & 0xFFFFFFFF) | lane.near_beside >> 48 << 32 |
                        uint64_t{nne} << 48;
      const uint32_t w = beside >> 16 & 0xFFFF;
      if (kTop && l == 0) {  // in the first row, these neighbours are W
        above = four(w, w, w, w);
        beside = (beside & 0xFFFFFFFF) | uint64_t{w} << 32 | uint64_t{w} << 48;
      }
      const uint32_t pattern = pattern_of(above, beside);
      const uint32_t symbol = decode_symbol(lane, x, match_[pattern]);
      // Branches, which the processor predicts: the next pixels need not wait for this symbol.
      uint32_t value = w;
      if (symbol != kMatchW) [[unlikely]] {
        if (symbol == kMatchN) {
          value = above >> 32 & 0xFFFF;
        } else if (symbol == kMatchNe) {
          value = above >> 48 & 0xFFFF;
        } else if (symbol == kMatchNw) {
          value = above >> 16 & 0xFFFF;
        } else {
          escaped |= 1u << l;
        }
        asm volatile("" : "+r"(value));
      }
      lane.near_above = above;
      lane.near_beside = (beside & ~uint64_t{0xFFFFFFFF}) | w | uint64_t{value} << 16;
      lane.values[x] = static_cast<uint16_t>(value);
      lane.level = pattern == kAllEqual && symbol < kMatchNone && !kTop ? value : kNone;
    }
    return escaped;
  }
  // Decodes the values of these lanes' pixels (sections 15.2 and 15.3).
  L3_STAGE void decode_tokens(uint32_t step, uint32_t escaped) {
    uint32_t numbers[kLanes];
    uint32_t raw = 0;
    for (uint32_t m = escaped; m != 0; m &= m - 1) {
      const uint32_t l = static_cast<uint32_t>(__builtin_ctz(m));
      Lane& lane = lane_[l];
      const uint32_t w = static_cast<uint32_t>(lane.near_beside & 0xFFFF) ^ kValueBias;  // the pixel has moved it down
      const uint32_t table = tables_.literal_table[smaller(w, kLiteralContexts - 1)];
      numbers[l] = decode_symbol(lane, step - lane.begin, tables_.buckets + kTokenBuckets * table);
      if (numbers[l] >= kDirectTokens) raw |= 1u << l;
    }
    for (uint32_t m = raw; m != 0; m &= m - 1) {
      const uint32_t l = static_cast<uint32_t>(__builtin_ctz(m));
      Lane& lane = lane_[l];
      const uint32_t bits = raw_bits_of(numbers[l]);
      numbers[l] = first_of(numbers[l]) + (lane.state & ((1u << bits) - 1));
      lane.state >>= bits;
      refill(lane, step - lane.begin);
    }
    for (uint32_t m = escaped; m != 0; m &= m - 1) {
      const uint32_t l = static_cast<uint32_t>(__builtin_ctz(m));
      Lane& lane = lane_[l];
      const uint32_t value = (numbers[l] & most_) ^ kValueBias;
      lane.near_beside = (lane.near_beside & ~uint64_t{0xFFFF0000}) | value << 16;
      lane.values[step - lane.begin] = static_cast<uint16_t>(value);
    }
  }

  L3_INLINE uint32_t decode_symbol(Lane& lane, uint32_t x, const Bucket* table) {
    const uint32_t state = lane.state, slot = state & (kProbabilities - 1);
    constexpr uint32_t kSlots = kProbabilities / kTokenBuckets;
    const Bucket bucket = table[slot / kSlots];
    const uint32_t place = slot % kSlots;
    const uint32_t chosen = place < (bucket.own >> 16 & 0xFF) ? bucket.own & 0xFF000FFF : bucket.other;
    lane.state = (chosen & (kProbabilities - 1)) * (state >> kProbabilityBits) +
                 (((chosen >> 12) + place) & (kProbabilities - 1));
    refill(lane, x);
    return chosen >> 24;
  }
  // A lane whose state is low takes a word. Past the payload's end it takes zeros: decode_steps() notices.
  L3_INLINE void refill(Lane& lane, uint32_t x) {
    if (lane.state >= kStateFloor || x >= lane.refill_end) [[likely]] return;
    const uint32_t word = at_ + 2 <= payload_bytes_ ? load_u16(payload_ + at_) : 0;
    lane.state = lane.state << 16 | word;
    at_ += 2;
  }

  // Which neighbours are equal, a bit for each: WW and W, W and NW, NN and N, NNE and NE, NWW and NW, NW and N, N and
  // NE, W and N.
  L3_INLINE static uint32_t pattern_of(uint64_t above, uint64_t beside) {
    const uint64_t first = ((above ^ beside) & ~uint64_t{0xFFFF}) | ((beside ^ beside >> 16) & 0xFFFF);
    const uint64_t second = (above ^ (above >> 16 | beside >> 16 << 48)) ^ (above >> 32 ^ above >> 48) << 48;
#if defined(__SSE2__)
    const __m128i both =
        _mm_set_epi64x(static_cast<long long>(second), static_cast<long long>(first));  // NOLINT(google-runtime-int)
    const __m128i equal = _mm_cmpeq_epi16(both, _mm_setzero_si128());
    return static_cast<uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(equal, _mm_setzero_si128())));
#else
    return zeros_of(first) | zeros_of(second) << 4;
#endif
  }
  // Which of four numbers of 16 bits are zero, a bit for each.
  L3_INLINE static uint32_t zeros_of(uint64_t numbers) {
    constexpr uint64_t kLow = 0x7FFF7FFF7FFF7FFF;
    const uint64_t zeros = ~(((numbers & kLow) + kLow) | numbers | kLow) >> 15;
    return static_cast<uint32_t>(zeros * 0x0001000200040008 >> 48) & 15;
  }

  const TokenTables& tables_;
  const uint32_t period_, used_lanes_, ring_rows_;
  const uint16_t most_;
  uint32_t in_row_ = 0, busy_ = 0, still_ = 0;  // lanes, a bit for each
  uint32_t next_[kLanes];                       // the steps of their next events
  Lane lane_[kLanes];
  const Bucket* match_[kMatchPatterns];  // the table of each pattern
  // The column of blocks after the run of still blocks, or of others, that a block is in.
  uint32_t log_rows_ = 4;
  uint16_t rows_[kMaxTileEdge / kBlockEdge * (kMaxTileEdge / kBlockEdge)];
  uint8_t run_end_[kMaxTileEdge * (kMaxTileEdge / kBlockEdge) + 1];
  alignas(64) uint16_t ring_[(kLanes + kRowsAbove) * kPitch];
};

}  // namespace l3
