// Decodes a dense tile with a model of kind 0 on a processor (section 13 of the spec). GPUs have
// kernels/src/dense_decoder.cuh.
//
// A step decodes one pixel in each lane, channel after channel. For each channel, three kinds of work alternate:
//
// - on records, a word for each lane: a sample in the lower 16 bits and its error in the upper 16 bits. One instruction
//   multiplies both by their weights and adds them up. The records of the last steps are kept in three orders: by lane,
//   moved up by one lane and moved up by two. So each neighbour of a pixel is a vector at a fixed place, and nothing is
//   moved when lanes advance;
// - on planes, a byte for each lane: predictions, sign patterns, levels, samples;
// - lane by lane: looking up tables.
//
// At the edges of the tile, neighbours are corrected in place. In a step this concerns at most four lanes.
#pragma once

#include <cstring>
#include <type_traits>

#include "engine/token_taps.h"
#include "engine/vectors.h"
#include "engine/wavefront.h"

#define L3_STAGE __attribute__((noinline))
// A loop over all parts of a warp, unrolled, so that what it keeps for each part stays in registers.
#if defined(__clang__)
#define L3_UNROLL_PARTS _Pragma("clang loop unroll(full)") for (uint32_t part = 0; part < kParts; ++part)
#else
#define L3_UNROLL_PARTS _Pragma("GCC unroll 8") for (uint32_t part = 0; part < kParts; ++part)
#endif

namespace l3 {

// The neighbours of a pixel.
enum DenseRole : uint32_t { kRoleW, kRoleN, kRoleNw, kRoleNe, kRoleWw, kRoleNn, kRoleNne, kRoleNww, kRoles };

// The weights of a channel, in pairs: for the neighbours in this channel, samples and errors; for the samples of the
// last two neighbours; for W, N and NW of the one or two channels before; for those channels' sample and error here.
constexpr uint32_t kPairFar = kRoleNne, kPairCross = kPairFar + 1;
L3_INLINE constexpr uint32_t cross_pairs(uint32_t channel) { return channel == 0 ? 0 : channel == 1 ? 2 : 3; }
L3_INLINE constexpr uint32_t here_pair(uint32_t channel) { return kPairCross + cross_pairs(channel); }
L3_INLINE constexpr uint32_t dense_pairs(uint32_t channel) { return here_pair(channel) + cross_channels(channel); }
constexpr uint32_t kMaxPairs = dense_pairs(kMaxChannels - 1);
// The activity weights of a channel, in pairs: lower half for a difference of samples, upper half for an error.
enum DenseActivity : uint32_t { kActivityW, kActivityN, kActivityNn, kActivityWw, kActivityUpper, kActivityBefore };
constexpr uint32_t kActivityRecords = kActivityBefore + 2;

L3_INLINE int32_t tap_of(const uint32_t* words, uint32_t tap) {
  return static_cast<int8_t>(words[tap / kTapsOfWord] >> (8 * (tap % kTapsOfWord)));
}
// The weights of a class as pairs.
L3_INLINE void read_dense_pairs(const uint32_t* words, uint32_t channel, uint32_t* pairs) {
  const auto sample = [&](uint32_t role) { return tap_of(words, role); };
  const auto error = [&](uint32_t i) { return tap_of(words, kErrorWord * kTapsOfWord + i); };
  const auto cross = [&](uint32_t before, uint32_t i) {
    return tap_of(words, (kCrossWord + before) * kTapsOfWord + i);
  };
  for (uint32_t role = 0; role < kPairFar; ++role) pairs[role] = pair_of(sample(role), error(role));
  pairs[kPairFar] = pair_of(sample(kRoleNne), sample(kRoleNww));
  if (channel == 1) {
    pairs[kPairCross] = pair_of(cross(0, 0), cross(0, 1));
    pairs[kPairCross + 1] = pair_of(cross(0, 2), 0);
  } else if (channel > 1) {
    for (uint32_t i = 0; i < 3; ++i) pairs[kPairCross + i] = pair_of(cross(0, i), cross(1, i));
  }
  for (uint32_t i = 0; i < cross_channels(channel); ++i) {
    pairs[here_pair(channel) + i] = pair_of(cross(i, 3), error(kPairFar + i));
  }
}

template <class W, uint32_t kChannels, class Sink>
class DenseLoop : Wavefront<W, Sink, 4> {
  using Front = Wavefront<W, Sink, 4>;
  using typename Front::Classes, typename Front::Lanes, typename Front::Mask, typename Front::Window;
  using Plane = typename W::Plane;
  using Front::kParts;
  static constexpr uint32_t kPartLanes = W::kPartLanes;
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
      for (uint32_t k = 0; k < tables_.classes[c]; ++k)
        read_dense_pairs(tables_.weights[c][k], c, classes_pairs_[c][k]);
      has_classes_ = has_classes_ || tables_.classes[c] > 1;
      const auto term = [&](uint32_t i) {
        return static_cast<int32_t>(tables_.activity[c][i / 4] >> (8 * (i % 4)) & 0xFF);
      };
      const uint32_t pairs[kActivityRecords] = {
          pair_of(term(8), term(0)), pair_of(term(9), term(1)), pair_of(term(10), term(5)), pair_of(0, term(4)),
          pair_of(term(2), term(3)), pair_of(0, term(6)),       pair_of(0, term(7))};
      for (uint32_t i = 0; i < kActivityRecords; ++i) activity_pairs_[c][i] = W::splat(pairs[i]);
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
    fix_edges(0, kChannels);
    enter_blocks(0);
    for_channels([&](auto c) __attribute__((always_inline)) { load_weights<c.value>(); });
    L3_FOR_USED_PARTS sum_neighbours<0>(part);
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
  static constexpr uint32_t kStepWords = kKinds * kChannels * kLanes;
  using Step = uint32_t[kStepWords];

