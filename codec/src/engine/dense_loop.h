// Decodes a dense tile with a model of kind 0 on a processor (section 13 of the spec). GPUs have
// kernels/src/dense_decoder.cuh.
//
// A step decodes one pixel in each lane, channel after channel. For each channel, three kinds of work alternate:
//
// - on records, 16 bits for each lane: a sample in the lower byte and its error plus 128 in the upper byte. One
//   instruction multiplies both by their weights and adds them up. The records of the last steps are kept in three
//   orders: by lane, moved up by one lane and moved up by two. So each neighbour of a pixel is a vector at a fixed
//   place, and nothing is moved when lanes advance;
// - on planes, a byte for each lane: predictions, sign patterns, levels, samples;
// - lane by lane: looking up tables.
//
// At the edges of the tile, neighbours are corrected in place. In a step this concerns at most four lanes.
#pragma once

#include <cstring>
#include <type_traits>

#include "engine/dense_warp.h"
#include "engine/wavefront.h"

#define L3_STAGE __attribute__((noinline))
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
enum DenseRole : uint32_t { kRoleW, kRoleN, kRoleNw, kRoleNe, kRoleWw, kRoleNn, kRoleNne, kRoleNww, kRoles };

// How many neighbours of a channel have weights for their errors, and how many in each of the channels before have
// weights: W, N, NW.
constexpr uint32_t kRolesWithErrors = kRoleNne, kCrossRoles = 3;
// The weights of a channel, a pair for each record: those of its neighbours, of the neighbours in the one or two
// channels before, and of those channels here.
L3_INLINE constexpr uint32_t cross_pair(uint32_t before) { return kRoles + before * kCrossRoles; }
L3_INLINE constexpr uint32_t here_pair(uint32_t channel) { return cross_pair(cross_channels(channel)); }
L3_INLINE constexpr uint32_t dense_pairs(uint32_t channel) { return here_pair(channel) + cross_channels(channel); }
constexpr uint32_t kMaxPairs = dense_pairs(kMaxChannels - 1);
// The weights of an activity, in pairs: a difference of samples and an error; the errors at NW and NE; of the channels
// before, the sample (which counts for nothing) or the second error, and the first error.
enum DenseActivity : uint32_t {
  kActivityW,
  kActivityN,
  kActivityNn,
  kActivityWw,
  kActivityUpper,
  kActivityBefore,
  kActivityPairs
};

L3_INLINE int32_t tap_of(const uint32_t* words, uint32_t tap) {
  return static_cast<int8_t>(words[tap / kTapsOfWord] >> (8 * (tap % kTapsOfWord)));
}
// Calls `put` with each pair of weights of a predictor.
template <class Put>
L3_INLINE void for_dense_pairs(const uint32_t* words, uint32_t channel, const Put& put) {
  const auto error = [&](uint32_t i) { return tap_of(words, kErrorWord * kTapsOfWord + i); };
  const auto cross = [&](uint32_t before, uint32_t i) {
    return tap_of(words, (kCrossWord + before) * kTapsOfWord + i);
  };
  for (uint32_t role = 0; role < kRoles; ++role) {
    put(role, tap_of(words, role), role < kRolesWithErrors ? error(role) : 0);
  }
  for (uint32_t before = 0; before < cross_channels(channel); ++before) {
    for (uint32_t i = 0; i < kCrossRoles; ++i) put(cross_pair(before) + i, cross(before, i), 0);
    put(here_pair(channel) + before, cross(before, kCrossRoles), error(kRolesWithErrors + before));
  }
}

template <class W, uint32_t kChannels, class Sink>
class DenseLoop : Wavefront<W, Sink, 4> {
  using Front = Wavefront<W, Sink, 4>;
  using typename Front::Classes, typename Front::Lanes, typename Front::Mask, typename Front::Window;
  using Plane = typename W::Plane;
  using Records = typename W::Records;
  using Front::kParts;
  static constexpr uint32_t kPartLanes = W::kPartLanes, kRecords = W::kRecords, kRecordParts = W::kRecordParts;
  // A channel's weights: what sums begin with, then kWeightWords words for each pair.
  static constexpr uint32_t kWords = 1 + W::kWeightWords * kMaxPairs;
  static constexpr uint32_t kBack = 4, kSteps = 10;  // how far back neighbours are; steps whose records are kept

 public:
  DenseLoop(const TileShape& shape, const TileEntry& entry, const DenseTables& tables, Sink& sink, Classes& classes)
      : Front(shape, entry, sink, classes), tables_(tables), period_(dense_period(shape.width, lanes_)) {}

