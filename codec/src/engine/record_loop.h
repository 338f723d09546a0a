// What the loops of processors over the steps of a tile share: DenseLoop and TokenLoop derive from RecordLoop.
//
// A step decodes one pixel in each lane. What later pixels need of it are records, 16 bits for each lane, in kArrays
// arrays. The records of the last steps are kept in three orders: by lane, moved up by one lane and moved up by two. So
// each neighbour of all lanes' pixels is a vector at a fixed place, and nothing is moved when lanes advance.
//
// At the edges of the tile, neighbours are corrected in place. In a step this concerns at most four lanes.
#pragma once

#include <cstring>
#include <initializer_list>

#include "engine/still_rows.h"
#include "engine/vectors.h"
#include "engine/wavefront.h"

// Loops over the parts of a warp whose vectors hold records: over all of them, unrolled, so that what is kept for each
// stays in registers; and over those that have work.
#if defined(__clang__)
#define L3_UNROLL_RECORDS _Pragma("clang loop unroll(full)") for (uint32_t part = 0; part < kRecordParts; ++part)
#define L3_FOR_USED_RECORDS for (uint32_t part = this->first_records(), end = this->end_records(); part < end; ++part)
#else
#define L3_UNROLL_RECORDS _Pragma("GCC unroll 8") for (uint32_t part = 0; part < kRecordParts; ++part)
#define L3_FOR_USED_RECORDS \
  _Pragma("GCC unroll 1") for (uint32_t part = this->first_records(), end = this->end_records(); part < end; ++part)
#endif

namespace l3 {

// The neighbours of a pixel.
enum NeighbourRole : uint32_t { kRoleW, kRoleN, kRoleNw, kRoleNe, kRoleWw, kRoleNn, kRoleNne, kRoleNww, kRoles };

template <class W, uint32_t kArrays, class Sink>
class RecordLoop : protected Wavefront<W, Sink, 4> {
 protected:
  using Front = Wavefront<W, Sink, 4>;
  using typename Front::Classes, typename Front::Window;
  using Records = typename W::Records;
  using Front::active_, Front::at_, Front::classes_, Front::column_, Front::height_, Front::kParts, Front::lanes_,
      Front::row_, Front::width_;
  using Way = typename Front::Way;
  static constexpr uint32_t kPartLanes = W::kPartLanes, kRecords = W::kRecords, kRecordParts = W::kRecordParts;
  // How far back neighbours are; steps whose records are kept.
  static constexpr uint32_t kBack = 4, kSteps = kArrays > 4 ? 10 : 18;

  RecordLoop(const TileShape& shape, const TileEntry& entry, Sink& sink, Classes& classes)
      : Front(shape, entry, sink, classes), period_(dense_period(shape.width, lanes_)) {}

  // ---- the way of the lanes

  // Puts the lanes to where they begin. `none`: for each array, the record of the first pixel's neighbours, which do
  // not exist. `blocks`: which blocks are announced by enter_blocks(): none, the first one of each lane, or all; or, if
  // there are still_rows_, the first one of each row and those where the row begins or ends to be still; or also all
  // others that are not still.
  enum class Announced { none, once, all, changes, busy };
  Way start(const uint16_t* none, Announced blocks) {
    none_ = none;
    announced_ = blocks;
    std::memset(steps_, 0, sizeof(Step) * kBack);
    for (uint32_t lane = 0; lane < smaller(lanes_, height_) && blocks != Announced::none; ++lane) {
      enters_[lane] = {2 * lane, 0, lane};
      entering_[2 * lane % kBlockEdge] |= 1u << lane;
    }
    steady_ = SteadySteps::of(width_, height_, lanes_, this->ending_);
    return this->start_lanes(delay_);
  }
  L3_INLINE void begin_step(const Way& way) {
    this->choose_parts(step_, way);
    if (step_ == steady_.end && step_ > steady_.begin) place_lanes();
    if (!is_steady()) {
      L3_FOR_USED_PARTS this->find_place(part);
    }
    enter_blocks(step_ + 1);
    delay_.next();
    window_ = this->reader_.window(at_);
    taken_ = 0;
  }
  L3_INLINE void end_step() {
    if (!is_steady()) {
      L3_FOR_USED_PARTS this->next_column(part, period_);
    }
    finish_step();
  }
  L3_INLINE void finish_step() {
    this->sink_.end_step(step_);
    if (now_ == steps_[kSteps]) move_steps();
    ++step_;
  }
  bool is_steady() const { return step_ > steady_.begin && step_ < steady_.end; }

