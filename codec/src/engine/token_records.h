// What TokenLoop keeps of the pixels of the last steps: values, as bytes if they are below 256; errors, 16 bits each;
// and what pixels follow. Copies the pixels of still blocks.
#pragma once

#include "engine/record_loop.h"
#include "engine/token_follow.h"
#include "engine/token_taps.h"
#include "engine/token_warp.h"

#define L3_UNROLL_NUMBERS L3_UNROLL_UP_TO(kNumberParts)

namespace l3 {

// Steps whose records are kept; stack is scarce.
template <uint32_t kChannels, class Value>
constexpr uint32_t kTokenSteps = kChannels * sizeof(Value) > 4 ? 10 : 18;

// `Value` is a byte, or a number of 16 bits, which then has the bias.
template <class W, uint32_t kChannels, TokenUse kUse, class Value, class Sink>
class TokenRecords : protected RecordLoop<W, Value, kChannels, Sink, kTokenSteps<kChannels, Value>> {
 protected:
  static constexpr bool kLiteral = kUse == TokenUse::literal, kHasHoles = kUse == TokenUse::holes,
                        kAreBytes = sizeof(Value) == 1, kAreWords = kPixelsAreWords<kChannels, Value>;
  static constexpr Value kNone = kAreBytes ? 0 : kValueBias;  // the value 0
  static constexpr uint32_t kSteps = kTokenSteps<kChannels, Value>;
  using Base = RecordLoop<W, Value, kChannels, Sink, kSteps>;
  using Base::kParts, Base::kRecordParts, Base::kRecords, Base::kStepRecords, Base::lanes_, Base::near, Base::now_,
      Base::place_of, Base::step_, Base::width_;
  using typename Base::Classes;
  using Values = typename Base::Records;
  using Lanes = typename W::Lanes;
  using Follow = TokenFollow<W, kChannels, Value>;
  // Errors, and numbers that predictions are made of.
  using Numbers = typename W::Records;
  static constexpr uint32_t kNumbers = W::kRecords, kNumberParts = W::kRecordParts;
  using Errors = StepRecords<W, uint16_t, kLiteral ? 1 : kChannels, kSteps>;

  TokenRecords(const TileShape& shape, const TileEntry& entry, const TokenTables& tables, Sink& sink, Classes& classes)
      : Base(shape, entry, sink, classes), tables_(tables), channels_(tables.engine_channels) {}

  // Channels that a tile does not have are 0 everywhere, and not decoded.
  uint32_t channels() const { return kChannels < kMaxChannels ? kChannels : channels_; }
  // Whether no lane is in the first or the last column, or outside the tile's columns, if lane 0 is in column `lead`.
  L3_INLINE bool is_between(uint32_t lead) const { return lead + 1 >= 2 * lanes_ && lead + 1 < width_; }

  L3_INLINE static Values all(uint32_t value) { return W::template filled<Values>(value); }
  // A mask of the lanes in which two neighbours are equal.
  L3_INLINE static Values equal(const Value* now, NeighbourRole a, NeighbourRole b) {
    Values equal = W::same(near(now, a, 0), near(now, b, 0));
    for (uint32_t c = 1; c < kChannels; ++c) equal = W::both(equal, W::same(near(now, a, c), near(now, b, c)));
    return equal;
  }

  // ---- the numbers that predictions use

  L3_INLINE static Numbers error(const uint16_t* errors, NeighbourRole role, uint32_t c) {
    return Errors::near(errors, role, c);
  }
  // Values, with holes filled. `now` is that of lane part * kNumbers.
  L3_INLINE Numbers value(const Value* now, NeighbourRole role, uint32_t c, uint32_t part) const {
    const Numbers seen = numbers(now + place_of(role, c));
    if constexpr (kHasHoles)
      return W::select(W::same(seen, hole_number()), numbers(last_value_ + part * kNumbers), seen);
    return seen;
  }
  L3_INLINE static Numbers numbers(const uint16_t* from) { return W::load_records(from); }
  L3_INLINE static Numbers numbers(const uint8_t* from) { return W::load_bytes(from); }
  // A value without the bias in the form of the others, which have it unless they are bytes.
  L3_INLINE static Numbers seen_as(Numbers v) {
    if constexpr (kAreBytes) return v;
    return W::flipped(v);
  }
  L3_INLINE Numbers hole_number() const { return W::all_records(tables_.hole_value ^ kNone); }
  L3_INLINE Values hole() const { return all(tables_.hole_value ^ kNone); }
  // With holes, each lane keeps the last value that was not the hole (section 15.2).
  L3_INLINE void track_last_value(uint32_t part, Values n, Values w) {
    const Values last = W::select(W::same(n, hole()), W::load_records(last_value_ + part * kRecords), n);
    W::store_records(last_value_ + part * kRecords, W::select(W::same(w, hole()), last, w));
  }