  Fault decode() {
    this->load_states();
    if (!decode_blocks() || !decode_samples()) return {Reason::dense_words, payload_bytes_};
    return this->check_end();
  }

 private:
  using Front::active_, Front::at_, Front::classes_, Front::column_, Front::height_, Front::lanes_,
      Front::payload_bytes_, Front::row_, Front::state_, Front::width_;

  bool decode_blocks() {
    for (uint32_t first = 0; first < this->blocks(); first += lanes_) {
      auto round = this->begin_round(first);
      this->decode_classes(round, tables_, kChannels);
      if (!this->end_round(round)) return false;
    }
    return true;
  }

  // Brings the model's weights and the lanes' places into the form that the loop needs.
  void prepare() {
    for (uint32_t c = 0; c < kChannels; ++c) {
      for (uint32_t k = 0; k < tables_.classes[c]; ++k) prepare_weights(c, k);
      has_classes_ = has_classes_ || tables_.classes[c] > 1;
      const auto term = [&](uint32_t i) {
        return static_cast<int32_t>(tables_.activity[c][i / 4] >> (8 * (i % 4)) & 0xFF);
      };
      const auto put = [&](uint32_t pair, int32_t low, int32_t high) {
        uint16_t words[W::kWeightWords];
        W::put_weights(low, high, words, 1);
        for (uint32_t i = 0; i < W::kWeightWords; ++i) {
          W::store_records(activity_[c][W::kWeightWords * pair + i], W::all_records(words[i]));
        }
      };
      put(kActivityW, term(8), term(0));
      put(kActivityN, term(9), term(1));
      put(kActivityNn, term(10), term(5));
      put(kActivityWw, 0, term(4));
      put(kActivityUpper, term(2), term(3));
      put(kActivityBefore, c > 1 ? term(7) : 0, term(6));
      const uint32_t contexts = rows(c) * kLevels;
      for (uint32_t i = 0; i < contexts; ++i) {
        first_bucket_[c][i] = static_cast<uint16_t>(tables_.table_of[c][i] * kTableBuckets);
      }
    }
    for (uint32_t lane = 0; lane < smaller(lanes_, height_); ++lane) {
      enters_[lane] = {2 * lane, 0, lane};
      entering_[2 * lane % kBlockEdge] |= 1u << lane;
    }
    if (period_ == width_) find_steady();
  }

  void prepare_weights(uint32_t c, uint32_t k) {
    uint16_t* const words = classes_weights_[c][k];
    int32_t begin = (1 << kWeightShift) / 2;
    for_dense_pairs(tables_.weights[c][k], c, [&](uint32_t pair, int32_t of_sample, int32_t of_error) {
      W::put_weights(of_sample, of_error, words + 1 + W::kWeightWords * pair, 1);
      begin -= 128 * of_error;  // records hold errors plus 128
    });
    words[0] = static_cast<uint16_t>(begin);
  }

  // How many rows of contexts a channel has.
  uint32_t rows(uint32_t c) const {
    if (!tables_.grouped[c]) return 1;
    uint8_t zone = 0, pattern = 0;
    for (const uint8_t row : tables_.zone_row[c]) zone = row > zone ? row : zone;
    for (const uint8_t row : tables_.pattern_row[c]) pattern = row > pattern ? row : pattern;
    return uint32_t{zone} + pattern + 1;
  }

  // Between these steps, the lanes that are active do not change, and none is in the ending.
  void find_steady() {
    steady_end_ = UINT32_MAX;
    for (uint32_t lane = 0; lane < lanes_; ++lane) {
      const uint32_t turns = lane < height_ ? (height_ - 1 - lane) / lanes_ + 1 : 0;
      const uint32_t before = this->ending_.row > lane ? ceil_div(this->ending_.row - lane, lanes_) : 0;
      const uint32_t end = smaller(turns * period_, before * period_ + this->ending_.column);
      steady_end_ = smaller(steady_end_, 2 * lane + end);
    }
    steady_begin_ = 2 * (lanes_ - 1);
  }

