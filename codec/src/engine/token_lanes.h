// Decodes a tile of two or four lanes with a token model of one channel on a processor, as TokenSingleLane does for one
// lane. A lane is two columns behind the one above it, so what depends on the rows above is computed pixel by pixel.
#pragma once

#include <algorithm>

#include "engine/few_lanes.h"

#if defined(__clang__)
#define L3_UNROLL_LANES _Pragma("clang loop unroll(full)") for (uint32_t l = 0; l < kCount; ++l)
#else
#define L3_UNROLL_LANES _Pragma("GCC unroll 4") for (uint32_t l = 0; l < kCount; ++l)
#endif

namespace l3 {

template <class W, uint32_t kCount, TokenUse kUse, class Sink>
class TokenLanes : public FewLanes<TokenLanes<W, kCount, kUse, Sink>, W, kUse, Sink> {
  using Base = FewLanes<TokenLanes<W, kCount, kUse, Sink>, W, kUse, Sink>;
  friend Base;

 public:
  using Base::Base;

 private:
  using Base::at_, Base::ending_, Base::height_, Base::sink_, Base::state_, Base::width_;
  using Base::kLiteral, Base::kHasHoles, Base::kBefore, Base::kBehind;
  using Base::tables_, Base::context_, Base::pitch_, Base::hole_, Base::has_blocks_, Base::still_rows_;

  // When lane 0 begins a row, the last kKept rows are needed.
  static constexpr uint32_t kKept = kCount + 1;
  static constexpr uint32_t kMostNumbers = (kKept + kCount + 1) * (kBefore + kMaxTileEdge + kBehind);
  // What is known to the left of the first pixel: N is NE, and N is NW.
  static constexpr uint32_t kLeftEdge = 6;
  // Decoded in one window. Each takes at most three words.
  static constexpr uint32_t kMostPixels = 64;
  static_assert(6 * kMostPixels <= W::Reader::kReach);

  // Where a pixel's error is, relative to its value.
  static constexpr ptrdiff_t kError = kMostNumbers;

  // A lane, and its next pixel. All values have the bias.
  struct Lane {
    LaneCoder coder;
    uint32_t w;
    uint32_t equal, known;  // the pixel's equalities with W or WW, and the others of the pixel before
    uint16_t* pixel;
    uint32_t x, y;
    // Unless the model is literal: WW, the errors of W and WW, the class of the block, and the held value.
    uint32_t ww, error, error_ww, block_class, held_value;
  };

  bool decode_values() {
    sink_.save_states(0, at_, state_);
    sink_.begin(width_, height_, kCount);
    alignas(64) uint32_t states[kLanes];
    for (uint32_t part = 0; part < W::kParts; ++part) W::store(states + part * W::kPartLanes, state_[part]);
    Lane lanes[kCount] = {};
    for (uint32_t l = 0; l < kCount; ++l) lanes[l].coder.state = states[l];
    if (!decode_steps(lanes)) return false;
    for (uint32_t l = 0; l < kCount; ++l) states[l] = lanes[l].coder.state;
    for (uint32_t part = 0; part < W::kParts; ++part) state_[part] = W::load(states + part * W::kPartLanes);
    return true;
  }

  // ---- the way of the lanes