  // Puts the lanes where they are in this step.
  void place_lanes() {
    uint32_t columns[kLanes], rows[kLanes];
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const bool has_begun = lane < lanes_ && step_ >= 2 * lane;
      columns[lane] = has_begun ? (step_ - 2 * lane) % period_ : 0;
      rows[lane] = has_begun ? (step_ - 2 * lane) / period_ * lanes_ + lane : 1u << 30;
    }
    L3_FOR_PARTS {
      column_[part] = W::load(columns + part * kPartLanes);
      row_[part] = W::load(rows + part * kPartLanes);
    }
  }

  // ---- records

  // The records of a step: in the lanes that decoded them, moved up by one lane, and by two.
  enum Kind : uint32_t { kOwn, kAbove, kAboveTwo, kKinds };
  static constexpr uint32_t kStepRecords = kKinds * kArrays * kLanes;
  using Step = uint16_t[kStepRecords];
  L3_INLINE uint32_t first_records() const { return this->first_part() / W::kPartsOfRecords; }
  L3_INLINE uint32_t end_records() const { return ceil_div(this->end_part(), W::kPartsOfRecords); }

  // Where a neighbour is, relative to the records of the step. It was decoded so many steps before.
  L3_INLINE static constexpr int32_t place_of(NeighbourRole role, uint32_t array) {
    constexpr uint32_t kStepsBefore[kRoles] = {1, 2, 3, 1, 2, 4, 3, 4};
    constexpr Kind kKindOf[kRoles] = {kOwn, kAbove, kAbove, kAbove, kOwn, kAboveTwo, kAboveTwo, kAbove};
    return static_cast<int32_t>(place_of(kKindOf[role], array)) -
           static_cast<int32_t>(kStepsBefore[role] * kStepRecords);
  }
  L3_INLINE static constexpr uint32_t place_of(Kind kind, uint32_t array) { return (kind * kArrays + array) * kLanes; }

  // Keeps an array's records of the step at `here`, in all three orders. `ends` are those of this step.
  template <class Ends>
  L3_INLINE static void keep(uint16_t* here, uint32_t array, const Records (&records)[kRecordParts], const Ends& ends) {
    L3_UNROLL_RECORDS W::store_records(here + place_of(kOwn, array) + part * kRecords, records[part]);
    const Records from_last = ends.hand_over(array, here + place_of(kOwn, array));
    L3_UNROLL_RECORDS {
      const Records before = part == 0 ? from_last : records[part - 1];
      W::store_records(here + place_of(kAbove, array) + part * kRecords, W::shift_up_one(records[part], before));
      W::store_records(here + place_of(kAboveTwo, array) + part * kRecords, W::shift_up_two(records[part], before));
    }
  }

  // ---- edges

  enum EdgeKind : uint32_t { kRow0 = 1, kRow1 = 2, kFirstColumn = 4, kLastColumn = 8 };
  struct Edge {
    uint32_t lane, kinds;
  };

