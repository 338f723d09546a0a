// What TokenLoop keeps of the pixels of the last steps: RecordLoop's records, an array of values for each channel, then
// one of errors; and what pixels follow. Copies the pixels of still blocks.
#pragma once

#include "engine/record_loop.h"
#include "engine/token_follow.h"
#include "engine/token_taps.h"
#include "engine/token_warp.h"

namespace l3 {

template <class W, uint32_t kChannels, TokenUse kUse, class Sink>
class TokenRecords : protected RecordLoop<W, (kUse == TokenUse::literal ? 1 : 2) * kChannels, Sink> {
 protected:
  static constexpr bool kLiteral = kUse == TokenUse::literal, kHasHoles = kUse == TokenUse::holes;
  static constexpr uint32_t kArrays = (kLiteral ? 1 : 2) * kChannels;
  using Base = RecordLoop<W, kArrays, Sink>;
  using Base::kRecordParts, Base::kRecords, Base::kStepRecords, Base::lanes_, Base::now_, Base::place_of, Base::step_,
      Base::width_;
  using typename Base::Classes, typename Base::Records;
  using Follow = TokenFollow<W, kChannels>;

  TokenRecords(const TileShape& shape, const TileEntry& entry, const TokenTables& tables, Sink& sink, Classes& classes)
      : Base(shape, entry, sink, classes), tables_(tables), channels_(tables.engine_channels) {}

  uint32_t channels() const { return kChannels < kMaxChannels ? kChannels : channels_; }
  // Whether no lane is in the first or the last column, or outside the tile's columns, if lane 0 is in column `lead`.
  L3_INLINE bool is_between(uint32_t lead) const { return lead + 1 >= 2 * lanes_ && lead + 1 < width_; }

  // ---- neighbours

  L3_INLINE static Records near(const uint16_t* now, NeighbourRole role, uint32_t array) {
    return W::load_records(now + place_of(role, array));
  }
  L3_INLINE static Records error(const uint16_t* now, NeighbourRole role, uint32_t c) {
    return near(now, role, kChannels + c);
  }
  // The values that predictions use: those of pixels, with holes filled.
  L3_INLINE Records value(const uint16_t* now, NeighbourRole role, uint32_t c, uint32_t part) const {
    const Records seen = near(now, role, c);
    if constexpr (kHasHoles) return W::select(W::same(seen, hole()), last_value_[part], seen);
    return seen;
  }
  L3_INLINE Records hole() const { return W::all_records(tables_.hole_value ^ kValueBias); }
  // With holes, each lane keeps the last value that was not the hole (section 15.2).
  L3_INLINE void track_last_value(uint32_t part, Records n, Records w) {
    const Records last = W::select(W::same(n, hole()), last_value_[part], n);
    last_value_[part] = W::select(W::same(w, hole()), last, w);
  }

  // ---- still pixels

  L3_INLINE void copy_still(uint32_t part) {
    const uint16_t* const now = now_ + part * kRecords;
    Records level = W::all_records(0xFFFF);
    for (uint32_t c = 0; c < channels(); ++c) {
      level = W::both(level, W::same(near(now, kRoleN, c), near(now, kRoleNw, c)));
    }
    for (uint32_t c = 0; c < channels(); ++c) {
      here_[c][part] = W::select(level, near(now, kRoleW, c), near(now, kRoleN, c));
    }
  }
  // Passes steps in which all lanes are still, of one channel, with the neighbours in registers. Leaves the records
  // that copy_still() needs.
  L3_INLINE void pass_without_records(uint32_t steps) {
    Records w[kRecordParts], ne[kRecordParts], n[kRecordParts], nw[kRecordParts];
    L3_UNROLL_RECORDS {
      const uint16_t* const now = now_ + part * kRecords;
      w[part] = near(now, kRoleW, 0);
      ne[part] = near(now, kRoleNe, 0);
      n[part] = near(now, kRoleN, 0);
      nw[part] = near(now, kRoleNw, 0);
    }
    auto delayed = this->delay_.run();
    for (uint32_t left = steps; left > 0;) {
      const uint32_t count = smaller(left, this->sink_.steps_to_flush(step_));
      uint16_t* here = this->sink_.place(step_);
      for (uint32_t i = 0; i < count; ++i, here += kLanes) {
        L3_UNROLL_RECORDS {
          if constexpr (kHasHoles) track_last_value(part, n[part], w[part]);
          w[part] = W::select(W::same(n[part], nw[part]), w[part], n[part]);
          W::store_records(here + part * kRecords, w[part]);
        }
        delayed.next();
        delayed.put(0, here + lanes_ - 2);
        if constexpr (!kLiteral) delayed.put_nothing(1);
        const Records from_last = W::repeat_two(delayed.get(0));
        L3_UNROLL_RECORDS {
          nw[part] = n[part];
          n[part] = ne[part];
          ne[part] = W::shift_up_one(w[part], part == 0 ? from_last : w[part - 1]);
        }
      }
      left -= count;
      step_ += count;
      this->sink_.end_step(step_ - 1);
    }
    this->delay_.end(delayed);
    L3_UNROLL_RECORDS {
      uint16_t* const now = now_ + part * kRecords;
      W::store_records(now + place_of(kRoleW, 0), w[part]);
      W::store_records(now + place_of(kRoleNe, 0), ne[part]);
      W::store_records(now + place_of(kRoleN, 0), n[part]);
      W::store_records(now + place_of(kRoleNw, 0), nw[part]);
    }
  }

