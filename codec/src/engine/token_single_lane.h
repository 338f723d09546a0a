// Decodes a tile of one lane with a token model of one channel on a processor: small images such as digits and icons
// have such tiles. In numbers and not in vectors, of which one lane would use one element. The rules are those of
// TokenLoop.
//
// What limits one lane is the chain from a state to its symbol and the next state. So what depends only on the rows
// above is computed for a whole row at once, in vectors, and what depends on the symbol is selected from what each
// symbol would mean. Where all neighbours are equal, most slots belong to one symbol: a small table gives the
// next state, and pixels are only counted until another one follows.
#pragma once

#include <algorithm>

#include "engine/few_lanes.h"

namespace l3 {

template <class W, TokenUse kUse, class Sink>
class TokenSingleLane : public FewLanes<TokenSingleLane<W, kUse, Sink>, W, kUse, Sink> {
  using Base = FewLanes<TokenSingleLane<W, kUse, Sink>, W, kUse, Sink>;
  friend Base;

 public:
  using Base::Base;

 private:
  using Base::at_, Base::ending_, Base::height_, Base::sink_, Base::state_, Base::width_;
  using Base::kLiteral, Base::kHasHoles, Base::kBefore, Base::kBehind;
  using Base::tables_, Base::context_, Base::pitch_, Base::hole_, Base::has_blocks_, Base::still_rows_;

  // Vectors of 16-bit numbers. Vectors of a row may reach beyond its end.
  static constexpr uint32_t kVector = W::kBytes < 32 ? 8 : 16;
  using Vector = typename VectorTypes<2 * kVector>::U16;
  // Of the rows above, two are needed.
  static constexpr uint32_t kKept = 2;
  static constexpr uint32_t kMostNumbers = (kKept + 2) * (kBefore + kMaxTileEdge + kBehind);
  // Decoded without asking for another window. Each takes at most three words, and one more is looked at.
  static constexpr uint32_t kMostPixels = 64, kMostBytes = 6 * kMostPixels + 2;
  static_assert(kMostBytes <= W::Reader::kReach);
  // Where a pixel's error is, relative to its value.
  static constexpr ptrdiff_t kError = kMostNumbers + kVector;
  // What is known of a pixel from the rows above: the equalities of section 14.4 that do not concern W, and at the
  // place of one that does, whether NW is NE. kErrors: some of the errors above are not 0.
  static constexpr uint32_t kNwIsNe = 0x10, kErrors = 0x100, kFlatAbove = (kAllEqual & ~kWithW) | kNwIsNe;

  // A pixel's neighbours to the left. All values have the bias.
  struct Left {
    uint32_t w, ww, equal;  // the equalities that concern W
    // Unless the model is literal: the errors of W and WW, and the held value.
    uint32_t error, error_ww, held_value;
  };

  bool decode_values() {
    sink_.save_states(0, at_, state_);
    sink_.begin(width_, height_, 1);
    alignas(64) uint32_t states[kLanes];
    for (uint32_t part = 0; part < W::kParts; ++part) W::store(states + part * W::kPartLanes, state_[part]);
    LaneCoder coder{states[0], 0};
    words_ = {this->reader_.window(at_), 0};
    row_ = values_ + kBefore + pitch_;
    for (uint32_t y = 0; y < height_; ++y) {
      begin_row(y);
      if (!(y == 0 ? decode_row<true>(y, coder) : decode_row<false>(y, coder))) return false;
      end_row(y);
    }
    if (!this->advance(static_cast<uint32_t>(2 * words_.taken))) return false;
    states[0] = coder.state;
    for (uint32_t part = 0; part < W::kParts; ++part) state_[part] = W::load(states + part * W::kPartLanes);
    return true;
  }

  // ---- rows