  // Finds the lanes that are at the tile's edges in a step: at most four.
  L3_INLINE void find_edges(uint32_t step) {
    edge_count_ = 0;
    if (++lead_ == period_) {
      lead_ = 0;
      lead_row_ += lanes_;
    }
    first_ = last_ = kLanes;
    if (lead_ + 1 >= 2 * lanes_ && lead_ + 1 < width_ && step >= row_1_begin_ + width_) return;
    const auto lane_at = [&](uint32_t column) __attribute__((always_inline)) {
      const uint32_t behind = lead_ >= column ? lead_ - column : lead_ + period_ - column;
      return behind % 2 == 0 && behind / 2 < lanes_ && step >= behind ? behind / 2 : kLanes;
    };
    const auto add = [&](uint32_t lane, uint32_t kind) __attribute__((always_inline)) {
      if (lane >= kLanes) return;
      for (uint32_t i = 0; i < edge_count_; ++i) {
        if (edges_[i].lane == lane) {
          edges_[i].kinds |= kind;
          return;
        }
      }
      edges_[edge_count_++] = {lane, kind};
    };
    last_ = lane_at(width_ - 1);
    first_ = lane_at(0);
    add(first_, kFirstColumn);
    add(last_, kLastColumn);
    if (step < width_) add(0, kRow0);
    if (step - row_1_begin_ < width_) add(smaller(lanes_ - 1, 1), kRow1);
  }
  // Corrects the neighbours of these lanes (section 13.3) in the arrays `from` to `end` - 1.
  template <uint32_t from, uint32_t end>
  L3_INLINE void fix_edges() {
    if constexpr (from < end) {
      for (uint32_t i = 0; i < edge_count_; ++i) fix_edge<from>(edges_[i]);
      fix_edges<from + 1, end>();
    }
  }
  template <uint32_t array>
  L3_INLINE void fix_edge(const Edge edge) {
    uint16_t* const now = held(now_ + edge.lane);
    const auto at = [&](NeighbourRole role) __attribute__((always_inline))->uint16_t& {
      return now[place_of(role, array)];
    };
    if (edge.kinds == kFirstColumn) {
      at(kRoleW) = at(kRoleWw) = at(kRoleNw) = at(kRoleNww) = at(kRoleN);
    } else if (edge.kinds == kRow0) {
      at(kRoleN) = at(kRoleNw) = at(kRoleNww) = at(kRoleNe) = at(kRoleNn) = at(kRoleNne) = at(kRoleW);
    } else if (edge.kinds == kRow1) {
      at(kRoleNn) = at(kRoleN);
      at(kRoleNne) = at(kRoleNe);
    } else {
      fix_any_edge<array>(edge);
    }
  }
  template <uint32_t array>
  __attribute__((noinline)) void fix_any_edge(const Edge edge) {
    uint16_t* const now = now_ + edge.lane;
    const auto at = [&](NeighbourRole role) __attribute__((always_inline))->uint16_t& {
      return now[place_of(role, array)];
    };
    const bool row_0 = (edge.kinds & kRow0) != 0, row_0_or_1 = (edge.kinds & (kRow0 | kRow1)) != 0,
               first_column = (edge.kinds & kFirstColumn) != 0, last_column = (edge.kinds & kLastColumn) != 0;
    if (last_column) right_[array] = {at(kRoleNe), at(kRoleNne)};
    if (row_0) at(kRoleN) = first_column ? none_[array] : at(kRoleW);
    const uint16_t n = at(kRoleN);
    if (first_column) at(kRoleW) = at(kRoleWw) = n;
    if (first_column || row_0) at(kRoleNw) = at(kRoleNww) = n;
    if (last_column || row_0) at(kRoleNe) = n;
    if (row_0_or_1) at(kRoleNn) = n;
    if (row_0_or_1) {
      at(kRoleNne) = at(kRoleNe);
    } else if (last_column) {
      at(kRoleNne) = at(kRoleNn);
    }
  }
  // NE and NNE of the last column are neighbours of the next pixel too, which is in another row.
  L3_INLINE void restore_edges() {
    if (last_ >= kLanes) return;
    for (uint32_t array = 0; array < kArrays; ++array) {
      now_[place_of(kRoleNe, array) + static_cast<int32_t>(last_)] = right_[array].ne;
      now_[place_of(kRoleNne, array) + static_cast<int32_t>(last_)] = right_[array].nne;
    }
  }

  // ---- blocks

  // Finds the lanes that enter a block in a step, and the classes of these blocks.
  L3_INLINE void enter_blocks(uint32_t step) {
    entered_count_ = 0;
    for (uint32_t lanes = entering_[step % kBlockEdge]; lanes != 0; lanes &= lanes - 1) {
      const uint32_t lane = static_cast<uint32_t>(__builtin_ctz(lanes));
      const Enter enter = enters_[lane];
      if (enter.step != step) continue;
      const uint32_t block = (enter.row >> 4) * this->blocks_across() + (enter.column >> 4);
      const uint32_t still = still_rows_ != nullptr && still_rows_->is_still(enter.column, enter.row) ? kStillBlock : 0;
      entered_[entered_count_++] = {lane, classes_[block] | still};
      to_next_block(lane);
    }
  }
  struct Entered {
    uint32_t lane, classes;
  };

  // What the first two lanes need of the last two, a row later: pairs of records, the lower lane first.
  class Delay {
    // Goes round in the pairs.
    struct Cursor {
      uint32_t steps = 1, at = 0, next = 0;
      L3_INLINE void advance() {
        at = next;
        next = next + 1 == steps ? 0 : next + 1;
      }
    };

   public:
    void clear(uint32_t steps) {
      cursor_.steps = steps;
      std::memset(pairs_, 0, sizeof(pairs_[0]) * steps);
    }
    L3_INLINE void next() { cursor_.advance(); }
    // The two ends of the delay in a step: a copy, so that nothing that is stored changes it.
    struct Ends {
      uint16_t (*to)[2];
      const uint16_t (*from)[2];
      uint32_t lanes;

