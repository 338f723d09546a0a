// Decodes a dense tile with a model of kind 0 on a processor (section 13 of the spec). GPUs have
// kernels/src/dense_decoder.cuh.
//
// A step decodes one pixel in each lane, channel after channel. For each channel, three kinds of work alternate:
//
// - on records, 16 bits for each lane: a sample in the lower byte and its error plus 128 in the upper byte. One
//   instruction multiplies both by their weights and adds them up. RecordLoop keeps the records of the last steps;
// - on planes, a byte for each lane: predictions, sign patterns, levels, samples;
// - lane by lane: looking up tables.
#pragma once

#include <algorithm>
#include <type_traits>

#include "engine/dense_weights.h"
#include "engine/record_loop.h"

namespace l3 {

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
class DenseLoop : RecordLoop<W, uint16_t, kChannels, Sink> {
  using Base = RecordLoop<W, uint16_t, kChannels, Sink>;
  using typename Base::Classes, typename Base::Records, typename Base::Window;
  using typename Base::Front::Lanes;
  using Plane = typename W::Plane;
  using Base::kOwn, Base::kPartLanes, Base::kParts, Base::kRecordParts, Base::kRecords, Base::kStepRecords,
      Base::place_of;
  // A channel's weights: what sums begin with, then kWeightWords words for each pair.
  static constexpr uint32_t kWords = 1 + W::kWeightWords * kMaxPairs;

 public:
  DenseLoop(const TileShape& shape, const TileEntry& entry, const DenseTables& tables, Sink& sink, Classes& classes)
      : Base(shape, entry, sink, classes), tables_(tables) {
    std::fill_n(none_, kChannels, uint16_t{kNoRecord});
  }

  Fault decode() {
    this->load_states();
    if (!decode_blocks() || !decode_samples()) return {Reason::dense_words, payload_bytes_};
    return this->check_end();
  }

 private:
  using Base::active_, Base::delay_, Base::entered_, Base::entered_count_, Base::lanes_, Base::now_,
      Base::payload_bytes_, Base::state_, Base::step_, Base::taken_, Base::window_;

  bool decode_blocks() {
    for (uint32_t first = 0; first < this->blocks(); first += lanes_) {
      auto round = this->begin_round(first);
      this->decode_classes(round, tables_, kChannels);
      if (!this->end_round(round)) return false;
    }
    return true;
  }

  // What the stages of a channel's decoding leave for the next ones. A variable of decode_samples(), so that compilers
  // keep it in registers, if there are enough.
  enum Term : uint32_t { kSum, kActivity, kUpper, kTerms };
  static constexpr bool kFitsRegisters = kRecordParts <= 2;
  struct Work {
    Records terms[kTerms * kRecordParts] = {};
    Plane p, up;
    Lanes differences[kParts] = {};
    uint16_t* here = nullptr;              // the records of the step
    Records own[kChannels][kRecordParts];  // see own()
    Plane samples[kChannels];
  };

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
  }

  void prepare_weights(uint32_t c, uint32_t k) {
    int32_t begin = (1 << kWeightShift) / 2;
    for_dense_pairs(tables_.weights[c][k], c, [&](uint32_t pair, int32_t of_sample, int32_t of_error) {
      uint16_t words[W::kWeightWords];
      W::put_weights(of_sample, of_error, words, 1);
      for (uint32_t i = 0; i < W::kWeightWords; ++i) weights_.set(c, k, word_of(pair) + i, words[i]);
      begin -= 128 * of_error;  // records hold errors plus 128
    });
    weights_.set(c, k, 0, static_cast<uint16_t>(begin));
  }

  // How many rows of contexts a channel has.
  uint32_t rows(uint32_t c) const {
    if (!tables_.grouped[c]) return 1;
    uint8_t zone = 0, pattern = 0;
    for (const uint8_t row : tables_.zone_row[c]) zone = row > zone ? row : zone;
    for (const uint8_t row : tables_.pattern_row[c]) pattern = row > pattern ? row : pattern;
    return uint32_t{zone} + pattern + 1;
  }

