// What loops over the steps of a tile keep of the pixels of the last steps: records, a number for each lane, in kArrays
// arrays. They are kept in three orders: by lane, moved up by one lane and moved up by two. So each neighbour of all
// lanes' pixels is a vector at a fixed place, and nothing is moved when lanes advance.
//
// At the edges of the tile, neighbours are corrected in place. In a step this concerns at most four lanes.
#pragma once

#include <cstring>

#include "engine/vectors.h"

// Loops over vectors of records: over all of them, unrolled, so that what is kept for each stays in registers.
#if defined(__clang__)
#define L3_UNROLL_UP_TO(parts) _Pragma("clang loop unroll(full)") for (uint32_t part = 0; part < (parts); ++part)
#else
#define L3_UNROLL_UP_TO(parts) _Pragma("GCC unroll 32") for (uint32_t part = 0; part < (parts); ++part)
#endif

namespace l3 {

// The neighbours of a pixel.
enum NeighbourRole : uint32_t { kRoleW, kRoleN, kRoleNw, kRoleNe, kRoleWw, kRoleNn, kRoleNne, kRoleNww, kRoles };

// A warp's vectors of records of 16 bits, or of bytes.
template <class W, class Number>
struct RecordsOf {
  using Vector = typename W::Records;
  static constexpr uint32_t kCount = W::kRecords, kParts = W::kRecordParts;
};
template <class W>
struct RecordsOf<W, uint8_t> {
  using Vector = typename W::ByteRecords;
  static constexpr uint32_t kCount = W::kByteRecords, kParts = W::kByteParts;
};

// The edges of the tile at which a lane is. Both are one number, so that they are loaded as they were stored: vectors
// of two numbers would wait for both stores.
enum EdgeKind : uint32_t { kRow0 = 1, kRow1 = 2, kFirstColumn = 4, kLastColumn = 8 };
struct Edge {
  uint32_t lane_and_kinds = 0;

  L3_INLINE static constexpr Edge of(uint32_t lane, uint32_t kinds) { return {kinds << 8 | lane}; }
  L3_INLINE constexpr uint32_t lane() const { return lane_and_kinds & 0xFF; }
  L3_INLINE constexpr uint32_t kinds() const { return lane_and_kinds >> 8; }
};

// kSteps: of how many steps records are kept before the last ones are moved to the front.
template <class W, class Number, uint32_t kArrays, uint32_t kSteps = 18>
class StepRecords {
 public:
  using Records = typename RecordsOf<W, Number>::Vector;
  static constexpr uint32_t kRecords = RecordsOf<W, Number>::kCount, kRecordParts = RecordsOf<W, Number>::kParts;
  static constexpr uint32_t kBack = 4;  // how far back neighbours are

  // The records of a step: in the lanes that decoded them, moved up by one lane, and by two.
  enum Kind : uint32_t { kOwn, kAbove, kAboveTwo, kKinds };
  static constexpr uint32_t kStepRecords = kKinds * kArrays * kLanes;
  using Step = Number[kStepRecords];

  // `none`: for each array, the record of the first pixel's neighbours, which do not exist.
  void begin(const Number* none) {
    none_ = none;
    std::memset(steps_, 0, sizeof(Step) * kBack);
  }

  // Where a neighbour is, relative to the records of the step. It was decoded so many steps before.
  L3_INLINE static constexpr int32_t place_of(NeighbourRole role, uint32_t array) {
    constexpr uint32_t kStepsBefore[kRoles] = {1, 2, 3, 1, 2, 4, 3, 4};
    constexpr Kind kKindOf[kRoles] = {kOwn, kAbove, kAbove, kAbove, kOwn, kAboveTwo, kAboveTwo, kAbove};
    return static_cast<int32_t>(place_of(kKindOf[role], array)) -
           static_cast<int32_t>(kStepsBefore[role] * kStepRecords);
  }
  L3_INLINE static constexpr uint32_t place_of(Kind kind, uint32_t array) { return (kind * kArrays + array) * kLanes; }
  L3_INLINE static Records near(const Number* now, NeighbourRole role, uint32_t array) {
    return W::load_records(now + place_of(role, array));
  }

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
      Number (*to)[2];
      const Number (*from)[2];
      uint32_t lanes;

      // Takes the last lanes' records of an array. Returns those for the first lanes, in the last lanes of a vector.
      L3_INLINE Records hand_over(uint32_t array, const Number* records) const {
        to[array][1] = records[lanes - 1];
        to[array][0] = lanes > 1 ? records[lanes - 2] : from[array][1];
        return W::repeat_two(from[array]);
      }
    };
    L3_INLINE Ends ends(uint32_t lanes) { return {pairs_[cursor_.at], pairs_[cursor_.next], lanes}; }
    // Goes on by several steps whose records are all 0.
    void pass(uint32_t steps) {
      for (; steps > 0; --steps) {
        cursor_.advance();
        std::memset(pairs_[cursor_.at], 0, sizeof(pairs_[0]));
      }
    }
    // For several steps of a tile of more than one lane, without the other members.
    class Run {
     public:
      L3_INLINE explicit Run(Delay& delay) : all_(delay.pairs_), cursor_(delay.cursor_) {}
      L3_INLINE void next() { cursor_.advance(); }
      // Takes the last two lanes' records of an array.
      L3_INLINE void put(uint32_t array, const Number* last) {
        std::memcpy(all_[cursor_.at][array], last, 2 * sizeof(Number));
      }
      L3_INLINE const Number* get(uint32_t array) const { return all_[cursor_.next][array]; }

