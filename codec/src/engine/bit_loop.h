// Decodes a tile with a bit model on a processor (section 24 of the spec). GPUs have kernels/src/bit_decoder.cuh.
//
// A lane's history is a record: its last 16 bits, the last one lowest. Of each row that has neighbours, the loop keeps
// a vector of histories: those of the lanes themselves, of the lanes above them, two above and three above. So a few
// shifts give the contexts of all lanes.
//
// Only two neighbours were decoded in the step before. The other ones are known a step earlier, and then the four
// frequencies that are left are looked up. So no look-up is in the chain from a step to the next one.
#pragma once

#include <algorithm>

#include "engine/bit_rows.h"
#include "engine/record_loop.h"
#include "engine/token_warp.h"

// Over all parts of a warp, unrolled.
#if defined(__clang__)
#define L3_UNROLL_PARTS _Pragma("clang loop unroll(full)") for (uint32_t part = 0; part < kParts; ++part)
#else
#define L3_UNROLL_PARTS _Pragma("GCC unroll 8") for (uint32_t part = 0; part < kParts; ++part)
#endif

namespace l3 {

struct AsTheyAre {
  L3_INLINE uint32_t operator[](uint32_t i) const { return i; }
};

// The bits of four histories side by side that the next step's contexts have. The uppermost row is in the lowest bits.
inline uint64_t bits_ahead(const BitTables& tables) {
  uint64_t bits = 0;
  for (uint32_t i = 0; i < tables.count; ++i) {
    const uint32_t neighbour = tables.neighbours[i];
    if (neighbour % kBitColumns != 0) bits |= uint64_t{1} << (bit_order(neighbour) - 1);
  }
  return bits;
}

// The contexts of lanes as DenseWarp::look_up_places() takes them. These are stored.
struct StoredContexts {
  const uint16_t* of;
  L3_INLINE StoredContexts operator+(uint32_t lanes) const { return {of + lanes}; }
  L3_INLINE uint32_t operator[](uint32_t lane) const { return of[lane]; }
};
template <class F>
L3_INLINE auto at_two_places(AsTheyAre, const Bucket* fours, StoredContexts contexts, const F& f) {
  uint32_t two;
  std::memcpy(&two, contexts.of, sizeof(two));
  return f(fours + two % 65536, fours + (two >> 16));
}

// These are extracted from the histories of a lane and of the three above it, which lie side by side in memory: those
// of lanes in `own`, those of the lanes three above in `above`. A load should not span two vectors that were just
// stored, so the first lanes of a vector are taken from `above`.
template <class W>
struct ExtractedContexts {
  const uint16_t *own, *above;
  uint64_t bits;
  uint32_t lane;
  L3_INLINE ExtractedContexts operator+(uint32_t lanes) const { return {own, above, bits, lane + lanes}; }
  L3_INLINE uint64_t operator[](uint32_t i) const {
    const uint32_t at = lane + i;
    uint64_t four;
    std::memcpy(&four, at % W::kRecords >= kBitRows - 1 ? own + at - (kBitRows - 1) : above + at, sizeof(four));
    return W::extract(four, bits);
  }
};
template <class W, class F>
L3_INLINE auto at_two_places(AsTheyAre, const Bucket* fours, const ExtractedContexts<W>& contexts, const F& f) {
  return f(fours + contexts[0], fours + contexts[1]);
}

// Parts of contexts: bits of a row of histories that are adjacent in the context too.
struct BitRuns {
  struct Run {
    uint32_t row;
    int shift;
    uint16_t mask;  // after the shift
  };
  uint32_t lower = 0, higher = 0;  // how many are shifted down, and up
  Run down[kMaxBitNeighbours], up[kMaxBitNeighbours];