  bool decode_samples() {
    prepare();
    const auto way = this->start(none_, has_classes_ ? Base::Announced::all : Base::Announced::once);
    this->find_edges(0);
    this->template fix_edges<0, kChannels>();
    this->enter_blocks(0);
    for_channels([&](auto c) __attribute__((always_inline)) { load_weights<c.value>(); });
    Work work;
    L3_FOR_USED_RECORDS sum_neighbours<0>(work, part);
    while (step_ < way.steps) {
      begin_step(way);
      for_channels([&](auto c) __attribute__((always_inline)) {
        find_places<c.value>(work);
        decode_symbols<c.value>(work);
        keep_samples<c.value>(work);
      });
      if (!this->advance(taken_)) return false;
      end_step(work);
    }
    return true;
  }
  L3_DENSE_STAGE void begin_step(const typename Base::Way& way) { Base::begin_step(way); }
  L3_DENSE_STAGE void end_step(const Work& work) {
    Lanes pixels[kParts];
    W::template pixels<kChannels>(work.samples, pixels);
    L3_FOR_USED_PARTS this->sink_.put(step_, part, pixels[part]);
    Base::end_step();
  }

  template <class F>
  L3_INLINE static void for_channels(const F& f) {
    f(std::integral_constant<uint32_t, 0>{});
    if constexpr (kChannels > 1) f(std::integral_constant<uint32_t, 1>{});
    if constexpr (kChannels > 2) f(std::integral_constant<uint32_t, 2>{});
    if constexpr (kChannels > 3) f(std::integral_constant<uint32_t, 3>{});
  }

  // Loads the weights of a channel for the lanes that have entered a block.
  template <uint32_t c>
  L3_INLINE void load_weights() {
    for (uint32_t i = 0; i < entered_count_; ++i) {
      const uint32_t k = entered_[i].classes >> (8 * c) & (kMaxClasses - 1);
      weights_.enter(c, entered_[i].lane, k, word_of(dense_pairs(c)));
    }
  }

  // ---- samples

  // Where the words of a pair of weights begin.
  L3_INLINE static constexpr uint32_t word_of(uint32_t pair) { return 1 + W::kWeightWords * pair; }
  L3_INLINE void add_activity(uint32_t c, uint32_t pair, Records magnitudes, Records& activity) const {
    activity = W::template add_products<kRecords>(magnitudes, activity_[c][W::kWeightWords * pair], activity);
  }