  bool decode_samples() {
    prepare();
    std::memset(steps_, 0, sizeof(Step) * kBack);
    const auto way = this->start_lanes(delay_);
    find_edges(0);
    fix_edges<0, kChannels>();
    enter_blocks(0);
    for_channels([&](auto c) __attribute__((always_inline)) { load_weights<c.value>(); });
    L3_FOR_USED_RECORDS sum_neighbours<0>(part);
    while (step_ < way.steps) {
      begin_step(way);
      for_channels([&](auto c) __attribute__((always_inline)) {
        find_places<c.value>();
        decode_symbols<c.value>();
        keep_samples<c.value>();
      });
      if (!this->advance(taken_)) return false;
      end_step();
    }
    return true;
  }
  // The stages are not inlined, so that profilers and bench/stages.py tell them apart.
  L3_STAGE void begin_step(const typename Front::Way& way) {
    this->choose_parts(step_, way);
    if (step_ == steady_end_ && step_ > steady_begin_) place_lanes();
    if (!is_steady()) {
      L3_FOR_USED_PARTS this->find_place(part);
    }
    enter_blocks(step_ + 1);
    delay_.next();
    window_ = this->reader_.window(at_);
    taken_ = 0;
  }
  L3_STAGE void end_step() {
    Lanes pixels[kParts];
    W::template pixels<kChannels>(samples_, pixels);
    const bool steady = is_steady();
    L3_FOR_USED_PARTS {
      this->sink_.put(step_, part, row_[part], column_[part], pixels[part], active_[part]);
      if (!steady) this->next_column(part, period_);
    }
    this->sink_.end_step(step_);
    if (now_ == steps_[kSteps]) move_steps();
    ++step_;
  }
  bool is_steady() const { return step_ > steady_begin_ && step_ < steady_end_; }

  template <class F>
  L3_INLINE static void for_channels(const F& f) {
    f(std::integral_constant<uint32_t, 0>{});
    if constexpr (kChannels > 1) f(std::integral_constant<uint32_t, 1>{});
    if constexpr (kChannels > 2) f(std::integral_constant<uint32_t, 2>{});
    if constexpr (kChannels > 3) f(std::integral_constant<uint32_t, 3>{});
  }

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
  static constexpr uint32_t kStepRecords = kKinds * kChannels * kLanes;
  using Step = uint16_t[kStepRecords];
  L3_INLINE uint32_t first_records() const { return this->first_part() / W::kPartsOfRecords; }
  L3_INLINE uint32_t end_records() const { return ceil_div(this->end_part(), W::kPartsOfRecords); }

  // Where a neighbour is, relative to the records of the step. It was decoded so many steps before.
  L3_INLINE static constexpr int32_t place_of(DenseRole role, uint32_t c) {
    constexpr uint32_t kStepsBefore[kRoles] = {1, 2, 3, 1, 2, 4, 3, 4};
    constexpr Kind kKindOf[kRoles] = {kOwn, kAbove, kAbove, kAbove, kOwn, kAboveTwo, kAboveTwo, kAbove};
    return static_cast<int32_t>(place_of(kKindOf[role], c)) - static_cast<int32_t>(kStepsBefore[role] * kStepRecords);
  }
  L3_INLINE static constexpr uint32_t place_of(Kind kind, uint32_t c) { return (kind * kChannels + c) * kLanes; }

  // Moves the last steps' records to the front.
  void move_steps() {
    for (uint32_t i = 0; i < kBack * kStepRecords; i += kRecords) {
      W::store_records(held(steps_[0] + i), W::load_records(steps_[kSteps - kBack] + i));
    }
    now_ = steps_[kBack];
  }

  // ---- edges

  enum EdgeKind : uint32_t { kRow0 = 1, kRow1 = 2, kFirstColumn = 4, kLastColumn = 8 };
  struct Edge {
    uint32_t lane, kinds;
  };