     private:
      friend Delay;
      Number (*all_)[kArrays][2];
      Cursor cursor_;
    };
    L3_INLINE Run run() { return Run(*this); }
    L3_INLINE void end(const Run& run) { cursor_ = run.cursor_; }

   private:
    Cursor cursor_;
    Number pairs_[kMaxTileEdge][kArrays][2];
  };

  // Keeps an array's records of the step at `here`, in all three orders. `ends` are those of this step.
  L3_INLINE static void keep(Number* here, uint32_t array, const Records (&records)[kRecordParts],
                             const typename Delay::Ends& ends) {
    L3_UNROLL_UP_TO(kRecordParts) W::store_records(here + place_of(kOwn, array) + part * kRecords, records[part]);
    const Records from_last = ends.hand_over(array, here + place_of(kOwn, array));
    L3_UNROLL_UP_TO(kRecordParts) {
      const Records before = part == 0 ? from_last : records[part - 1];
      W::store_records(here + place_of(kAbove, array) + part * kRecords, W::shift_up_one(records[part], before));
      W::store_records(here + place_of(kAboveTwo, array) + part * kRecords, W::shift_up_two(records[part], before));
    }
  }

  // ---- edges

  // Corrects the neighbours of these lanes (section 13.3) in the arrays `from` to `end` - 1.
  template <uint32_t from, uint32_t end>
  L3_INLINE void fix_edges(const Edge* edges, uint32_t count) {
    if constexpr (from < end) {
      for (uint32_t i = 0; i < count; ++i) fix_edge<from>(edges[i]);
      fix_edges<from + 1, end>(edges, count);
    }
  }
  // NE and NNE of the last column are neighbours of the next pixel too, which is in another row. `last`: the lane in
  // the last column.
  L3_INLINE void restore_edges(uint32_t last) {
    if (last >= kLanes) return;
    for (uint32_t array = 0; array < kArrays; ++array) {
      now_[place_of(kRoleNe, array) + static_cast<int32_t>(last)] = right_[array].ne;
      now_[place_of(kRoleNne, array) + static_cast<int32_t>(last)] = right_[array].nne;
    }
  }

  // Makes room for the records of the step. Returns whether those of the last steps were moved to the front.
  L3_INLINE bool make_room() {
    if (now_ != steps_[kSteps]) return false;
    for (uint32_t i = 0; i < kBack * kStepRecords; i += kRecords) {
      W::store_records(held(steps_[0] + i), W::load_records(steps_[kSteps - kBack] + i));
    }
    now_ = steps_[kBack];
    return true;
  }

  Number* now_ = steps_[kBack];  // the records of the step
  Delay delay_;
  alignas(64) Step steps_[kSteps + 1];

 private:
  struct Right {
    Number ne, nne;
  };

  template <uint32_t array>
  L3_INLINE void fix_edge(const Edge edge) {
    Number* const now = held(now_ + edge.lane());
    const auto at = [&](NeighbourRole role) __attribute__((always_inline))->Number& {
      return now[place_of(role, array)];
    };
    if (edge.kinds() == kFirstColumn) {
      at(kRoleW) = at(kRoleWw) = at(kRoleNw) = at(kRoleNww) = at(kRoleN);
    } else if (edge.kinds() == kRow0) {
      at(kRoleN) = at(kRoleNw) = at(kRoleNww) = at(kRoleNe) = at(kRoleNn) = at(kRoleNne) = at(kRoleW);
    } else if (edge.kinds() == kRow1) {
      at(kRoleNn) = at(kRoleN);
      at(kRoleNne) = at(kRoleNe);
    } else {
      fix_any_edge<array>(edge);
    }
  }
  template <uint32_t array>
  __attribute__((noinline)) void fix_any_edge(const Edge edge) {
    Number* const now = now_ + edge.lane();
    const auto at = [&](NeighbourRole role) __attribute__((always_inline))->Number& {
      return now[place_of(role, array)];
    };
    const bool row_0 = (edge.kinds() & kRow0) != 0, row_0_or_1 = (edge.kinds() & (kRow0 | kRow1)) != 0,
               first_column = (edge.kinds() & kFirstColumn) != 0, last_column = (edge.kinds() & kLastColumn) != 0;
    if (last_column) right_[array] = {at(kRoleNe), at(kRoleNne)};
    if (row_0) at(kRoleN) = first_column ? none_[array] : at(kRoleW);
    const Number n = at(kRoleN);
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

  const Number* none_ = nullptr;
  Right right_[kArrays];
};

}  // namespace l3