  // The records of the step, in the lanes that decoded them.
  L3_INLINE Records own(const Work& work, uint32_t channel, uint32_t part) const {
    if constexpr (kFitsRegisters) {
      return work.own[channel][part];
    } else {
      return W::load_records(now_ + place_of(kOwn, channel) + part * kRecords);
    }
  }
  // The terms of a prediction and of its activity that are known before the channels of the pixel, and the errors at NW
  // and NE.
  template <uint32_t c>
  L3_INLINE void sum_neighbours(Work& work, uint32_t part) {
    const uint16_t* const now = held(now_ + part * kRecords);
    const auto weights = weights_.part(c, part);
    const auto near = [&](NeighbourRole role, uint32_t channel) __attribute__((always_inline)) {
      return W::load_records(now + place_of(role, channel));
    };
    const Records none = W::all_records(0x8080);
    Records sum = weights.load(0), activity = W::all_records(kActivityFloor);
    const auto add_role = [&](NeighbourRole role) __attribute__((always_inline)) {
      const Records r = near(role, c);
      sum = weights.add_products(r, word_of(role), sum);
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
      for (const NeighbourRole role : {kRoleW, kRoleN, kRoleNw}) {
        sum = weights.add_products(near(role, c - 1 - before), word_of(cross_pair(before) + role), sum);
      }
    }
    const auto keep_term = [&](Term term, Records value) __attribute__((always_inline)) {
      Records* const to = work.terms + term * kRecordParts + part;
      if constexpr (kFitsRegisters) {
        *to = value;
      } else {
        *held(to) = value;
      }
    };
    keep_term(kSum, sum);
    keep_term(kActivity, activity);
    keep_term(kUpper, upper);
  }
  // Finds where each lane's symbol is: adds the terms of the pixel's channels before, splits the sums into predictions
  // and the directions in which they lean, and looks for the context and the bucket. Then sums up the next channel.
  template <uint32_t c>
  L3_DENSE_STAGE void find_places(Work& work) {
    Records sums[kRecordParts], activities[kRecordParts], predictions[kRecordParts];
    if constexpr (c > 0) {
      L3_UNROLL_RECORDS {
        const auto weights = weights_.part(c, part);
        Records sum = work.terms[kSum * kRecordParts + part], activity = work.terms[kActivity * kRecordParts + part];
        const auto here = [&](uint32_t before) __attribute__((always_inline)) {
          const Records r = own(work, c - 1 - before, part);
          sum = weights.add_products(r, word_of(here_pair(c) + before), sum);
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
    W::split_sums(c > 0 ? sums : work.terms + kSum * kRecordParts, p, up, predictions);
    Plane row = W::no_bytes();
    if (tables_.grouped[c]) {
      typename W::Signs of_w[kRecordParts], of_n[kRecordParts];
      L3_UNROLL_RECORDS {
        const uint16_t* const now = now_ + part * kRecords;
        of_w[part] = W::not_below(W::load_records(now + place_of(kRoleW, c)), predictions[part]);
        of_n[part] = W::not_below(W::load_records(now + place_of(kRoleN, c)), predictions[part]);
      }
      row = W::rows(tables_, c, p ^ up, W::pack_signs(of_w, of_n, work.terms + kUpper * kRecordParts) ^ up);
    }
    W::store_places(W::pack_levels(c > 0 ? activities : work.terms + kActivity * kRecordParts), row, state_, places_);
    work.p = p;
    work.up = up;
    load_weights<c>();
    work.here = now_;
    if constexpr (c + 1 < kChannels) {
      L3_FOR_USED_RECORDS sum_neighbours<c + 1>(work, part);
    } else {
      this->restore_edges();
      now_ += kStepRecords;
      this->find_edges(step_ + 1);
      if constexpr (kChannels > 1) this->template fix_edges<0, kChannels - 1>();
    }
  }
  template <uint32_t c>
  L3_DENSE_STAGE void decode_symbols(Work& work) {
    uint32_t taken = taken_;
    const Window window = window_;
    const auto look_up = [&](uint32_t part, Lanes & own, Lanes & other) __attribute__((always_inline)) {
      W::look_up_part(first_bucket_[c], tables_.buckets, places_, part, own, other);
    };
    const auto decode = [&](uint32_t part, Lanes own, Lanes other) __attribute__((always_inline)) {
      work.differences[part] = this->decode_symbol(constant<kTableBuckets>, part, own, other, active_[part]);
      this->refill(part, this->refills_[part], window, taken);
    };
    // Of two parts only one has work while the first lanes enter the tile, and while the last ones leave it.
    const auto has_work = [&](uint32_t part) __attribute__((always_inline)) {
      return kParts != 2 || W::bits(active_[part]) != 0;
    };
    if (kParts == 2 && has_work(0) && has_work(1)) {
      Lanes own[kParts], other[kParts];
      L3_UNROLL_UP_TO(kParts) look_up(part, own[part], other[part]);
      L3_UNROLL_UP_TO(kParts) decode(part, own[part], other[part]);
    } else {
      L3_FOR_USED_PARTS {
        if (!has_work(part)) continue;
        Lanes own, other;
        look_up(part, own, other);
        decode(part, own, other);
      }
    }
    taken_ = taken;
  }
  // Turns symbols into samples and errors, and keeps them for later pixels. The last channel sums up the first one:
  // this comes long after its edges were corrected, since vectors that wait for single numbers to be stored are slow.
  template <uint32_t c>
  L3_DENSE_STAGE void keep_samples(Work& work) {
    uint16_t* const here = work.here;
    const Plane p = work.p, up = work.up;
    if constexpr (c > 0 && c + 1 == kChannels) {
      L3_FOR_USED_RECORDS sum_neighbours<0>(work, part);
    }
    // The difference counts in the direction in which the prediction leans.
    const Plane sample = p + (W::pack_bytes(work.differences) ^ up) - up;
    work.samples[c] = sample;
    Records records[kRecordParts];
    W::records(sample, p, records);
    if constexpr (kFitsRegisters) std::copy_n(records, kRecordParts, work.own[c]);
    this->keep(here, c, records, this->delay_.ends(lanes_));
    if constexpr (c + 1 == kChannels) {
      this->template fix_edges<kChannels - 1, kChannels>();
      if constexpr (kChannels == 1) {
        L3_FOR_USED_RECORDS sum_neighbours<0>(work, part);
      }
    }
  }

  const DenseTables& tables_;
  bool has_classes_ = false;
  uint16_t none_[kChannels];
  DenseWeights<W, kChannels, kWords> weights_;
  alignas(64) uint16_t activity_[kChannels][W::kWeightWords * kActivityPairs][kRecords];
  alignas(64) uint32_t places_[kLanes];
  uint16_t first_bucket_[kChannels][kMaxRows * kLevels];
};

}  // namespace l3