  // Finds the lanes that are at the tile's edges in a step: at most four.
  L3_INLINE void find_edges(uint32_t step) {
    edge_count_ = 0;
    last_ = kLanes;
    lead_ = lead_ + 1 == period_ ? 0 : lead_ + 1;  // the column of lane 0
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
    add(lane_at(0), kFirstColumn);
    add(last_, kLastColumn);
    if (step < width_) add(0, kRow0);
    if (step - row_1_begin_ < width_) add(smaller(lanes_ - 1, 1), kRow1);
  }
  // Corrects the neighbours of these lanes (section 13.3) in the channels `from` to `end` - 1.
  template <uint32_t from, uint32_t end>
  L3_INLINE void fix_edges() {
    for (uint32_t i = 0; i < edge_count_; ++i) {
      for_channels([&](auto c) __attribute__((always_inline)) {
        if constexpr (c.value >= from && c.value < end) fix_edge<c.value>(edges_[i]);
      });
    }
  }
  template <uint32_t c>
  L3_INLINE void fix_edge(const Edge edge) {
    uint16_t* const now = held(now_ + edge.lane);
    const auto at = [&](DenseRole role) __attribute__((always_inline))->uint16_t& { return now[place_of(role, c)]; };
    if (edge.kinds == kFirstColumn) {
      at(kRoleW) = at(kRoleWw) = at(kRoleNw) = at(kRoleNww) = at(kRoleN);
    } else if (edge.kinds == kRow0) {
      at(kRoleN) = at(kRoleNw) = at(kRoleNww) = at(kRoleNe) = at(kRoleNn) = at(kRoleNne) = at(kRoleW);
    } else if (edge.kinds == kRow1) {
      at(kRoleNn) = at(kRoleN);
      at(kRoleNne) = at(kRoleNe);
    } else {
      fix_any_edge<c>(edge);
    }
  }
  template <uint32_t c>
  __attribute__((noinline)) void fix_any_edge(const Edge edge) {
    uint16_t* const now = now_ + edge.lane;
    const auto at = [&](DenseRole role) __attribute__((always_inline))->uint16_t& { return now[place_of(role, c)]; };
    const bool row_0 = (edge.kinds & kRow0) != 0, row_0_or_1 = (edge.kinds & (kRow0 | kRow1)) != 0,
               first_column = (edge.kinds & kFirstColumn) != 0, last_column = (edge.kinds & kLastColumn) != 0;
    if (last_column) right_[c] = {at(kRoleNe), at(kRoleNne)};
    if (row_0) at(kRoleN) = first_column ? uint16_t{kNoRecord} : at(kRoleW);
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
    for_channels([&](auto c) __attribute__((always_inline)) {
      now_[place_of(kRoleNe, c.value) + static_cast<int32_t>(last_)] = right_[c.value].ne;
      now_[place_of(kRoleNne, c.value) + static_cast<int32_t>(last_)] = right_[c.value].nne;
    });
  }

  // ---- blocks

  // Finds the lanes that enter a block in a step, and the classes of these blocks.
  L3_INLINE void enter_blocks(uint32_t step) {
    entered_count_ = 0;
    for (uint32_t lanes = entering_[step % kBlockEdge]; lanes != 0; lanes &= lanes - 1) {
      const uint32_t lane = static_cast<uint32_t>(__builtin_ctz(lanes));
      Enter& enter = enters_[lane];
      if (enter.step != step) continue;
      entered_[entered_count_++] = {lane, classes_[(enter.row >> 4) * this->blocks_across() + (enter.column >> 4)]};
      if (has_classes_ && enter.column + kBlockEdge < width_) {
        enter.column += kBlockEdge;
        enter.step += kBlockEdge;
        continue;
      }
      entering_[step % kBlockEdge] &= ~(1u << lane);
      enter.step += period_ - enter.column;
      enter.column = 0;
      enter.row += lanes_;
      if (has_classes_ && enter.row < height_) entering_[enter.step % kBlockEdge] |= 1u << lane;
    }
  }
  // Loads the weights of a channel for the lanes that have entered a block.
  template <uint32_t c>
  L3_INLINE void load_weights() {
    for (uint32_t i = 0; i < entered_count_; ++i) {
      const uint32_t lane = entered_[i].lane, k = entered_[i].classes >> (8 * c) & (kMaxClasses - 1);
      const uint16_t* const from = held(classes_weights_[c][k]);
      uint16_t* const to = held(weights_[c][0] + lane);
      // Word by word: compilers would load all words, then store them all.
      for (uint32_t word = 0; word < 1 + W::kWeightWords * dense_pairs(c); ++word) to[word * kLanes] = held(from[word]);
    }
  }

  // ---- samples

  // What the stages of a channel's decoding leave for the next ones.
  enum Work : uint32_t { kSum, kActivity, kUpper, kWorks };

  // Adds the products of records and weights.
  template <uint32_t kStep>
  L3_INLINE static void add(Records records, const uint16_t* weights, Records& sum) {
    sum = W::template add_products<kStep>(records, weights, sum);
  }
  L3_INLINE static constexpr uint32_t weights_of(uint32_t pair) { return (1 + W::kWeightWords * pair) * kLanes; }
  L3_INLINE void add_activity(uint32_t c, uint32_t pair, Records magnitudes, Records& activity) const {
    add<kRecords>(magnitudes, activity_[c][W::kWeightWords * pair], activity);
  }