  // Section 13.3: what is beyond the tile's edges.
  L3_INLINE void begin_row(uint32_t y) {
    if (y == 0) {
      std::fill_n(above_, width_, static_cast<uint16_t>(kFlatAbove));
      return;
    }
    uint16_t* const above = row_ - pitch_;
    above[-1] = above[-2] = above[0];
    if (!kLiteral) above[kError - 1] = above[kError - 2] = above[kError];
    to_two_ = y == 1 ? -pitch_ : -2 * pitch_;  // in row 1, NN is N
    const uint16_t* const two = row_ + to_two_;
    const auto load = [](const uint16_t* from) __attribute__((always_inline)) {
      Vector v;
      std::memcpy(&v, from, sizeof(v));
      return v;
    };
    const auto bit = [](const auto& mask, uint32_t value) __attribute__((always_inline)) {
      return (Vector)mask & static_cast<uint16_t>(value);
    };
    for (uint32_t x = 0; x < width_; x += kVector) {
      const Vector n = load(above + x), ne = load(above + x + 1), nw = load(above + x - 1);
      Vector known = bit(n == ne, 2) | bit(n == nw, 4) | bit(nw == ne, kNwIsNe) | bit(load(two + x) == n, 32) |
                     bit(load(two + x + 1) == ne, 64) | bit(load(above + x - 2) == nw, 128);
      if (!kLiteral && tables_.match_by_activity) {
        const uint16_t* const errors = above + kError + x;
        known |= bit((load(errors - 1) | load(errors) | load(errors + 1) | load(two + kError + x)) != 0, kErrors);
      }
      std::memcpy(above_ + x, &known, sizeof(known));
    }
  }
  L3_INLINE void end_row(uint32_t y) {
    uint16_t* const end = row_ + width_;
    end[0] = end[-1];
    if (!kLiteral) end[kError] = end[kError - 1];
    sink_.put_row(y, row_);
    row_ += pitch_;
    if (row_ + width_ + kBehind <= values_ + kMostNumbers) return;
    // Moves the rows that are still needed to where memory begins.
    const uint16_t* const kept = row_ - kBefore - static_cast<int32_t>(kKept) * pitch_;
    const ptrdiff_t count = static_cast<int32_t>(kKept) * pitch_;
    std::copy_n(kept, count, values_);
    if (!kLiteral) std::copy_n(kept + kError, count, values_ + kError);
    row_ = values_ + kBefore + count;
  }

  // kFirst: in the first row, W takes the place of all neighbours above.
  template <bool kFirst>
  L3_STAGE bool decode_row(uint32_t y, LaneCoder& lane) {
    LaneCoder coder = lane;
    Left left{kValueBias, kValueBias, kWithW, 0, 0, kValueBias};
    if (!kFirst) {
      left.w = left.ww = *(row_ - pitch_);
      if (!kLiteral) left.error = left.error_ww = *(row_ - pitch_ + kError);
    }
    row_[-1] = static_cast<uint16_t>(left.w);
    const bool has_ending = y >= ending_.row;
    for (uint32_t x = 0, end; x < width_; x = end) {
      // In these pixels the lane does not begin its ending, and is in one block.
      const bool ends = has_ending && x >= ending_.column;
      coder.floor = ends ? 0 : kStateFloor;
      end = smaller(x + kMostPixels, has_ending && !ends ? smaller(ending_.column, width_) : width_);
      uint32_t block_class = 0;
      if (has_blocks_) {
        end = smaller(end, (x / kBlockEdge + 1) * kBlockEdge);
        if (tables_.still && still_rows_.is_still(x, y)) {
          copy_still<kFirst>(x, end, left);
          continue;
        }
        block_class = this->classes_[y / kBlockEdge * this->blocks_across() + x / kBlockEdge] & (kMaxClasses - 1);
      }
      if (2 * words_.taken > W::Reader::kReach - kMostBytes) {
        if (!this->advance(static_cast<uint32_t>(2 * words_.taken))) return false;
        words_ = {this->reader_.window(at_), 0};
      }
      run<kFirst>(x, end, block_class, coder, left);
    }
    lane = coder;
    return true;
  }