  bool decode_steps(Lane (&lanes)[kCount]) {
    const uint32_t period = dense_period(width_, kCount), steps = dense_steps(width_, height_, kCount);
    for (uint32_t l = 0; l < kCount; ++l) {
      // Each lane begins two steps after the one above it. Until then it is above the tile.
      lanes[l].x = l == 0 ? 0 : period - 2 * l;
      lanes[l].y = l == 0 ? 0 : l - kCount;
    }
    next_row_ = values_ + kBefore + static_cast<int32_t>(kKept) * pitch_;
    // In the steps of a run, no lane begins or ends its row, or its ending.
    for (uint32_t step = 0, count; step < steps; step += count) {
      uint32_t active = 0, still = 0;  // a bit for each lane
      count = smaller(steps - step, kMostPixels / kCount);
      for (uint32_t l = 0; l < kCount; ++l) {
        Lane& lane = lanes[l];
        if (lane.x == period) {
          lane.x = 0;
          lane.y += kCount;
        }
        if (lane.y < height_ && lane.x < width_) {
          if (lane.x == 0) begin_row(lanes, l);
          const bool has_ending = lane.y >= ending_.row, ends = has_ending && lane.x >= ending_.column;
          lane.coder.floor = ends ? 0 : kStateFloor;
          count = smaller(count, (has_ending && !ends ? smaller(ending_.column, width_) : width_) - lane.x);
          if (has_blocks_) {
            count = smaller(count, kBlockEdge - lane.x % kBlockEdge);
            if (tables_.still && still_rows_.is_still(lane.x, lane.y)) still |= 1u << l;
            const uint32_t block = lane.y / kBlockEdge * this->blocks_across() + lane.x / kBlockEdge;
            lane.block_class = this->classes_[block] & (kMaxClasses - 1);
          }
          active |= 1u << l;
        } else {
          count = smaller(count, (lane.y >= height_ && lane.x < width_ ? width_ : period) - lane.x);
        }
      }
      const bool is_first = (active & 1) != 0 && lanes[0].y == 0;
      if (active == still) {
        copy_still(lanes, still, count);
      } else if (!(is_first ? run<true>(lanes, active, still, count) : run<false>(lanes, active, still, count))) {
        return false;
      }
      for (uint32_t l = 0; l < kCount; ++l) {
        lanes[l].x += count;
        if ((active >> l & 1) != 0 && lanes[l].x == width_) end_row(lanes[l]);
      }
    }
    return true;
  }

  // ---- rows