  explicit BitRuns(const BitTables& tables) {
    uint64_t left = bits_ahead(tables);
    for (uint32_t to = 0, end; left != 0; to = end) {
      const auto first = static_cast<uint32_t>(__builtin_ctzll(left));
      const uint32_t row = kBitRows - 1 - first / kBitColumns, column = first % kBitColumns;
      uint32_t count = 0;
      for (; column + count < kBitColumns && (left >> (first + count) & 1) != 0; ++count) {
        left &= ~(uint64_t{1} << (first + count));
      }
      end = to + count;
      const auto mask = static_cast<uint16_t>((1u << end) - (1u << to));
      if (column >= to) {
        down[lower++] = {row, static_cast<int>(column - to), mask};
      } else {
        up[higher++] = {row, static_cast<int>(to - column), mask};
      }
    }
  }
};

template <class W>
class BitLoop : Wavefront<W, BitRows<W>> {
  using Base = Wavefront<W, BitRows<W>>;
  using Base::at_, Base::ending_, Base::height_, Base::lanes_, Base::payload_bytes_, Base::sink_, Base::state_,
      Base::width_;
  using typename Base::Classes, typename Base::Lanes, typename Base::Mask;
  using Records = typename W::Records;
  static constexpr uint32_t kParts = W::kParts, kRecordParts = W::kRecordParts, kPartLanes = W::kPartLanes,
                            kRecords = W::kRecords, kPartsOfRecords = W::kPartsOfRecords;
  // Whether the processor extracts bits of a word. Then only two of the rows of histories are needed.
  static constexpr bool kExtracts = requires { W::extract(uint64_t{}, uint64_t{}); };

 public:
  BitLoop(const TileShape& shape, const TileEntry& entry, const BitTables& tables, BitRows<W>& sink, Classes& classes)
      : Base(shape, entry, sink, classes),
        tables_(tables),
        runs_(tables),
        bits_ahead_(bits_ahead(tables)),
        period_(dense_period(width_, lanes_)),
        steps_(dense_steps(width_, height_, lanes_)) {
    // The lanes above lane 0 are the last lanes, a row of lanes earlier.
    const uint32_t delay = period_ - 2 * lanes_;
    for (uint32_t i = 0; i < kBitRows - 1; ++i) {
      const uint32_t rows = i / lanes_ + 1;
      above_[i] = {rows * delay, rows * lanes_ - 1 - i};
    }
    std::fill(bits_ + kKept - above_[kBitRows - 2].delay, bits_ + kKept, 0);
    for (auto& row : histories_) std::fill_n(row, kRecordParts, W::all_records(0));
    for (auto& newest : newest_) std::fill_n(newest, kRecordParts, W::all_records(0));
    look_up(own_, other_);
  }

  Fault decode() {
    this->load_states();
    sink_.save_states(0, at_, state_);
    sink_.begin(width_, height_, lanes_);
    const SteadySteps steady = SteadySteps::of(width_, height_, lanes_, ending_);
    for (uint32_t step = 0, end; step < steps_; step = end) {
      const LaneSets sets = sets_at(step);
      end = step + 1;
      const auto is_steady = [&](uint32_t at) { return at > steady.begin && at < steady.end; };
      if (is_steady(step)) {
        end = steady.end;
      } else {
        while (end < steps_ && !is_steady(end) && sets_at(end) == sets) ++end;
      }
      if (!run(step, end, sets)) return {Reason::dense_words, payload_bytes_};
    }
    return this->check_end();
  }

 private:
  // A bit for each lane: whether it decodes a bit in a step, and whether it may take a word then.
  struct LaneSets {
    uint32_t active, refills;
    bool operator==(const LaneSets& other) const { return active == other.active && refills == other.refills; }
  };
  LaneSets sets_at(uint32_t step) const {
    LaneSets sets{};
    // Lane l is at column `lead - 2 l` of its row.
    const uint32_t lead = step % period_, turn = step / period_;
    for (uint32_t lane = 0; lane < smaller(lanes_, step / 2 + 1); ++lane) {
      const bool is_behind = lead < 2 * lane;
      const uint32_t column = is_behind ? lead + period_ - 2 * lane : lead - 2 * lane;
      const uint32_t row = (turn - is_behind) * lanes_ + lane;
      if (column >= width_ || row >= height_) continue;
      sets.active |= 1u << lane;
      if (!ending_.has(column, row)) sets.refills |= 1u << lane;
    }
    return sets;
  }
  // The lanes of a part that are in a set.
  L3_INLINE static Mask mask_of(uint32_t set, uint32_t part) {
    alignas(64) uint32_t of[kPartLanes];
    for (uint32_t i = 0; i < kPartLanes; ++i) of[i] = set >> (part * kPartLanes + i) & 1;
    return W::at_least(W::load(of), 1);
  }