  // ---- pixels

  // The pixels of a still segment, and what those after it need to know.
  template <bool kFirst>
  L3_INLINE void copy_still(uint32_t x, uint32_t end, Left& left) {
    uint16_t* const row = row_;
    const uint16_t* const above = row - pitch_;
    for (; x < end; ++x) {
      hold(left, kFirst ? left.w : above[x]);
      const uint32_t value = kFirst || above[x] == above[ptrdiff_t{x} - 1] ? left.w : above[x];
      row[x] = static_cast<uint16_t>(value);
      if (!kLiteral) row[x + kError] = 0;
      left.ww = left.w;
      left.w = value;
    }
    left.error = left.error_ww = 0;
    left.equal = kFirst ? kWithW
                        : uint32_t{left.w == above[end]} | uint32_t{left.w == above[end - 1]} << 3 |
                              uint32_t{left.w == row[ptrdiff_t{end} - 2]} << 4;
  }
  // With holes, a lane holds the last value that was none (section 15.2).
  L3_INLINE void hold(Left& left, uint32_t n) const {
    if constexpr (!kHasHoles) return;
    if (left.w != hole_) {
      left.held_value = left.w;
    } else if (n != hole_) {
      left.held_value = n;
    }
  }
  // A neighbour's value for predictions.
  L3_INLINE uint32_t seen(const Left& left, uint32_t value) const {
    return kHasHoles && value == hole_ ? left.held_value : value;
  }