  // The terms of a prediction and of its activity that are known before the channels of the pixel, and the errors at NW
  // and NE.
  template <uint32_t c>
  L3_INLINE void sum_neighbours(uint32_t part) {
    const uint16_t* const now = held(now_ + part * kRecords);
    const uint16_t* const weights = held(weights_[c][0] + part * kRecords);
    const auto near = [&](DenseRole role, uint32_t channel) __attribute__((always_inline)) {
      return W::load_records(now + place_of(role, channel));
    };
    const Records none = W::all_records(0x8080);
    Records sum = W::load_records(weights), activity = W::all_records(kActivityFloor);
    const auto add_role = [&](DenseRole role) __attribute__((always_inline)) {
      const Records r = near(role, c);
      add<kLanes>(r, weights + weights_of(role), sum);
      return r;
    };
    const Records w = add_role(kRoleW), n = add_role(kRoleN), nw = add_role(kRoleNw), ne = add_role(kRoleNe);
    const Records nw_alone = W::merge(nw, none);
    add_activity(c, kActivityW, W::distances(w, nw_alone), activity);
    add_activity(c, kActivityN, W::distances(n, nw_alone), activity);
    const Records nn = add_role(kRoleNn);
    add_activity(c, kActivityNn, W::distances(W::merge(n, nn), W::merge(ne, none)), activity);
    add_activity(c, kActivityWw, W::magnitudes(add_role(kRoleWw)), activity);
    const Records upper = W::merge(nw >> 8, ne);
    add_activity(c, kActivityUpper, W::magnitudes(upper), activity);
    add_role(kRoleNne);
    add_role(kRoleNww);
    for (uint32_t before = 0; before < cross_channels(c); ++before) {
      for (const DenseRole role : {kRoleW, kRoleN, kRoleNw}) {
        add<kLanes>(near(role, c - 1 - before), weights + weights_of(cross_pair(before) + role), sum);
      }
    }
    Records* const work = held(work_ + part);
    work[kSum * kRecordParts] = sum;
    work[kActivity * kRecordParts] = activity;
    work[kUpper * kRecordParts] = upper;
  }
  // Finds where each lane's symbol is: adds the terms of the pixel's channels before, splits the sums into predictions
  // and the directions in which they lean, and looks for the context and the bucket. Then sums up the next channel.
  template <uint32_t c>
  L3_STAGE void find_places() {
    Records sums[kRecordParts], activities[kRecordParts], predictions[kRecordParts];
    if constexpr (c > 0) {
      L3_UNROLL_RECORDS {
        Records sum = work_[kSum * kRecordParts + part], activity = work_[kActivity * kRecordParts + part];
        const auto here = [&](uint32_t before) __attribute__((always_inline)) {
          const Records r = W::load_records(now_ + place_of(kOwn, c - 1 - before) + part * kRecords);
          add<kLanes>(r, weights_[c][0] + weights_of(here_pair(c) + before) + part * kRecords, sum);
          return r;
        };
        Records last = here(0);
        if constexpr (c > 1) last = W::merge(here(1) >> 8, last);
        add_activity(c, kActivityBefore, W::magnitudes(last), activity);
        sums[part] = sum;
        activities[part] = activity;
      }
    }
    Plane p, up;
    W::split_sums(c > 0 ? sums : work_ + kSum * kRecordParts, p, up, predictions);
    Plane row = W::no_bytes();
    if (tables_.grouped[c]) {
      Records of_w[kRecordParts], of_n[kRecordParts];
      L3_UNROLL_RECORDS {
        const uint16_t* const now = now_ + part * kRecords;
        of_w[part] = W::not_below(W::load_records(now + place_of(kRoleW, c)), predictions[part]);
        of_n[part] = W::not_below(W::load_records(now + place_of(kRoleN, c)), predictions[part]);
      }
      row = W::rows(tables_, c, p ^ up, W::pack_signs(of_w, of_n, work_ + kUpper * kRecordParts) ^ up);
    }
    W::store_places(W::pack_levels(c > 0 ? activities : work_ + kActivity * kRecordParts), row, state_, places_);
    p_ = p;
    up_ = up;
    load_weights<c>();
    here_ = now_;
    if constexpr (c + 1 < kChannels) {
      L3_FOR_USED_RECORDS sum_neighbours<c + 1>(part);
    } else {
      restore_edges();
      now_ += kStepRecords;
      find_edges(step_ + 1);
      if constexpr (kChannels > 1) {
        fix_edges<0, kChannels - 1>();
        L3_FOR_USED_RECORDS sum_neighbours<0>(part);
      }
    }
  }
  template <uint32_t c>
  L3_STAGE void decode_symbols() {
    uint32_t taken = taken_;
    const Window window = window_;
    L3_FOR_USED_PARTS {
      Lanes own, other;
      W::look_up_places(first_bucket_[c], tables_.buckets, places_ + part * kPartLanes, own, other);
      differences_[part] = this->decode_symbol(constant<kTableBuckets>, part, own, other, active_[part]);
      this->refill(part, this->refills_[part], window, taken);
    }
    taken_ = taken;
  }
  // Turns symbols into samples and errors, and keeps them for later pixels.
  template <uint32_t c>
  L3_STAGE void keep_samples() {
    uint16_t* const here = here_;
    const Plane p = p_, up = up_;
    // The difference counts in the direction in which the prediction leans.
    const Plane sample = p + (W::pack_bytes(differences_) ^ up) - up;
    samples_[c] = sample;
    Records records[kRecordParts];
    W::records(sample, p, records);
    L3_UNROLL_RECORDS W::store_records(here + place_of(kOwn, c) + part * kRecords, records[part]);
    const Records from_last = delay_.hand_over(c, here + place_of(kOwn, c), lanes_);
    L3_UNROLL_RECORDS {
      const Records before = part == 0 ? from_last : records[part - 1];
      W::store_records(here + place_of(kAbove, c) + part * kRecords, W::shift_up_one(records[part], before));
      W::store_records(here + place_of(kAboveTwo, c) + part * kRecords, W::shift_up_two(records[part], before));
    }
    if constexpr (c + 1 == kChannels) {
      fix_edges<kChannels - 1, kChannels>();
      if constexpr (kChannels == 1) {
        L3_FOR_USED_RECORDS sum_neighbours<0>(part);
      }
    }
  }