  // Decodes steps in which the same lanes decode.
  bool run(uint32_t step, uint32_t end, const LaneSets& sets) {
    Mask active[kParts], refills[kParts];
    for (uint32_t part = 0; part < kParts; ++part) {
      active[part] = mask_of(sets.active, part);
      refills[part] = mask_of(sets.refills, part);
    }
    const bool all = kParts * kPartLanes == 32 ? sets.active == UINT32_MAX
                                               : sets.active == (uint64_t{1} << (kParts * kPartLanes)) - 1;
    // Lanes that may take no words are only in endings.
    return all && sets.refills == sets.active ? run_as<true>(step, end, active, refills)
                                              : run_as<false>(step, end, active, refills);
  }
  template <bool kAll>
  L3_STAGE bool run_as(uint32_t step, uint32_t end, const Mask (&active)[kParts], const Mask (&refills)[kParts]) {
    Lanes states[kParts], own[kParts], other[kParts];
    Records newest[2][kRecordParts];
    std::copy_n(state_, kParts, states);
    std::copy_n(own_, kParts, own);
    std::copy_n(other_, kParts, other);
    for (uint32_t i = 0; i < 2; ++i) std::copy_n(newest_[i], kRecordParts, newest[i]);
    bool has_words = true;
    for (; step < end && has_words; ++step) {
      const auto window = this->reader_.window(at_);
      uint32_t taken = 0;
      Lanes frequencies[kParts];
      L3_UNROLL_PARTS {
        const Lanes two = W::select(W::lane_mask(newest[1], part), other[part], own[part]);
        frequencies[part] = W::select(W::lane_mask(newest[0], part), two >> 16, two & constant<0xFFFF>);
      }
      look_up(own, other);
      Mask ones[kParts];
      L3_UNROLL_PARTS {
        const Lanes state = states[part], slot = state & constant<kProbabilities - 1>, f = frequencies[part];
        const Lanes product = f * (state >> kProbabilityBits);
        ones[part] = W::less_small(slot, f);
        const Lanes next = W::select(ones[part], product + slot, state - product - f);
        states[part] = kAll ? next : W::select(active[part], next, state);
        if (!kAll) ones[part] = W::both(ones[part], active[part]);
      }
      L3_UNROLL_PARTS {
        const Mask low = W::below_floor(states[part]);
        W::refill(states[part], kAll ? low : W::both(refills[part], low), window, taken);
      }
      keep(step, ones, newest);
      has_words = this->advance(taken);
    }
    std::copy_n(states, kParts, state_);
    std::copy_n(own, kParts, own_);
    std::copy_n(other, kParts, other_);
    for (uint32_t i = 0; i < 2; ++i) std::copy_n(newest[i], kRecordParts, newest_[i]);
    return has_words;
  }

  // Looks up the frequencies of the next step, four for each lane.
  L3_INLINE void look_up(Lanes (&own)[kParts], Lanes (&other)[kParts]) const {
    if constexpr (kExtracts) {
      look_up_at(ExtractedContexts<W>{reinterpret_cast<const uint16_t*>(histories_[0]),
                                      reinterpret_cast<const uint16_t*>(histories_[kBitRows - 1]), bits_ahead_, 0},
                 own, other);
    } else {
      alignas(64) uint16_t contexts[kRecordParts * kRecords];
      L3_UNROLL_RECORDS W::store_records(contexts + part * kRecords, context(part));
      look_up_at(StoredContexts{contexts}, own, other);
    }
  }
  template <class Contexts>
  L3_INLINE void look_up_at(const Contexts& contexts, Lanes (&own)[kParts], Lanes (&other)[kParts]) const {
    L3_UNROLL_PARTS {
      W::look_up_places(AsTheyAre{}, tables_.fours, contexts + part * kPartLanes, own[part], other[part]);
    }
  }
  // The contexts of a vector of lanes in the next step.
  L3_INLINE Records context(uint32_t i) const {
    Records context = W::all_records(0);
    for (uint32_t k = 0; k < runs_.lower; ++k) {
      const BitRuns::Run& run = runs_.down[k];
      context = W::either(context, W::both(histories_[run.row][i] >> run.shift, W::all_records(run.mask)));
    }
    for (uint32_t k = 0; k < runs_.higher; ++k) {
      const BitRuns::Run& run = runs_.up[k];
      context = W::either(context, W::both(histories_[run.row][i] << run.shift, W::all_records(run.mask)));
    }
    return context;
  }