  // ---- still pixels

  L3_INLINE void copy_still(uint32_t part) {
    const Value* const now = now_ + part * kRecords;
    const Values level = equal(now, kRoleN, kRoleNw);
    for (uint32_t c = 0; c < kChannels; ++c) {
      here_[c][part] = W::select(level, near(now, kRoleW, c), near(now, kRoleN, c));
    }
  }
  // Passes steps in which all lanes are still, with the neighbours in registers. Leaves the records that copy_still()
  // needs.
  L3_INLINE void pass_without_records(uint32_t steps) {
    Values w[kChannels][kRecordParts], ne[kChannels][kRecordParts], n[kChannels][kRecordParts],
        nw[kChannels][kRecordParts];
    for (uint32_t c = 0; c < kChannels; ++c) {
      L3_UNROLL_RECORDS {
        const Value* const now = now_ + part * kRecords;
        w[c][part] = near(now, kRoleW, c);
        ne[c][part] = near(now, kRoleNe, c);
        n[c][part] = near(now, kRoleN, c);
        nw[c][part] = near(now, kRoleNw, c);
      }
    }
    auto delayed = this->delay_.run();
    alignas(64) Value own[kLanes];
    for (uint32_t left = steps; left > 0;) {
      const uint32_t count = smaller(left, this->sink_.steps_to_flush(step_));
      for (uint32_t i = 0; i < count; ++i) {
        if constexpr (kHasHoles) {
          L3_UNROLL_RECORDS track_last_value(part, n[0][part], w[0][part]);
        }
        L3_UNROLL_RECORDS {
          Values level = W::same(n[0][part], nw[0][part]);
          for (uint32_t c = 1; c < kChannels; ++c) level = W::both(level, W::same(n[c][part], nw[c][part]));
          for (uint32_t c = 0; c < kChannels; ++c) w[c][part] = W::select(level, w[c][part], n[c][part]);
        }
        put_pixels(step_ + i, w);
        delayed.next();
        for (uint32_t c = 0; c < kChannels; ++c) {
          L3_UNROLL_RECORDS W::store_records(own + part * kRecords, w[c][part]);
          delayed.put(c, own + lanes_ - 2);
          const Values from_last = W::repeat_two(delayed.get(c));
          L3_UNROLL_RECORDS {
            nw[c][part] = n[c][part];
            n[c][part] = ne[c][part];
            ne[c][part] = W::shift_up_one(w[c][part], part == 0 ? from_last : w[c][part - 1]);
          }
        }
      }
      left -= count;
      step_ += count;
      this->sink_.end_step(step_ - 1);
    }
    this->delay_.end(delayed);
    if constexpr (!kLiteral) errors_.delay_.pass(steps);
    for (uint32_t c = 0; c < kChannels; ++c) {
      L3_UNROLL_RECORDS {
        Value* const now = now_ + part * kRecords;
        W::store_records(now + place_of(kRoleW, c), w[c][part]);
        W::store_records(now + place_of(kRoleNe, c), ne[c][part]);
        W::store_records(now + place_of(kRoleN, c), n[c][part]);
        W::store_records(now + place_of(kRoleNw, c), nw[c][part]);
      }
    }
  }

  // ---- what a step has decoded