  // Section 13.3: what is beyond the tile's edges.
  void begin_row(Lane (&lanes)[kCount], uint32_t l) {
    if (l == 0) make_room(lanes);
    Lane& lane = lanes[l];
    lane.pixel = next_row_;
    next_row_ += pitch_;
    lane.equal = kWithW;
    lane.w = kValueBias;
    lane.error = 0;
    if (lane.y > 0) {
      uint16_t* const above = lane.pixel - pitch_;
      lane.w = above[-1] = above[-2] = above[0];
      if (!kLiteral) lane.error = above[kError - 1] = above[kError - 2] = above[kError];
      lane.known = kLeftEdge | uint32_t{above[0] == *(above - pitch_)} << 6;
    }
    lane.pixel[-1] = static_cast<uint16_t>(lane.w);
    lane.ww = lane.w;
    lane.error_ww = lane.error;
    lane.held_value = kValueBias;
    if (!kLiteral) lane.pixel[kError - 1] = static_cast<uint16_t>(lane.error);
  }
  // Moves rows to where memory begins if a row of each lane does not fit behind them.
  L3_INLINE void make_room(Lane (&lanes)[kCount]) {
    uint16_t* const begin = values_ + kBefore + static_cast<int32_t>(kKept) * pitch_;
    if (next_row_ + static_cast<int32_t>(kCount) * pitch_ <= values_ + kMostNumbers) return;
    const ptrdiff_t shift = begin - next_row_;
    std::copy(values_ - shift, next_row_, values_);
    if (!kLiteral) std::copy(values_ - shift + kError, next_row_ + kError, values_ + kError);
    for (Lane& lane : lanes) lane.pixel += shift;
    next_row_ = begin;
  }
  void end_row(Lane& lane) {
    uint16_t* const end = lane.pixel;
    end[0] = end[-1];
    if (!kLiteral) end[kError] = end[kError - 1];
    if (lane.y == 0) {
      *(end - pitch_) = end[-1];
      if (!kLiteral) (end - pitch_)[kError] = end[kError - 1];
    }
    sink_.put_row(lane.y, end - width_);
  }
  // Keeps a pixel. In row 1, NN is N: so the first row is also put above itself.
  L3_INLINE void put(Lane& lane, bool is_first) const {
    lane.pixel[0] = static_cast<uint16_t>(lane.w);
    if (!kLiteral) lane.pixel[kError] = static_cast<uint16_t>(lane.error);
    if (is_first) {
      *(lane.pixel - pitch_) = static_cast<uint16_t>(lane.w);
      if (!kLiteral) (lane.pixel - pitch_)[kError] = static_cast<uint16_t>(lane.error);
    }
    ++lane.pixel;
  }
  // A pixel of a still segment.
  L3_INLINE void copy_still(Lane& lane) const {
    const uint16_t* const above = lane.pixel - pitch_;
    const bool is_first = lane.y == 0;
    if constexpr (kHasHoles) hold(lane, is_first ? lane.w : above[0]);
    if (!is_first && above[0] != above[-1]) lane.w = above[0];
    lane.error = 0;
    put(lane, is_first);
  }
  // Steps in which all lanes are still.
  void copy_still(Lane (&lanes)[kCount], uint32_t still, uint32_t steps) const {
    for (; steps > 0; --steps) {
      L3_UNROLL_LANES {
        if ((still >> l & 1) != 0) copy_still(lanes[l]);
      }
    }
    look_back(lanes, still);
  }
  // Finds what pixels after a still segment need to know of it.
  void look_back(Lane (&lanes)[kCount], uint32_t still) const {
    for (; still != 0; still &= still - 1) {
      Lane& lane = lanes[__builtin_ctz(still)];
      const uint16_t *const here = lane.pixel, *const above = here - pitch_;
      lane.ww = here[-2];
      lane.error_ww = 0;
      lane.equal = kWithW;
      if (lane.y == 0) continue;
      lane.equal = uint32_t{lane.w == above[0]} | uint32_t{lane.w == above[-1]} << 3 | uint32_t{lane.w == lane.ww} << 4;
      lane.known = uint32_t{above[-1] == above[0]} << 1 | uint32_t{above[-2] == above[-1]} << 2 |
                   uint32_t{*(above - pitch_) == above[0]} << 6;
    }
  }
  // With holes, a lane holds the last value that was none (section 15.2).
  L3_INLINE void hold(Lane& lane, uint32_t n) const {
    if (lane.w != hole_) {
      lane.held_value = lane.w;
    } else if (n != hole_) {
      lane.held_value = n;
    }
  }
  // A neighbour's value for predictions.
  L3_INLINE uint32_t seen(const Lane& lane, uint32_t value) const {
    return kHasHoles && value == hole_ ? lane.held_value : value;
  }

  // ---- pixels