  // Decodes the pixels of columns x to `end` - 1.
  template <bool kFirst>
  L3_INLINE void run(uint32_t x, uint32_t end, uint32_t block_class, LaneCoder& lane, Left& before) {
    const TokenTables& tables = tables_;
    LaneCoder coder{lane.state, lane.floor};
    LaneWords words = words_;
    Left left = before;
    uint16_t* pixel = row_ + x;
    uint16_t* const last = row_ + end;
    const uint16_t* known = above_ + x;
    // What is known of the next pixel ends a flat run.
    const uint16_t after = above_[end];
    above_[end] = 0;
    const ptrdiff_t to_above = -pitch_, to_two = to_two_;
    const ptrdiff_t places[4] = {-1, to_above, to_above + 1, to_above - 1};  // by match
    const bool by_activity = !kLiteral && tables.match_by_activity, matches = tables.match;
    const auto put = [&](uint32_t value, uint32_t error) __attribute__((always_inline)) {
      *pixel = static_cast<uint16_t>(value);
      left.ww = left.w;
      left.w = value;
      if (!kLiteral) {
        pixel[kError] = static_cast<uint16_t>(error);
        left.error_ww = left.error;
        left.error = error;
      }
      ++pixel;
      ++known;
    };
    while (pixel < last) {
      const uint16_t* const above = pixel + to_above;
      hold(left, kFirst ? left.w : above[0]);
      uint32_t activity = 0, match = kMatchNone;
      bool has_activity = false;
      const auto near_errors = [&]() __attribute__((always_inline)) {
        return kFirst ? TokenNear(left.error_ww, left.error)
                      : TokenNear(above + kError, pixel + to_two + kError, left.error_ww, left.error);
      };
      const auto find_activity = [&]() __attribute__((always_inline)) {
        const uint32_t w = seen(left, left.w);
        activity = kFirst ? context_.activity(near_errors(), w, w, w, w)
                          : context_.activity(near_errors(), w, seen(left, above[0]), seen(left, above[-1]),
                                              seen(left, above[1]));
        has_activity = true;
      };
      if (matches) {
        if (*known == kFlatAbove && left.equal == kWithW && (!by_activity || (left.error | left.error_ww) == 0)) {
          uint16_t* const first = pixel;
          while (coder.pass(tables.flat, words)) {
            ++pixel;
            ++known;
            if (*known != kFlatAbove) break;
          }
          if (pixel != first) {
            const Vector value = Vector{} + static_cast<uint16_t>(left.w);
            for (uint16_t* at = first; at < pixel; at += kVector) {
              std::memcpy(at, &value, sizeof(value));
              if (!kLiteral) std::memset(at + kError, 0, sizeof(value));
            }
            left.ww = left.w;
            left.error = left.error_ww = 0;
            continue;
          }
          match = coder.decode(tables, tables.match_bucket[kAllEqual], words);
          if (match <= kMatchNw) {
            put(left.w, 0);
            continue;
          }
        } else {
          const uint32_t all = *known;
          // What holds for the next pixel if this one repeats a neighbour.
          const uint32_t equal =
              kFirst ? kWithW * 0x01010101u : kRepeats((all | (left.equal & ~kWwIsW)) % 32, left.w == above[1]);
          const uint32_t pattern = (all & (kAllEqual & ~kNwIsNe)) | left.equal;
          uint32_t first_bucket = tables.match_bucket[pattern];
          if constexpr (!kLiteral) {
            if (by_activity) {
              find_activity();
              const uint32_t octave = TokenContext::exponent(activity) - 3;
              first_bucket = tables.match_table[tables.match_row[pattern] * kMatchOctaves + octave] * kTokenBuckets;
            }
          }
          match = coder.decode(tables, first_bucket, words);
          if (match <= kMatchNw) {
            left.equal = (equal >> (8 * match)) % 256;
            put(kFirst ? left.w : pixel[places[match]], 0);
            continue;
          }
        }
      }
      uint32_t value, error = 0;
      if (kHasHoles && match == kMatchHole) {
        value = hole_;
      } else if constexpr (kLiteral) {
        const uint32_t table = tables.literal_table[smaller(left.w ^ kValueBias, 255)];
        uint32_t number = coder.decode(tables, table * kTokenBuckets, words);
        if (number >= kDirectTokens) number = coder.with_raw_bits(number, words);
        value = (number & ((1u << tables.depth[0]) - 1)) ^ kValueBias;
      } else {
        if (!has_activity) find_activity();
        const auto sign = [](uint32_t e) { return static_cast<int32_t>(static_cast<int16_t>(e)); };
        const auto predict = [&](TokenNear values, uint32_t n, const int32_t(&near)[4]) __attribute__((always_inline)) {
          if constexpr (kHasHoles) values = values.without(hole_, left.held_value);
          return context_.predict(block_class, values, near_errors(), activity, seen(left, left.w), seen(left, n),
                                  near);
        };
        const int32_t w_error = sign(left.error);
        const TokenContext::Prediction by =
            kFirst ? predict(TokenNear(left.ww, left.w), left.w, {w_error, w_error, w_error, w_error})
                   : predict(TokenNear(above, pixel + to_two, left.ww, left.w), above[0],
                             {w_error, sign(above[kError]), sign(above[kError - 1]), sign(above[kError + 1])});
        uint32_t number = coder.decode(tables, by.table * kTokenBuckets, words);
        if (number >= kDirectTokens) number = coder.with_raw_bits(number, words);
        const uint32_t sample = context_.value_of(by, number);
        error = static_cast<uint32_t>(TokenContext::error_of(by, sample)) & 0xFFFF;
        value = sample ^ kValueBias;
      }
      left.equal = equal_after_escape(value, left.w, kFirst ? value : above[0], kFirst ? value : above[1]);
      put(value, error);
    }
    above_[end] = after;
    lane.state = coder.state;
    before = left;
    words_ = words;
  }

  LaneWords words_{nullptr, 0};
  uint16_t* row_ = nullptr;
  int32_t to_two_ = 0;                                                          // from a pixel to NN
  uint16_t above_[kMaxTileEdge + kVector];                                      // what is known of each pixel of a row
  alignas(64) uint16_t values_[(kLiteral ? 1 : 2) * (kMostNumbers + kVector)];  // and errors
};

}  // namespace l3