  // Gives the pixels of a step to the sink.
  L3_INLINE void put_pixels(uint32_t step, const Values (&pixels)[kChannels][kRecordParts]) {
    if constexpr (kAreWords) {
      Lanes words[W::kParts];
      W::words_of(pixels[0], kRecordParts, kChannels, words);
      for (uint32_t part = 0; part < W::kParts; ++part)
        W::store(this->sink_.place(step) + part * W::kPartLanes, words[part]);
    } else {
      for (uint32_t c = 0; c < kChannels; ++c) {
        L3_UNROLL_RECORDS W::store_records(this->sink_.place(step, c) + part * kRecords, pixels[c][part]);
      }
    }
  }
  // Keeps it. `lead` is the column of lane 0.
  L3_INLINE void keep_records(uint32_t lead) {
    const auto ends = this->delay_.ends(lanes_);
    Value* const now = now_;
    for (uint32_t c = 0; c < kChannels; ++c) this->keep(now, c, here_[c], ends);
    put_pixels(step_, here_);
    if constexpr (!kLiteral) keep_errors();
    if (tables_.follow) {
      const uint32_t behind = 2 * (lanes_ - 1);
      const typename Follow::Number* numbers[kChannels];
      for (uint32_t c = 0; c < kChannels; ++c) numbers[c] = this->sink_.place(step_, kAreWords ? 0 : c);
      follow_.end_step(step_, lead >= behind ? lead - behind : lead + this->period_ - behind, lanes_that_differ(),
                       here_, numbers);
    }
  }
  // The same for errors. Most of them are 0: what is 0 already is not stored again.
  L3_INLINE void keep_errors() {
    static_assert(kSteps < 32);
    const auto ends = errors_.delay_.ends(lanes_);
    uint16_t* const now = errors_.now_;
    const uint32_t bit = 1u << (static_cast<uint32_t>(now - errors_.steps_[0]) / Errors::kStepRecords);
    uint32_t from_last[kChannels];
    std::memcpy(from_last, ends.from, sizeof(from_last));
    uint32_t delayed = 0;
    for (uint32_t c = 0; c < kChannels; ++c) delayed |= from_last[c];
    if (!any_escaped_ && delayed == 0) {
      std::memset(ends.to, 0, sizeof(from_last));
      if ((noisy_ & bit) == 0) return;
      noisy_ &= ~bit;
      for (uint32_t i = 0; i < Errors::kStepRecords; i += kNumbers) W::store_records(now + i, W::all_records(0));
      return;
    }
    noisy_ |= bit;
    for (uint32_t c = 0; c < channels(); ++c) errors_.keep(now, c, error_here_[c], ends);
  }
  // Goes on to the next step's records of errors.
  L3_INLINE void next_errors() {
    errors_.now_ += Errors::kStepRecords;
    if (!errors_.make_room()) return;
    constexpr uint32_t kFirst = (1u << Errors::kBack) - 1;
    noisy_ = (noisy_ & ~kFirst) | (noisy_ >> (kSteps - Errors::kBack) & kFirst);
  }
  // The lanes whose pixel is not the one that it follows.
  L3_INLINE uint32_t lanes_that_differ() const {
    if (!follow_.asks()) return 0;
    Values equal[kRecordParts];
    L3_UNROLL_RECORDS {
      equal[part] = W::same(here_[0][part], follow_.followed(0, part));
      for (uint32_t c = 1; c < kChannels; ++c) {
        equal[part] = W::both(equal[part], W::same(here_[c][part], follow_.followed(c, part)));
      }
    }
    return ~lanes_of(equal);
  }
  L3_INLINE uint32_t lanes_of(const Values* masks) const {
    uint32_t lanes = 0;
    L3_UNROLL_RECORDS lanes |= W::record_bits(masks[part]) << (part * kRecords);
    return lanes;
  }

  const TokenTables& tables_;
  bool any_escaped_ = false;  // whether the step may have errors
  Values here_[kChannels][kRecordParts] = {};
  Numbers error_here_[kChannels][kNumberParts] = {};
  alignas(64) Value last_value_[kLanes];
  uint32_t noisy_ = UINT32_MAX;  // a bit for each of the steps of errors_ that may have errors other than 0
  Errors errors_;
  Follow follow_;

 private:
  const uint32_t channels_;
};

}  // namespace l3