  // ---- what a step has decoded

  // Keeps it. `lead` is the column of lane 0.
  L3_INLINE void keep_records(uint32_t lead) {
    const auto ends = this->delay_.ends(lanes_);
    uint16_t* const now = now_;
    for (uint32_t c = 0; c < channels(); ++c) {
      this->keep(now, c, here_[c], ends);
      L3_UNROLL_RECORDS W::store_records(this->sink_.place(step_, c) + part * kRecords, here_[c][part]);
    }
    if constexpr (!kLiteral) keep_errors(now, ends);
    if (tables_.follow) {
      const uint32_t behind = 2 * (lanes_ - 1);
      const uint16_t* values[kChannels] = {};
      for (uint32_t c = 0; c < channels(); ++c) values[c] = this->sink_.place(step_, c);
      follow_.end_step(step_, lead >= behind ? lead - behind : lead + this->period_ - behind, lanes_that_differ(),
                       here_, values);
    }
  }
  // The same for errors. Most of them are 0: what is 0 already is not stored again.
  template <class Ends>
  L3_INLINE void keep_errors(uint16_t* now, const Ends& ends) {
    static_assert(Base::kSteps < 32);
    const uint32_t bit = 1u << (static_cast<uint32_t>(now - this->steps_[0]) / kStepRecords);
    uint32_t from_last[kChannels];
    std::memcpy(from_last, ends.from[kChannels], sizeof(from_last));
    uint32_t delayed = 0;
    for (uint32_t c = 0; c < kChannels; ++c) delayed |= from_last[c];
    if (!any_escaped_ && delayed == 0) {
      std::memset(ends.to[kChannels], 0, sizeof(from_last));
      if ((this->noisy_ & bit) == 0) return;
      this->noisy_ &= ~bit;
      L3_UNROLL_RECORDS {
        for (uint32_t c = 0; c < kChannels; ++c) {
          for (const auto kind : {Base::kOwn, Base::kAbove, Base::kAboveTwo}) {
            W::store_records(now + place_of(kind, kChannels + c) + part * kRecords, W::all_records(0));
          }
        }
      }
      return;
    }
    this->noisy_ |= bit;
    for (uint32_t c = 0; c < channels(); ++c) this->keep(now, kChannels + c, error_here_[c], ends);
  }
  // The lanes whose pixel is not the one that it follows.
  L3_INLINE uint32_t lanes_that_differ() const {
    if (!follow_.asks()) return 0;
    Records equal[kRecordParts];
    L3_UNROLL_RECORDS {
      equal[part] = W::all_records(0xFFFF);
      for (uint32_t c = 0; c < channels(); ++c) {
        const Records followed = follow_.followed(c, part);
        equal[part] = W::both(equal[part], W::same(here_[c][part], followed));
      }
    }
    return ~lanes_of(equal);
  }
  L3_INLINE uint32_t lanes_of(const Records* records) const {
    uint32_t lanes = 0;
    L3_UNROLL_RECORDS lanes |= W::record_bits(records[part]) << (part * kRecords);
    return lanes;
  }

  const TokenTables& tables_;
  bool any_escaped_ = false;  // whether the step may have errors
  Records here_[kChannels][kRecordParts] = {}, error_here_[kChannels][kRecordParts] = {};
  Records last_value_[kRecordParts] = {};
  Follow follow_;

 private:
  const uint32_t channels_;
};

}  // namespace l3
