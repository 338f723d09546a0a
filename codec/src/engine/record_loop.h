// What the loops of processors over the steps of a tile share: DenseLoop and TokenLoop derive from RecordLoop.
//
// A step decodes one pixel in each lane. What later pixels need of it is kept as StepRecords.
#pragma once

#include "engine/step_records.h"
#include "engine/still_rows.h"
#include "engine/wavefront.h"

// Over all vectors of records, or over those that have work.
#define L3_UNROLL_RECORDS L3_UNROLL_UP_TO(kRecordParts)
#if defined(__clang__)
#define L3_FOR_USED_RECORDS for (uint32_t part = this->first_records(), end = this->end_records(); part < end; ++part)
#else
#define L3_FOR_USED_RECORDS \
  _Pragma("GCC unroll 1") for (uint32_t part = this->first_records(), end = this->end_records(); part < end; ++part)
#endif

namespace l3 {

template <class W, class Number, uint32_t kArrays, class Sink, uint32_t kSteps = 18>
class RecordLoop : protected Wavefront<W, Sink, 4>, protected StepRecords<W, Number, kArrays, kSteps> {
 protected:
  using Front = Wavefront<W, Sink, 4>;
  using Kept = StepRecords<W, Number, kArrays, kSteps>;
  using Front::active_, Front::at_, Front::classes_, Front::column_, Front::height_, Front::kParts, Front::lanes_,
      Front::row_, Front::width_;
  using typename Front::Classes, typename Front::Window;
  using typename Kept::Records;
  using Way = typename Front::Way;
  using Kept::delay_, Kept::kRecordParts, Kept::kRecords, Kept::now_;
  static constexpr uint32_t kPartLanes = W::kPartLanes;
  static constexpr uint32_t kPartsOfRecords =
      W::kParts / kRecordParts;  // so many parts of lanes to a vector of records

  RecordLoop(const TileShape& shape, const TileEntry& entry, Sink& sink, Classes& classes)
      : Front(shape, entry, sink, classes), period_(dense_period(shape.width, lanes_)) {}

  // ---- the way of the lanes

  // Puts the lanes to where they begin. `none`: see StepRecords. `blocks`: which blocks are announced by
  // enter_blocks(): none, the first one of each lane, or all; or, if there are still_rows_, the first one of each row
  // and those where the row begins or ends to be still; or also all others that are not still.
  enum class Announced { none, once, all, changes, busy };
  Way start(const Number* none, Announced blocks) {
    Kept::begin(none);
    announced_ = blocks;
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
    this->make_room();
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

  L3_INLINE uint32_t first_records() const { return kRecordParts == 1 ? 0 : this->first_part() / kPartsOfRecords; }
  L3_INLINE uint32_t end_records() const { return kRecordParts == 1 ? 1 : ceil_div(this->end_part(), kPartsOfRecords); }

  // ---- edges

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
        if (edges_[i].lane() == lane) {
          edges_[i] = Edge::of(lane, edges_[i].kinds() | kind);
          return;
        }
      }
      edges_[edge_count_++] = Edge::of(lane, kind);
    };
    last_ = lane_at(width_ - 1);
    first_ = lane_at(0);
    add(first_, kFirstColumn);
    add(last_, kLastColumn);
    if (step < width_) add(0, kRow0);
    if (step - row_1_begin_ < width_) add(smaller(lanes_ - 1, 1), kRow1);
  }
  template <uint32_t from, uint32_t end>
  L3_INLINE void fix_edges() {
    Kept::template fix_edges<from, end>(edges_, edge_count_);
  }
  L3_INLINE void restore_edges() { Kept::restore_edges(last_); }

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

  const uint32_t period_;
  uint32_t step_ = 0;
  // The column and the row of lane 0, in the step that find_edges() was last called for.
  uint32_t lead_ = UINT32_MAX, lead_row_ = 0;
  uint32_t first_ = kLanes, last_ = kLanes;  // the lanes in the first and the last column
  uint32_t edge_count_ = 0, entered_count_ = 0;
  Window window_;
  uint32_t taken_ = 0;
  Edge edges_[4];
  Entered entered_[kLanes];
  const StillRows* still_rows_ = nullptr;  // null if nothing is still

 private:
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

  const uint32_t row_1_begin_ = lanes_ > 1 ? 2 : period_;  // the step in which row 1 begins
  Announced announced_ = Announced::none;
  SteadySteps steady_;
  uint32_t entering_[kBlockEdge] = {};  // a bit for each lane, by step
  Enter enters_[kLanes];
};

}  // namespace l3