  // Where a neighbour is, relative to the records of the step. It was decoded so many steps before.
  L3_INLINE static constexpr int32_t place_of(DenseRole role, uint32_t c) {
    constexpr uint32_t kStepsBefore[kRoles] = {1, 2, 3, 1, 2, 4, 3, 4};
    constexpr Kind kKindOf[kRoles] = {kOwn, kAbove, kAbove, kAbove, kOwn, kAboveTwo, kAboveTwo, kAbove};
    return static_cast<int32_t>(place_of(kKindOf[role], c)) - static_cast<int32_t>(kStepsBefore[role] * kStepWords);
  }
  L3_INLINE static constexpr uint32_t place_of(Kind kind, uint32_t c) { return (kind * kChannels + c) * kLanes; }

  // Moves the last steps' records to the front.
  void move_steps() {
    for (uint32_t i = 0; i < kBack * kStepWords; i += 4 * kPartLanes) {
      uint32_t* const to = held(steps_[0] + i);
      for (uint32_t k = 0; k < 4; ++k) {
        const uint32_t at = k * kPartLanes;
        W::store(to + at, W::load(to + (kSteps - kBack) * kStepWords + at));
      }
    }
    now_ = steps_[kBack];
  }

  // ---- edges

  struct Edge {
    uint32_t lane;
    bool first_column, last_column, first_row, first_rows;
    uint32_t ne[kChannels], nne[kChannels];
  };