  // What the first two lanes need of the last two, a row later: pairs of records, the lower lane first.
  class Delay {
   public:
    void clear(uint32_t steps) {
      steps_ = steps;
      std::memset(pairs_, 0, sizeof(pairs_[0]) * steps);
    }
    L3_INLINE void next() {
      at_ = next_;
      next_ = next_ + 1 == steps_ ? 0 : next_ + 1;
    }
    // Takes the last lanes' records of a channel. Returns those for the first lanes, in the last lanes of a vector.
    L3_INLINE Records hand_over(uint32_t c, const uint16_t* records, uint32_t lanes) {
      uint16_t* const to = pairs_[at_][c];
      const uint16_t* const from = pairs_[next_][c];
      to[1] = records[lanes - 1];
      to[0] = lanes > 1 ? records[lanes - 2] : from[1];
      return W::repeat_two(from);
    }

   private:
    uint32_t steps_ = 1, at_ = 0, next_ = 0;
    uint16_t pairs_[kMaxTileEdge][kChannels][2];
  };

  // When a lane enters its next block, and where.
  struct Enter {
    uint32_t step, column, row;
  };
  struct Entered {
    uint32_t lane, classes;
  };

  const DenseTables& tables_;
  const uint32_t period_;
  const uint32_t row_1_begin_ = lanes_ > 1 ? 2 : period_;  // the step in which row 1 begins
  bool has_classes_ = false;
  uint32_t steady_begin_ = UINT32_MAX, steady_end_ = 0;
  uint32_t lead_ = UINT32_MAX;
  uint32_t edge_count_ = 0, last_ = kLanes, entered_count_ = 0;
  uint32_t step_ = 0;
  Window window_;
  uint32_t taken_ = 0;
  uint16_t* here_ = nullptr;
  Plane p_, up_;
  uint16_t* now_ = steps_[kBack];  // the records of the step
  Edge edges_[4];
  struct Right {
    uint16_t ne, nne;
  };
  Right right_[kChannels];
  uint32_t entering_[kBlockEdge] = {};  // a bit for each lane, by step
  Enter enters_[kLanes];
  Entered entered_[kLanes];
  Records work_[kWorks * kRecordParts] = {};
  Lanes differences_[kParts] = {};
  alignas(64) Step steps_[kSteps + 1];
  alignas(64) uint16_t weights_[kChannels][kWords][kLanes] = {};
  alignas(64) uint16_t activity_[kChannels][W::kWeightWords * kActivityPairs][kRecords];
  alignas(64) uint32_t places_[kLanes];
  Plane samples_[kChannels];
  uint16_t classes_weights_[kChannels][kMaxClasses][kWords];
  uint16_t first_bucket_[kChannels][kMaxRows * kLevels];
  Delay delay_;
};

}  // namespace l3