  // kFirst: lane 0 is in the first row, where W takes the place of all neighbours above.
  template <bool kFirst>
  L3_STAGE bool run(Lane (&all)[kCount], uint32_t active, uint32_t still, uint32_t steps) {
    LaneWords words{this->reader_.window(at_), 0};
    const TokenTables& tables = tables_;
    const ptrdiff_t pitch = pitch_;
    const int32_t places[4] = {-1, -pitch_, 1 - pitch_, -1 - pitch_};  // by match
    const bool by_activity = !kLiteral && tables.match_by_activity;
    Lane lanes[kCount];  // need not be in memory
    std::copy_n(all, kCount, lanes);
    const uint32_t decoding = active ^ still;
    const auto is_active = [&](uint32_t l) __attribute__((always_inline)) { return (decoding >> l & 1) != 0; };
    const auto is_still = [&](uint32_t l) __attribute__((always_inline)) { return (still >> l & 1) != 0; };
    const auto is_first = [](uint32_t l) __attribute__((always_inline)) { return kFirst && l == 0; };
    // Keeps a pixel that repeats a neighbour, or that escaped.
    const auto end_pixel = [&](uint32_t l, uint32_t error) __attribute__((always_inline)) {
      Lane& lane = lanes[l];
      if constexpr (!kLiteral) {
        lane.error_ww = lane.error;
        lane.error = error;
      }
      put(lane, is_first(l));
    };
    const auto is_hole = [](uint32_t match) __attribute__((always_inline)) { return kHasHoles && match == kMatchHole; };
    // The value of a pixel that repeats no neighbour.
    const auto set_value = [&](uint32_t l, uint32_t value) __attribute__((always_inline)) {
      Lane& lane = lanes[l];
      const uint16_t* const above = lane.pixel - pitch;
      const uint32_t n = is_first(l) ? value : above[0], ne = is_first(l) ? value : above[1];
      lane.equal = equal_after_escape(value, lane.w, n, ne);
      lane.ww = lane.w;
      lane.w = value;
    };
    const auto near_errors = [&](uint32_t l) __attribute__((always_inline)) {
      const Lane& lane = lanes[l];
      const uint16_t* const above = lane.pixel - pitch + kError;
      return is_first(l) ? TokenNear(lane.error_ww, lane.error)
                         : TokenNear(above, above - pitch, lane.error_ww, lane.error);
    };
    const auto activity_of = [&](uint32_t l) __attribute__((always_inline)) {
      const Lane& lane = lanes[l];
      const uint16_t* const above = lane.pixel - pitch;
      const uint32_t w = seen(lane, lane.w);
      return is_first(l) ? context_.activity(near_errors(l), w, w, w, w)
                         : context_.activity(near_errors(l), w, seen(lane, above[0]), seen(lane, above[-1]),
                                             seen(lane, above[1]));
    };
    const auto predict = [&](uint32_t l, uint32_t activity) __attribute__((always_inline)) {
      const Lane& lane = lanes[l];
      const uint16_t* const above = lane.pixel - pitch;
      const auto sign = [](uint32_t error) { return static_cast<int32_t>(static_cast<int16_t>(error)); };
      const auto from = [&](TokenNear values, uint32_t n, const int32_t(&near)[4]) __attribute__((always_inline)) {
        if constexpr (kHasHoles) values = values.without(hole_, lane.held_value);
        return context_.predict(lane.block_class, values, near_errors(l), activity, seen(lane, lane.w), seen(lane, n),
                                near);
      };
      if (is_first(l)) {
        const int32_t error = sign(lane.error);
        return from(TokenNear(lane.ww, lane.w), lane.w, {error, error, error, error});
      }
      return from(TokenNear(above, above - pitch, lane.ww, lane.w), above[0],
                  {sign(lane.error), sign(above[kError]), sign(above[kError - 1]), sign(above[kError + 1])});
    };
    do {
      uint32_t patterns[kCount] = {}, activities[kCount] = {};
      uint32_t escaped = 0, holes = 0;  // a bit for each lane
      bool is_flat = tables.match;
      L3_UNROLL_LANES {
        Lane& lane = lanes[l];
        if (!is_active(l)) continue;
        const uint16_t *const above = lane.pixel - pitch, *const two = above - pitch;
        if constexpr (kHasHoles) hold(lane, is_first(l) ? lane.w : above[0]);
        if (is_first(l)) {
          lane.known = kAllEqual & ~kWithW;
        } else {
          lane.known = uint32_t{above[0] == above[1]} << 1 | uint32_t{two[1] == above[1]} << 6 | (lane.known & 2) << 1 |
                       (lane.known & 4) << 5 | (lane.known & 64) >> 1;
        }
        patterns[l] = lane.known | lane.equal;
        is_flat = is_flat && patterns[l] == kAllEqual;
        if (by_activity) {
          uint32_t errors = lane.error | lane.error_ww;
          if (!is_first(l)) errors |= above[kError] | above[kError - 1] | above[kError + 1] | two[kError];
          is_flat = is_flat && errors == 0;
        }
      }
      if (is_flat) {
        bool goes_on;
        do {
          L3_UNROLL_LANES {
            Lane& lane = lanes[l];
            if (!is_active(l)) continue;
            if (lane.coder.pass(tables.flat, words)) continue;
            const uint32_t match = lane.coder.decode(tables, tables.match_bucket[kAllEqual], words);
            if (match > kMatchNw) (is_hole(match) ? holes : escaped) |= 1u << l;
          }
          if ((escaped | holes) != 0) break;
          goes_on = --steps > 0;
          L3_UNROLL_LANES {
            if (is_still(l)) copy_still(lanes[l]);
            if (!is_active(l)) continue;
            end_pixel(l, 0);
            const uint16_t *const above = lanes[l].pixel - pitch, *const two = above - pitch;
            if (!is_first(l)) {
              goes_on = goes_on && above[1] == lanes[l].w && two[1] == lanes[l].w;
              if (by_activity) goes_on = goes_on && (above[kError + 1] | two[kError]) == 0;
            }
          }
        } while (goes_on);
        if ((escaped | holes) == 0) continue;
      } else {
        L3_UNROLL_LANES {
          Lane& lane = lanes[l];
          if (!is_active(l)) continue;
          if (!tables.match) {
            escaped |= 1u << l;
            continue;
          }
          const uint16_t* const above = lane.pixel - pitch;
          // What holds for the next pixel if this one repeats a neighbour.
          const uint32_t equal =
              is_first(l) ? kWithW * 0x01010101u
                          : kRepeats(patterns[l] % 16 | uint32_t{above[-1] == above[1]} << 4, lane.w == above[1]);
          uint32_t first_bucket = tables.match_bucket[patterns[l]];
          if constexpr (!kLiteral) {
            if (by_activity) {
              activities[l] = activity_of(l);
              const uint32_t octave = TokenContext::exponent(activities[l]) - 3;
              first_bucket = tables.match_table[tables.match_row[patterns[l]] * kMatchOctaves + octave] * kTokenBuckets;
            }
          }
          const uint32_t match = lane.coder.decode(tables, first_bucket, words);
          if (match > kMatchNw) {
            (is_hole(match) ? holes : escaped) |= 1u << l;
            continue;
          }
          lane.ww = lane.w;
          if (!is_first(l)) lane.w = lane.pixel[places[match]];
          lane.equal = (equal >> (8 * match)) % 256;
        }
      }
      uint32_t errors[kCount] = {};
      if (escaped != 0) {
        uint32_t numbers[kCount] = {}, raw = 0;
        TokenContext::Prediction by[kCount] = {};
        L3_UNROLL_LANES {
          if ((escaped >> l & 1) == 0) continue;
          uint32_t table;
          if constexpr (kLiteral) {
            table = tables.literal_table[smaller(lanes[l].w ^ kValueBias, 255)];
          } else {
            by[l] = predict(l, by_activity && !is_flat ? activities[l] : activity_of(l));
            table = by[l].table;
          }
          numbers[l] = lanes[l].coder.decode(tables, table * kTokenBuckets, words);
          if (numbers[l] >= kDirectTokens) raw |= 1u << l;
        }
        L3_UNROLL_LANES {
          if ((raw >> l & 1) == 0) continue;
          numbers[l] = lanes[l].coder.with_raw_bits(numbers[l], words);
        }
        L3_UNROLL_LANES {
          if ((escaped >> l & 1) == 0) continue;
          uint32_t value;
          if constexpr (kLiteral) {
            value = numbers[l] & ((1u << tables.depth[0]) - 1);
          } else {
            value = context_.value_of(by[l], numbers[l]);
            errors[l] = static_cast<uint32_t>(TokenContext::error_of(by[l], value));
          }
          set_value(l, value ^ kValueBias);
        }
      }
      L3_UNROLL_LANES {
        if ((holes >> l & 1) != 0) set_value(l, hole_);
      }
      L3_UNROLL_LANES {
        if (is_still(l)) copy_still(lanes[l]);
        if (is_active(l)) end_pixel(l, errors[l] & 0xFFFF);
      }
      --steps;
    } while (steps > 0);
    look_back(lanes, still);
    std::copy_n(lanes, kCount, all);
    return this->advance(static_cast<uint32_t>(2 * words.taken));
  }

  uint16_t* next_row_;
  alignas(64) uint16_t values_[(kLiteral ? 1 : 2) * kMostNumbers];  // and errors
};

}  // namespace l3