  // Finds the lanes that are at the tile's edges in a step: at most four.
  L3_INLINE void find_edges(uint32_t step) {
    edge_count_ = 0;
    lead_ = lead_ + 1 == period_ ? 0 : lead_ + 1;  // the column of lane 0
    const auto lane_at = [&](uint32_t column) {
      const uint32_t behind = lead_ >= column ? lead_ - column : lead_ + period_ - column;
      return behind % 2 == 0 && behind / 2 < lanes_ && step >= behind ? behind / 2 : kLanes;
    };
    const uint32_t first = lane_at(0), last = lane_at(width_ - 1);
    const uint32_t row_0 = step < width_ ? 0 : kLanes;
    const uint32_t row_1 = step - row_1_begin_ < width_ ? smaller(lanes_ - 1, 1) : kLanes;
    const auto add = [&](uint32_t lane) __attribute__((always_inline)) {
      edges_[edge_count_++] = {lane, lane == first, lane == last, lane == row_0, lane == row_0 || lane == row_1, {},
                               {}};
    };
    if (first < kLanes) add(first);
    if (last < kLanes && last != first) add(last);
    if (row_0 < kLanes && row_0 != first && row_0 != last) add(row_0);
    if (row_1 < kLanes && row_1 != first && row_1 != last && row_1 != row_0) add(row_1);
  }
  // Corrects the neighbours of these lanes (section 13.3) in the channels `from` to `end` - 1.
  L3_INLINE void fix_edges(uint32_t from, uint32_t end) {
    for (uint32_t i = 0; i < edge_count_; ++i) {
      for (uint32_t c = from; c < end; ++c) fix_edge(edges_[i], c);
    }
  }
  __attribute__((noinline)) void fix_edge(Edge& edge, uint32_t c) {
    const auto at = [&](DenseRole role) -> uint32_t& {
      return now_[place_of(role, c) + static_cast<int32_t>(edge.lane)];
    };
    edge.ne[c] = at(kRoleNe);
    edge.nne[c] = at(kRoleNne);
    if (edge.first_row) at(kRoleN) = edge.first_column ? 0 : at(kRoleW);
    const uint32_t n = at(kRoleN);
    if (edge.first_column) at(kRoleW) = at(kRoleWw) = n;
    if (edge.first_column || edge.first_row) at(kRoleNw) = at(kRoleNww) = n;
    if (edge.last_column || edge.first_row) at(kRoleNe) = n;
    if (edge.first_rows) at(kRoleNn) = n;
    if (edge.first_rows) {
      at(kRoleNne) = at(kRoleNe);
    } else if (edge.last_column) {
      at(kRoleNne) = at(kRoleNn);
    }
  }
  // NE and NNE are neighbours of the next pixel too, which may be in another row.
  L3_INLINE void restore_edges() {
    for (uint32_t i = 0; i < edge_count_; ++i) {
      const Edge& edge = edges_[i];
      for (uint32_t c = 0; c < kChannels; ++c) {
        now_[place_of(kRoleNe, c) + static_cast<int32_t>(edge.lane)] = edge.ne[c];
        now_[place_of(kRoleNne, c) + static_cast<int32_t>(edge.lane)] = edge.nne[c];
      }
    }
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
      const uint32_t* const from = held(classes_pairs_[c][entered_[i].classes >> (8 * c) & (kMaxClasses - 1)]);
      uint32_t* const to = held(&weights_[c][0][entered_[i].lane]);
      for (uint32_t k = 0; k < dense_pairs(c); ++k) to[k * kLanes] = from[k];
    }
  }

  // ---- samples

  // What the stages of a channel's decoding leave for the next ones.
  enum Work : uint32_t { kSum, kActivity, kUpper, kDifference, kWorks };