  // Puts a step's bits into the histories. `newest`: these bits, by lane and by the lane below.
  L3_INLINE void keep(uint32_t step, const Mask (&ones)[kParts], Records (&newest)[2][kRecordParts]) {
    uint32_t bits = 0;
    L3_UNROLL_RECORDS {
      newest[0][part] = W::mask_records(ones + part * kPartsOfRecords);
      bits |= W::record_bits(newest[0][part]) << (part * kRecords % 32);
    }
    bits_[step % kKept] = bits;
    // Those of the lanes above lane 0, the uppermost first, and the first of these once more.
    const uint16_t ends[4] = {above(step, 1), above(step, 0), 0, above(step, 2)};
    Records before = W::repeat_two(ends), before_two = W::repeat_two(ends + 2);
    L3_UNROLL_RECORDS {
      const Records own = newest[0][part], two = W::shift_up_two(own, before);
      newest[1][part] = W::shift_up_one(own, before);
      push(0, part, own);
      if (!kExtracts) push(1, part, newest[1][part]);
      if (!kExtracts) push(2, part, two);
      push(3, part, W::shift_up_one(two, before_two));
      before = own;
      before_two = two;
    }
    if (step % BitRows<W>::kRun == BitRows<W>::kRun - 1 || step + 1 == steps_) put(step);
  }
  L3_INLINE void push(uint32_t row, uint32_t i, Records bits) {
    histories_[row][i] = W::difference(histories_[row][i] << 1, bits);
  }
  // All bits of a record if the lane that is `i + 1` above lane 0 decoded a 1.
  L3_INLINE uint16_t above(uint32_t step, uint32_t i) const {
    return static_cast<uint16_t>(0u - (bits_[(step - above_[i].delay) % kKept] >> above_[i].lane & 1));
  }
  // Hands over the pixels of the last steps.
  L3_INLINE void put(uint32_t step) {
    constexpr uint32_t kLast = BitRows<W>::kRun - 1;
    uint16_t* const to = sink_.place(step | kLast);
    const int missing = static_cast<int>((step | kLast) - step);
    L3_UNROLL_RECORDS W::store_records(to + part * kRecords, histories_[0][part] << missing);
    sink_.end_step(step);
  }

  static constexpr uint32_t kKept = 4096;  // steps whose bits are kept
  static_assert((kBitRows - 1) * kMaxTileEdge < kKept);

  const BitTables& tables_;
  const BitRuns runs_;
  const uint64_t bits_ahead_;
  const uint32_t period_, steps_;
  struct Above {
    uint32_t delay, lane;
  };
  Above above_[kBitRows - 1];
  Lanes own_[kParts], other_[kParts];  // the frequencies of the next step
  Records newest_[2][kRecordParts];
  Records histories_[kBitRows][kRecordParts];
  uint32_t bits_[kKept];  // a bit for each lane
};

// Puts the shapes of a tile whose bits are decoded.
template <class W>
Fault put_shapes(const TileShape& shape, const TileEntry& entry, const BitShapes& shapes, const BitRows<W>& rows) {
  const auto put = [&](const BitShape& of, int32_t x, int32_t y) {
    for (uint32_t i = 0; i < of.height; ++i, ++y) rows.put_ones(y, x, shapes.rows[of.first_row + i], shape.width);
  };
  const bool sound = ShapeList(entry.payload).read(shapes, shape.width, shape.height, put);
  return sound ? Fault{} : Fault{Reason::tile_shapes, 0};
}

template <class W>
Fault decode_bits_as(const TileShape& shape, const TileEntry& entry, const TileOutput& out, const BitTables& model) {
  BitRows<W> rows(out, model);
  typename W::Classes classes;
  TileEntry bits = entry;  // what is behind the list of shapes
  if (model.shapes.count != 0) {
    if (!ShapeList::is_in(entry.payload, entry.payload_bytes, dense_lanes(entry.parameters))) {
      return {Reason::tile_shapes, 0};
    }
    const uint32_t list_bytes = ShapeList(entry.payload).bytes();
    bits.payload += list_bytes;
    bits.payload_bytes -= list_bytes;
  }
  const Fault fault = BitLoop<W>(shape, bits, model, rows, classes).decode();
  if (fault.reason != Reason::none) return {fault.reason, fault.at + entry.payload_bytes - bits.payload_bytes};
  return model.shapes.count == 0 ? fault : put_shapes(shape, entry, model.shapes, rows);
}

template <class W>
Fault decode_bits(const TileShape& shape, const TileEntry& entry, const TileOutput& out, const BitTables& model) {
  const uint32_t lanes = dense_lanes(entry.parameters);
  if constexpr (W::kRecordParts > 1) {
    if (lanes <= W::kRecords) return decode_bits_as<FirstRecords<W, 1>>(shape, entry, out, model);
  }
  if constexpr (W::kRecordParts > 2) {
    if (lanes <= 2 * W::kRecords) return decode_bits_as<FirstRecords<W, 2>>(shape, entry, out, model);
  }
  return decode_bits_as<W>(shape, entry, out, model);
}

}  // namespace l3