      // Takes the last lanes' records of an array. Returns those for the first lanes, in the last lanes of a vector.
      L3_INLINE Records hand_over(uint32_t array, const uint16_t* records) const {
        to[array][1] = records[lanes - 1];
        to[array][0] = lanes > 1 ? records[lanes - 2] : from[array][1];
        return W::repeat_two(from[array]);
      }
    };
    L3_INLINE Ends ends(uint32_t lanes) { return {pairs_[cursor_.at], pairs_[cursor_.next], lanes}; }
    // For several steps of a tile of more than one lane, without the other members.
    class Run {
     public:
      L3_INLINE explicit Run(Delay& delay) : all_(delay.pairs_), cursor_(delay.cursor_) {}
      L3_INLINE void next() { cursor_.advance(); }
      // Takes the last two lanes' records of an array, or zeros.
      L3_INLINE void put(uint32_t array, const uint16_t* last) { std::memcpy(all_[cursor_.at][array], last, 4); }
      L3_INLINE void put_nothing(uint32_t array) { std::memset(all_[cursor_.at][array], 0, 4); }
      L3_INLINE const uint16_t* get(uint32_t array) const { return all_[cursor_.next][array]; }

     private:
      friend Delay;
      uint16_t (*all_)[kArrays][2];
      Cursor cursor_;
    };
    L3_INLINE Run run() { return Run(*this); }
    L3_INLINE void end(const Run& run) { cursor_ = run.cursor_; }

   private:
    Cursor cursor_;
    uint16_t pairs_[kMaxTileEdge][kArrays][2];
  };

  const uint32_t period_;
  uint32_t step_ = 0;
  // The column and the row of lane 0, in the step that find_edges() was last called for.
  uint32_t lead_ = UINT32_MAX, lead_row_ = 0;
  uint32_t first_ = kLanes, last_ = kLanes;  // the lanes in the first and the last column
  uint32_t edge_count_ = 0, entered_count_ = 0;
  Window window_;
  uint32_t taken_ = 0;
  uint16_t* now_ = steps_[kBack];  // the records of the step
  Edge edges_[4];
  Entered entered_[kLanes];
  Delay delay_;
  uint32_t noisy_ = UINT32_MAX;            // for TokenLoop: a bit for each of steps_ that may have errors other than 0
  const StillRows* still_rows_ = nullptr;  // null if nothing is still
  alignas(64) Step steps_[kSteps + 1];

 private:
  // Moves the last steps' records to the front.
  void move_steps() {
    for (uint32_t i = 0; i < kBack * kStepRecords; i += kRecords) {
      W::store_records(held(steps_[0] + i), W::load_records(steps_[kSteps - kBack] + i));
    }
    now_ = steps_[kBack];
    constexpr uint32_t kFirst = (1u << kBack) - 1;
    noisy_ = (noisy_ & ~kFirst) | (noisy_ >> (kSteps - kBack) & kFirst);
  }

  L3_INLINE void to_next_block(uint32_t lane) {
    Enter& enter = enters_[lane];
    if (announced_ != Announced::once) {
      uint32_t next = enter.column + kBlockEdge;
      if (announced_ == Announced::changes ||
          (announced_ == Announced::busy && still_rows_->is_still(enter.column, enter.row))) {
        next = still_rows_->next_change(enter.column, enter.row);
      }
      if (next < width_) {
        enter.step += next - enter.column;
        enter.column = next;
        return;
      }
    }
    entering_[enter.step % kBlockEdge] &= ~(1u << lane);
    enter.step += period_ - enter.column;
    enter.column = 0;
    enter.row += lanes_;
    if (announced_ != Announced::once && enter.row < height_) entering_[enter.step % kBlockEdge] |= 1u << lane;
  }

  // When a lane enters its next block, and where.
  struct Enter {
    uint32_t step, column, row;
  };
  struct Right {
    uint16_t ne, nne;
  };

  const uint32_t row_1_begin_ = lanes_ > 1 ? 2 : period_;  // the step in which row 1 begins
  const uint16_t* none_ = nullptr;
  Announced announced_ = Announced::none;
  SteadySteps steady_;
  Right right_[kArrays];
  uint32_t entering_[kBlockEdge] = {};  // a bit for each lane, by step
  Enter enters_[kLanes];
};

}  // namespace l3