  // The terms of a prediction and of its activity that are known before the channels of the pixel, and the signs of the
  // errors at NW and NE.
  template <uint32_t c>
  L3_INLINE void sum_neighbours(uint32_t part) {
    const uint32_t* const now = held(now_ + part * kPartLanes);
    const uint32_t* const from = held(&weights_[c][0][0] + part * kPartLanes);
    const auto weight = [&](uint32_t i) { return W::load(from + i * kLanes); };
    const auto near = [&](DenseRole role, uint32_t channel) { return W::load(now + place_of(role, channel)); };
    const auto both = [](Lanes a, Lanes b) { return W::merge_halves(a, b << 16); };  // two samples
    const Lanes w = near(kRoleW, c), n = near(kRoleN, c), nw = near(kRoleNw, c), ne = near(kRoleNe, c);
    auto sum = W::begin_sum(W::splat(constant<(1u << kWeightShift) / 2>));
    W::add_pairs(w, weight(kRoleW), sum);
    W::add_pairs(n, weight(kRoleN), sum);
    W::add_pairs(nw, weight(kRoleNw), sum);
    W::add_pairs(ne, weight(kRoleNe), sum);
    const Lanes* const weights = activity_pairs_[c];
    // The errors of NW and NE.
    const Lanes upper = W::merge_halves(nw >> 16, ne);
    Lanes* const work = held(work_ + part);
    work[kUpper * kParts] = upper;
    auto activity = W::begin_sum(W::splat(constant<kActivityFloor>));
    const auto add = [&](Lanes difference, Lanes error, Lanes pair) {
      W::add_pairs(W::merge_halves(W::magnitude_pairs(difference), W::magnitude_pairs(error)), pair, activity);
    };
    add(W::subtract_pairs(w, nw), w, weights[kActivityW]);
    add(W::subtract_pairs(n, nw), n, weights[kActivityN]);
    const Lanes nn = near(kRoleNn, c);
    W::add_pairs(nn, weight(kRoleNn), sum);
    add(W::subtract_pairs(n, ne), nn, weights[kActivityNn]);
    const Lanes ww = near(kRoleWw, c);
    W::add_pairs(ww, weight(kRoleWw), sum);
    W::add_pairs(W::magnitude_pairs(ww), weights[kActivityWw], activity);
    W::add_pairs(W::magnitude_pairs(upper), weights[kActivityUpper], activity);
    W::add_pairs(both(near(kRoleNne, c), near(kRoleNww, c)), weight(kPairFar), sum);
    if constexpr (c == 1) {
      W::add_pairs(both(near(kRoleW, 0), near(kRoleN, 0)), weight(kPairCross), sum);
      W::add_pairs(near(kRoleNw, 0), weight(kPairCross + 1), sum);
    } else if constexpr (c > 1) {
      W::add_pairs(both(near(kRoleW, c - 1), near(kRoleW, c - 2)), weight(kPairCross), sum);
      W::add_pairs(both(near(kRoleN, c - 1), near(kRoleN, c - 2)), weight(kPairCross + 1), sum);
      W::add_pairs(both(near(kRoleNw, c - 1), near(kRoleNw, c - 2)), weight(kPairCross + 2), sum);
    }
    work[kSum * kParts] = W::total(sum);
    work[kActivity * kParts] = W::total(activity);
  }
  // Finds where each lane's symbol is: adds the terms of the pixel's channels before, splits the sums into predictions
  // and the directions in which they lean, and looks for the context and the bucket. Then sums up the next channel.
  template <uint32_t c>
  L3_STAGE void find_places() {
    Lanes sums[kParts], activities[kParts], predictions[kParts];
    L3_UNROLL_PARTS {
      const uint32_t* const now = now_ + part * kPartLanes;
      Lanes sum = work_[kSum * kParts + part], activity = work_[kActivity * kParts + part];
      for (uint32_t i = 0; i < cross_channels(c); ++i) {
        const Lanes here = W::load(now + place_of(kOwn, c - 1 - i));
        sum = W::dot_pairs(here, W::load(weights_[c][here_pair(c) + i] + part * kPartLanes), sum);
        activity = W::dot_pairs(W::magnitude_pairs(here), activity_pairs_[c][kActivityBefore + i], activity);
      }
      sums[part] = sum;
      activities[part] = activity;
    }
    Plane p, up;
    W::split_sums(sums, p, up, predictions);
    Plane row = W::no_bytes();
    if (tables_.grouped[c]) {
      Lanes below_w[kParts], below_n[kParts];
      L3_UNROLL_PARTS {
        const uint32_t* const now = now_ + part * kPartLanes;
        below_w[part] = W::subtract_pairs(W::load(now + place_of(kRoleW, c)), predictions[part]);
        below_n[part] = W::subtract_pairs(W::load(now + place_of(kRoleN, c)), predictions[part]);
      }
      row = W::rows(tables_, c, p ^ up, W::pack_signs(below_w, below_n, work_ + kUpper * kParts) ^ up);
    }
    W::store_places(W::pack_levels(activities), row, state_, places_);
    p_ = p;
    up_ = up;
    load_weights<c>();
    here_ = now_;
    if constexpr (c + 1 < kChannels) {
      L3_FOR_USED_PARTS sum_neighbours<c + 1>(part);
    } else {
      restore_edges();
      now_ += kStepWords;
      find_edges(step_ + 1);
      if constexpr (kChannels > 1) {
        fix_edges(0, kChannels - 1);
        L3_FOR_USED_PARTS sum_neighbours<0>(part);
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
      work_[kDifference * kParts + part] =
          this->decode_symbol(constant<kTableBuckets>, part, own, other, active_[part]);
      this->refill(part, this->refills_[part], window, taken);
    }
    taken_ = taken;
  }
  // Turns symbols into samples and errors, and keeps them for later pixels.
  template <uint32_t c>
  L3_STAGE void keep_samples() {
    uint32_t* const here = here_;
    const Plane p = p_, up = up_;
    // The difference counts in the direction in which the prediction leans.
    const Plane sample = p + (W::pack_bytes(work_ + kDifference * kParts) ^ up) - up;
    samples_[c] = sample;
    Lanes records[kParts];
    W::records(sample, W::saturated_difference(sample, p), records);
    L3_UNROLL_PARTS W::store(here + place_of(kOwn, c) + part * kPartLanes, records[part]);
    const Lanes from_last = delay_.template hand_over<W>(c, here + place_of(kOwn, c), lanes_);
    L3_UNROLL_PARTS {
      const Lanes before = part == 0 ? from_last : records[part - 1];
      W::store(here + place_of(kAbove, c) + part * kPartLanes, W::shift_up(records[part], before));
      W::store(here + place_of(kAboveTwo, c) + part * kPartLanes, W::shift_up_two(records[part], before));
    }
    if constexpr (c + 1 == kChannels) {
      fix_edges(kChannels - 1, kChannels);
      if constexpr (kChannels == 1) {
        L3_FOR_USED_PARTS sum_neighbours<0>(part);
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
    template <class Warp>
    L3_INLINE Lanes hand_over(uint32_t c, const uint32_t* records, uint32_t lanes) {
      uint32_t* const to = pairs_[at_][c];
      const uint32_t* const from = pairs_[next_][c];
      to[1] = records[lanes - 1];
      to[0] = lanes > 1 ? records[lanes - 2] : from[1];
      return Warp::splat_pair(from);
    }

   private:
    uint32_t steps_ = 1, at_ = 0, next_ = 0;
    uint32_t pairs_[kMaxTileEdge][kChannels][2];
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
  uint32_t edge_count_ = 0, entered_count_ = 0;
  uint32_t step_ = 0;
  Window window_;
  uint32_t taken_ = 0;
  uint32_t* here_ = nullptr;
  Plane p_, up_;
  uint32_t* now_ = steps_[kBack];  // the records of the step
  Edge edges_[4];
  uint32_t entering_[kBlockEdge] = {};  // a bit for each lane, by step
  Enter enters_[kLanes];
  Entered entered_[kLanes];
  Lanes work_[kWorks * kParts] = {};
  alignas(64) Step steps_[kSteps + 1];
  alignas(64) uint32_t weights_[kChannels][kMaxPairs][kLanes] = {};
  alignas(64) uint32_t places_[kLanes];
  Lanes activity_pairs_[kChannels][kActivityRecords];
  Plane samples_[kChannels];
  uint32_t classes_pairs_[kChannels][kMaxClasses][kMaxPairs];
  uint16_t first_bucket_[kChannels][kMaxRows * kLevels];
  Delay delay_;
};

}  // namespace l3
