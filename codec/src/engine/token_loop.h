// Decodes a tile with a token model on a processor (section 15 of the spec). GPUs have kernels/src/token_decoder.cuh.
//
// A step decodes one pixel in each lane: first what it repeats, then, in the lanes where it repeats nothing, its
// numbers. TokenRecords keeps what later steps need.
#pragma once

#include <algorithm>

#include "engine/token_records.h"
#include "engine/token_taps.h"
#include "engine/token_warp.h"

namespace l3 {

template <class W, uint32_t kChannels, TokenUse kUse, class Value, class Sink>
class TokenLoop : TokenRecords<W, kChannels, kUse, Value, Sink> {
  using Base = TokenRecords<W, kChannels, kUse, Value, Sink>;
  using typename Base::Classes, typename Base::Follow, typename Base::Numbers, typename Base::Values,
      typename Base::Window;
  using typename Base::Front::Lanes, typename Base::Front::Mask;
  using Sums = typename W::Sums;
  using Base::kHasHoles, Base::kLiteral, Base::kNone, Base::kNumberParts, Base::kNumbers, Base::kPartLanes,
      Base::kParts, Base::kPartsOfRecords, Base::kRecordParts, Base::kRecords, Base::kStepRecords, Base::place_of;
  static constexpr uint32_t kOctaves = 32;  // a power of two, at least kMatchOctaves

 public:
  TokenLoop(const TileShape& shape, const TileEntry& entry, const TokenTables& tables, Sink& sink, Classes& classes)
      : Base(shape, entry, tables, sink, classes) {
    for (uint32_t c = 0; c < kChannels; ++c) none_[c] = c < channels() ? kNone : 0;
    if constexpr (!kLiteral) errors_.begin(no_errors_);
  }

  Fault decode() {
    if (tables_.follow && !follow_.begin(width_, height_, lanes_, channels())) return {Reason::out_of_memory};
    this->load_states();
    if (!this->decode_token_blocks(tables_, rows_.blocks()) || !decode_values()) {
      return {Reason::dense_words, payload_bytes_};
    }
    return this->check_end();
  }

 private:
  // The place of a table's first bucket.
  struct FirstBucket {
    const uint8_t* tables;
    L3_INLINE uint32_t operator[](uint32_t context) const { return tables[context] * kTokenBuckets; }
  };

  using Base::active_, Base::all, Base::any_escaped_, Base::channels, Base::classes_, Base::copy_still, Base::equal,
      Base::error, Base::error_here_, Base::errors_, Base::follow_, Base::height_, Base::here_, Base::hole,
      Base::is_between, Base::keep_records, Base::lanes_, Base::lanes_of, Base::last_value_, Base::near, Base::now_,
      Base::payload_bytes_, Base::refills_, Base::state_, Base::step_, Base::tables_, Base::taken_,
      Base::track_last_value, Base::value, Base::width_, Base::window_;

  bool has_octaves() const { return !kLiteral && !tables_.follow && tables_.match_by_activity; }

  // Brings the model into the form that the loop needs.
  void prepare() {
    for (uint32_t i = 0; i < kMatchPatterns && tables_.match; ++i) {
      const uint8_t* const tables = tables_.match_table + tables_.match_row[i] * kMatchOctaves;
      if (has_octaves() || tables_.follow) {
        std::memcpy(match_tables_ + kOctaves * i, tables, kMatchOctaves);
      } else {
        match_tables_[i] = tables[0];
      }
    }
    if constexpr (!kLiteral) {
      for (uint32_t c = 0; c < channels(); ++c) prepare_weights(c);
    }
  }
  void prepare_weights(uint32_t c) {
    has_classes_ = has_classes_ || tables_.classes[c] > 1;
    for (uint32_t i = 0; i < tap_pairs(c); ++i) {
      for (uint32_t k = 0; k < tables_.classes[c]; ++k) {
        classes_weights_[c][k][i] = W::pair(tap_pair(tables_.weights[c][k], i));
      }
      std::fill_n(weights_[c][i], kLanes, classes_weights_[c][0][i]);
    }
    for (uint32_t i = 0; i < kActivityPairs; ++i) activity_[c][i] = W::pair(activity_pair(tables_.activity[c], i));
  }

  bool decode_values() {
    prepare();
    auto announced = has_classes_ ? Base::Announced::all : Base::Announced::none;
    if (tables_.still) {
      rows_.turn(width_, height_, tables_.rows ? nullptr : &classes_);
      this->still_rows_ = &rows_;
      announced = has_classes_ ? Base::Announced::busy : Base::Announced::changes;
    }
    const auto way = this->start(none_, announced);
    if constexpr (!kLiteral) errors_.delay_.clear(dense_delay(width_, lanes_));
    std::fill_n(still_, kLanes, Value{0});
    L3_FOR_PARTS active_[part] = W::equal(W::numbers(part), kLanes);
    this->find_edges(0);
    fix_edges();
    this->enter_blocks(0);
    enter();
    uint32_t ask_at = 0;  // until this step no step has all lanes in still blocks
    while (step_ < way.steps) {
      if (tables_.still && step_ >= ask_at && is_inside()) {
        const auto ahead = rows_.ahead(width_, height_, this->lead_, this->lead_row_, lanes_);
        ask_at = step_ + ahead.busy;
        if (ahead.idle > 0) {
          pass_still(ahead.idle);
          continue;
        }
      }
      begin_step(way);
      if (any_to_decode_ && !decode_step()) return false;
      end_step();
    }
    return true;
  }
  // Whether no lane is at an edge of the tile.
  L3_INLINE bool is_inside() const { return this->lead_row_ > 1 && is_between(this->lead_); }
  bool decode_step() {
    if (tables_.match) {
      if (tables_.follow) find_follows();
      find_matches();
      decode_matches();
    } else {
      L3_UNROLL_RECORDS escaped_[part] = to_decode_[part];
      any_escaped_ = true;
    }
    if (any_escaped_) {
      if constexpr (!kLiteral) prepare_escapes();
      decode_numbers<0>();
      if constexpr (kChannels > 1) decode_numbers<1>();
      if constexpr (kChannels > 2) {
        if (channels() > 2) decode_numbers<2>();
      }
      if constexpr (kChannels > 3) {
        if (channels() > 3) decode_numbers<3>();
      }
    }
    return this->advance(taken_);
  }

  // Copies the pixels of still blocks (section 15.4: W if N equals NW, else N). The others are to be decoded.
  L3_STAGE void begin_step(const typename Base::Way& way) {
    Base::begin_step(way);
    if constexpr (!kLiteral) errors_.delay_.next();
    if (tables_.follow) follow_.begin_step(this->lead_, is_between(this->lead_));
    if constexpr (kHasHoles) {
      if (this->first_ < kLanes) last_value_[this->first_] = kNone;
    }
    if (!this->is_steady()) has_places_ = false;
    any_to_decode_ = false;
    L3_UNROLL_RECORDS {
      if (!has_places_) active_records_[part] = W::template masks<Values>(active_ + part * kPartsOfRecords);
      Values decoded = active_records_[part];
      if (tables_.still) {
        decoded = W::without(decoded, W::load_records(still_ + part * kRecords));
        copy_still(part);
      }
      to_decode_[part] = decoded;
      any_to_decode_ = any_to_decode_ || W::any(decoded);
      if constexpr (kHasHoles) {
        const Value* const now = now_ + part * kRecords;
        track_last_value(part, near(now, kRoleN, 0), near(now, kRoleW, 0));
      }
    }
    clear_errors();
    has_places_ = this->is_steady();
    any_escaped_ = false;
  }
  L3_INLINE void clear_errors() {
    for (uint32_t c = 0; c < channels() && !kLiteral; ++c) {
      L3_UNROLL_NUMBERS error_here_[c][part] = W::all_records(0);
    }
  }
  // Keeps what the step has decoded, and makes the neighbours of the next one ready.
  L3_STAGE void end_step() {
    keep_records(this->lead_);
    restore_edges();
    now_ += kStepRecords;
    if constexpr (!kLiteral) this->next_errors();
    this->find_edges(step_ + 1);
    fix_edges();
    enter();
    Base::end_step();
  }
  void fix_edges() {
    if (this->edge_count_ == 0) return;
    Base::template fix_edges<0, kChannels>();
    if constexpr (!kLiteral) errors_.template fix_edges<0, kChannels>(this->edges_, this->edge_count_);
    if (this->noisy_ != 0) this->noisy_ = UINT32_MAX;  // errors may have been copied from step to step
  }
  L3_INLINE void restore_edges() {
    Base::restore_edges();
    if constexpr (!kLiteral) errors_.restore_edges(this->last_);
  }
  // Passes steps in which all lanes are in still blocks and none is at an edge of the tile: nothing is decoded.
  L3_STAGE void pass_still(uint32_t steps) {
    const bool was_steady = this->is_steady();
    this->lead_ += steps - 1;
    any_escaped_ = false;
    clear_errors();
    uint32_t left = steps;
    if (lanes_ > 1 && steps > 2 * Base::kBack && !tables_.follow) {
      // Later steps need the records of the last ones only.
      left = Base::kBack;
      this->pass_without_records(steps - left);
    }
    for (; left > 0; --left) {
      this->delay_.next();
      if constexpr (!kLiteral) errors_.delay_.next();
      L3_UNROLL_RECORDS {
        copy_still(part);
        if constexpr (kHasHoles)
          track_last_value(part, near(now_ + part * kRecords, kRoleN, 0), near(now_ + part * kRecords, kRoleW, 0));
      }
      if (tables_.follow) follow_.begin_step(this->lead_ + 1 - left, is_between(this->lead_ + 1 - left));
      keep_records(this->lead_ + 1 - left);
      now_ += kStepRecords;
      if constexpr (!kLiteral) this->next_errors();
      this->finish_step();
    }
    this->find_edges(step_);
    fix_edges();
    this->enter_blocks(step_);
    enter();
    if (was_steady && this->is_steady()) return;
    this->place_lanes();
    L3_FOR_USED_PARTS this->find_place(part);
    has_places_ = false;
  }
  // Makes the lanes that enter a block ready for it.
  L3_INLINE void enter() {
    for (uint32_t i = 0; i < this->entered_count_; ++i) {
      const uint32_t lane = this->entered_[i].lane, classes = this->entered_[i].classes;
      const bool is_still = (classes & kStillBlock) != 0;
      still_[lane] = static_cast<Value>(is_still ? -1 : 0);
      if (!has_classes_ || is_still) continue;
      lane_classes_[lane] = classes;
      if (tables_.match) {
        entered_lanes_ |= 1u << lane;
      } else if constexpr (!kLiteral) {
        load_weights(lane);
      }
    }
  }
  L3_INLINE void load_weights(uint32_t lane) {
    const uint32_t classes = lane_classes_[lane];
    for (uint32_t c = 0; c < channels(); ++c) {
      const uint32_t* const from = held(classes_weights_[c][classes >> (8 * c) & (kMaxClasses - 1)]);
      uint32_t* const to = held(weights_[c][0] + W::place_in_sums(lane));
      for (uint32_t pair = 0; pair < tap_pairs(c); ++pair) to[pair * kLanes] = held(from[pair]);
    }
  }
  // Where pixels may repeat others, most lanes leave a block before they escape. So weights are loaded only now.
  L3_INLINE void prepare_escapes() {
    for (uint32_t left = entered_lanes_ & lanes_of(escaped_); left != 0; left &= left - 1) {
      const uint32_t lane = static_cast<uint32_t>(__builtin_ctz(left));
      entered_lanes_ &= ~(1u << lane);
      load_weights(lane);
    }
    L3_UNROLL_NUMBERS {
      wide_escaped_[part] = W::wide_mask(escaped_, part);
      has_escaped_[part] = W::any(wide_escaped_[part]);
    }
  }

  // ---- matches (section 15.1)

  // Finds where the symbols of matches are.
  L3_STAGE void find_matches() {
    Values octaves[kRecordParts];
    L3_UNROLL_RECORDS octaves[part] = all(0);
    const bool with_octaves = has_octaves();
    if constexpr (!kLiteral) {
      if (with_octaves) find_octaves(octaves);
    }
    L3_UNROLL_RECORDS {
      if (!W::any(to_decode_[part])) continue;
      const Value* const now = held(now_ + part * kRecords);
      Values pattern = all(0);
      const auto add = [&](NeighbourRole a, NeighbourRole b, uint32_t bit) __attribute__((always_inline)) {
        pattern = W::either(pattern, W::both(equal(now, a, b), all(bit)));
      };
      add(kRoleW, kRoleN, 1);
      add(kRoleN, kRoleNe, 2);
      add(kRoleN, kRoleNw, 4);
      add(kRoleW, kRoleNw, 8);
      add(kRoleWw, kRoleW, 16);
      add(kRoleNn, kRoleN, 32);
      add(kRoleNne, kRoleNe, 64);
      add(kRoleNww, kRoleNw, 128);
      const Lanes* const states = state_ + part * kPartsOfRecords;
      uint32_t* const places = places_ + part * kRecords;
      if (tables_.follow) {
        W::store_places(pattern, follow_numbers(now, part), states, places);
      } else if (with_octaves) {
        W::store_places(pattern, octaves[part], states, places);
      } else {
        W::store_places(pattern, states, places);
      }
    }
  }
  // The octaves of the activities of the first channel.
  L3_INLINE void find_octaves(Values (&octaves)[kRecordParts]) {
    Numbers of[kNumberParts];
    L3_UNROLL_NUMBERS {
      sums_[part] = own_activity<0>(part);
      of[part] = W::levels(sums_[part]) >> 2;
    }
    if constexpr (Base::kAreBytes) {
      L3_UNROLL_RECORDS octaves[part] = W::packed(of + part * (kRecords / kNumbers));
    } else {
      L3_UNROLL_RECORDS octaves[part] = of[part];
    }
  }
  // Finds what the pixels follow.
  L3_STAGE void find_follows() {
    Values flat[kRecordParts];
    L3_UNROLL_RECORDS {
      const Value* const now = now_ + part * kRecords;
      flat[part] =
          W::both(equal(now, kRoleW, kRoleN), W::both(equal(now, kRoleNw, kRoleN), equal(now, kRoleNe, kRoleN)));
    }
    follow_.find(step_, this->lead_row_, lanes_of(to_decode_), lanes_of(flat), [&](uint16_t* sums) { sum_near(sums); });
  }
  // The sums of the lanes' neighbours and their factors.
  L3_INLINE void sum_near(uint16_t* sums) const {
    L3_UNROLL_NUMBERS {
      const Value* const now = now_ + part * kNumbers;
      Numbers sum = W::all_records(0);
      for (uint32_t c = 0; c < channels(); ++c) {
        for (const NeighbourRole role : {kRoleW, kRoleN, kRoleNw, kRoleNe}) {
          sum = W::sum(sum, W::times(Base::numbers(now + place_of(role, c)), kNearFactors[c][role]));
        }
      }
      W::store_records(sums + part * kNumbers, sum);
    }
  }
  // The numbers of what the pixels follow, from the sources and which neighbours the followed pixels equal.
  L3_INLINE Values follow_numbers(const Value* now, uint32_t part) const {
    const auto follows = [&](NeighbourRole role) __attribute__((always_inline)) {
      Values all_channels = W::same(follow_.followed(0, part), near(now, role, 0));
      for (uint32_t c = 1; c < kChannels; ++c) {
        all_channels = W::both(all_channels, W::same(follow_.followed(c, part), near(now, role, c)));
      }
      return all_channels;
    };
    Values relation =
        W::select(W::either(follows(kRoleNw), follows(kRoleNe)), all(2 * kFollowSources), all(3 * kFollowSources));
    relation = W::select(follows(kRoleN), all(kFollowSources), relation);
    relation = W::without(relation, follows(kRoleW));
    const Values sources = follow_.sources(part);
    return W::without(W::sum(sources, relation), W::same(sources, all(0)));
  }
  // Decodes what the pixels repeat. Lanes whose pixel repeats nothing escape.
  L3_STAGE void decode_matches() {
    uint32_t taken = taken_;
    const Window window = window_;
    L3_FOR_USED_PARTS {
      const Mask mask = W::lane_mask(to_decode_, part);
      if (W::bits(mask) == 0) continue;
      Lanes own, other;
      W::look_up_places(FirstBucket{match_tables_}, tables_.buckets, places_ + part * kPartLanes, own, other);
      numbers_[part] = this->decode_symbol(constant<kTokenBuckets>, part, own, other, mask);
      this->refill(part, W::both(mask, refills_[part]), window, taken);
    }
    taken_ = taken;
    any_escaped_ = false;
    L3_UNROLL_RECORDS {
      const Values decoded = to_decode_[part];
      escaped_[part] = all(0);
      if (!W::any(decoded)) continue;
      const Value* const now = now_ + part * kRecords;
      const Values symbol = W::template narrowed<Values>(numbers_ + part * kPartsOfRecords);
      const Values is_n = W::same(symbol, all(kMatchN)), is_ne = W::same(symbol, all(kMatchNe)),
                   is_nw = W::same(symbol, all(kMatchNw)), is_followed = W::same(symbol, all(kMatchFollow));
      for (uint32_t c = 0; c < kChannels; ++c) {
        Values matched = W::select(is_n, near(now, kRoleN, c), near(now, kRoleW, c));
        matched = W::select(is_ne, near(now, kRoleNe, c), matched);
        matched = W::select(is_nw, near(now, kRoleNw, c), matched);
        if (tables_.follow) matched = W::select(is_followed, follow_.followed(c, part), matched);
        here_[c][part] = W::select(decoded, matched, here_[c][part]);
      }
      Values escaped = W::both(decoded, W::not_less(symbol, all(kMatchNone)));
      if constexpr (kHasHoles) {
        const Values is_hole = W::both(decoded, W::same(symbol, all(kMatchHole)));
        here_[0][part] = W::select(is_hole, hole(), here_[0][part]);
        escaped = W::without(escaped, is_hole);
      }
      if (tables_.follow) {
        const Values nothing = W::same(follow_.sources(part), all(0));
        escaped = W::without(escaped, W::without(is_followed, nothing));
      }
      escaped_[part] = escaped;
      any_escaped_ = any_escaped_ || W::any(escaped);
    }
  }

  // ---- numbers (sections 15.2 and 15.3)

  template <uint32_t c>
  L3_INLINE void decode_numbers() {
    find_places<c>();
    decode_tokens<c>();
    finish<c>();
  }

  // The terms of an activity that come from the channel's own neighbours.
  template <uint32_t c>
  L3_INLINE Sums own_activity(uint32_t part) const {
    const Value* const now = held(now_ + part * kNumbers);
    const uint16_t* const errors = held(errors_.now_ + part * kNumbers);
    Sums activity = W::all_sums(kActivityFloor);
    const auto add = [&](uint32_t i, Numbers a, Numbers b) __attribute__((always_inline)) {
      W::add_pairs(a, b, activity_[c][i], activity);
    };
    const auto magnitude = [&](NeighbourRole role) __attribute__((always_inline)) {
      return W::error_magnitudes(error(errors, role, c));
    };
    add(0, magnitude(kRoleW), magnitude(kRoleN));
    add(1, magnitude(kRoleNw), magnitude(kRoleNe));
    add(2, magnitude(kRoleWw), magnitude(kRoleNn));
    const Numbers n = value(now, kRoleN, c, part), nw = value(now, kRoleNw, c, part);
    add(4, W::value_distances(value(now, kRoleW, c, part), nw), W::value_distances(n, nw));
    add(5, W::value_distances(n, value(now, kRoleNe, c, part)), W::all_records(0));
    return activity;
  }

  // Predicts, and finds where each lane's token is.
  template <uint32_t c>
  L3_STAGE void find_places() {
    if constexpr (kLiteral) {
      L3_UNROLL_RECORDS {
        if (!W::any(escaped_[part])) continue;
        Values context = near(now_ + part * kRecords, kRoleW, 0);
        if constexpr (!Base::kAreBytes) context = W::at_most_255(W::flipped(context));
        W::store_places(context, state_ + part * kPartsOfRecords, places_ + part * kRecords);
      }
    } else {
      constexpr uint32_t kPartsOfNumbers = kParts / kNumberParts;
      L3_UNROLL_NUMBERS {
        if (!has_escaped_[part]) continue;
        W::store_places(find_context<c>(part), state_ + part * kPartsOfNumbers, places_ + part * kNumbers);
      }
    }
  }
  template <uint32_t c>
  L3_INLINE Numbers find_context(uint32_t part) {
    const Value* const now = held(now_ + part * kNumbers);
    const uint16_t* const errors = held(errors_.now_ + part * kNumbers);
    // Corrects the bias of the values, whose weights add up to 1 in 64ths, and adds one half for rounding.
    Sums sum = W::all_sums((uint32_t{kNone} << kWeightShift) + (1u << kWeightShift >> 1));
    const uint32_t* const weights = held(weights_[c][0] + part * kNumbers);
    const auto add = [&](uint32_t pair, Numbers a, Numbers b) __attribute__((always_inline)) {
      W::add_pairs(a, b, weights + pair * kLanes, sum);
    };
    const auto of = [&](NeighbourRole role) __attribute__((always_inline)) { return value(now, role, c, part); };
    const auto error_of = [&](NeighbourRole role) __attribute__((always_inline)) { return error(errors, role, c); };
    const Numbers w = of(kRoleW), n = of(kRoleN);
    add(0, w, n);
    add(1, of(kRoleNw), of(kRoleNe));
    add(2, of(kRoleWw), of(kRoleNn));
    add(3, of(kRoleNne), of(kRoleNww));
    const Numbers ew = error_of(kRoleW), en = error_of(kRoleN), enw = error_of(kRoleNw), ene = error_of(kRoleNe);
    add(kErrorPair, ew, en);
    add(kErrorPair + 1, enw, ene);
    add(kErrorPair + 2, error_of(kRoleWw), error_of(kRoleNn));
    const bool is_known = c == 0 && tables_.match && has_octaves();
    Sums activity = is_known ? sums_[part] : own_activity<c>(part);
    if constexpr (c > 0) {
      const Numbers before = error_here_[c - 1][part];
      const Numbers second = c > 1 ? error_here_[c > 1 ? c - 2 : 0][part] : W::all_records(0);
      add(kCrossErrorPair, before, second);
      W::add_pairs(W::error_magnitudes(before), W::error_magnitudes(second), activity_[c][3], activity);
      for (uint32_t i = 0; i < cross_channels(c); ++i) {
        const uint32_t from = c - 1 - i;
        add(kCrossPair + 2 * i, value(now, kRoleW, from, part), value(now, kRoleN, from, part));
        add(kCrossPair + 2 * i + 1, value(now, kRoleNw, from, part), decoded_[from][part]);
      }
    }
    const Numbers most = W::all_records(max_value(c));
    Numbers p, up;
    W::split(sum, max_value(c), p, up);
    p_[part] = p;
    up_[part] = up;
    const Numbers level = W::levels(activity);
    if (!tables_.grouped[c]) return level;
    const Numbers zone = W::bit_lengths(W::both(W::exclusive(p, up), most));
    // In the decoder's bit order: W and N compared with p, then the signs of the errors.
    const Numbers seen = Base::seen_as(p);
    Numbers pattern = W::both(W::not_less(w, seen), W::all_records(1));
    pattern = W::either(pattern, W::both(W::not_less(n, seen), W::all_records(2)));
    const auto sign = [&](Numbers e, uint32_t bit) __attribute__((always_inline)) {
      pattern = W::either(pattern, W::both(W::signs(e), W::all_records(1u << bit)));
    };
    sign(ew, 2);
    sign(en, 3);
    sign(enw, 4);
    sign(ene, 5);
    pattern = W::both(W::exclusive(pattern, up), W::all_records(kSignPatterns - 1));
    return W::context(level, W::look_up_16(tables_.zone_row[c], zone), W::look_up_64(tables_.pattern_row[c], pattern));
  }

  template <uint32_t c>
  L3_STAGE void decode_tokens() {
    uint32_t taken = taken_;
    const Window window = window_;
    uint32_t raw_parts = 0;  // a bit for each
    Mask is_raw[kParts];
    L3_FOR_USED_PARTS {
      const Mask mask = W::lane_mask(escaped_, part);
      if (W::bits(mask) == 0) continue;
      Lanes own, other;
      W::look_up_places(FirstBucket{kLiteral ? tables_.literal_table : tables_.table_of[c]}, tables_.buckets,
                        places_ + part * kPartLanes, own, other);
      numbers_[part] = this->decode_symbol(constant<kTokenBuckets>, part, own, other, mask);
      this->refill(part, W::both(mask, refills_[part]), window, taken);
      is_raw[part] = W::and_not(mask, W::less(numbers_[part], kDirectTokens));
      if (W::bits(is_raw[part]) != 0) raw_parts |= 1u << part;
    }
    for (; raw_parts != 0; raw_parts &= raw_parts - 1) {
      const uint32_t part = static_cast<uint32_t>(__builtin_ctz(raw_parts));
      const Lanes token = numbers_[part];
      const Lanes raw_bits = ((token - W::splat(constant<kDirectTokens>)) >> 1) + constant<4>;
      const Lanes count = W::select(is_raw[part], raw_bits, W::splat(constant<0>));
      const Lanes raw = state_[part] & (W::shifted_left(W::splat(constant<1>), count) - W::splat(constant<1>));
      const Lanes number = W::shifted_left((token & constant<1>) | constant<2>, count) | raw;
      numbers_[part] = W::select(is_raw[part], number, token);
      state_[part] = W::shifted_right(state_[part], count);
      this->refill(part, W::both(is_raw[part], refills_[part]), window, taken);
    }
    taken_ = taken;
  }

  // Turns numbers into values and errors.
  template <uint32_t c>
  L3_STAGE void finish() {
    const Numbers most = W::all_records(max_value(c));
    constexpr uint32_t kPartsOfNumbers = kParts / kNumberParts;
    Numbers decoded[kNumberParts];
    L3_UNROLL_NUMBERS {
      decoded[part] = W::all_records(0);
      if (!kLiteral && !has_escaped_[part]) continue;
      const Numbers number = W::narrow(numbers_ + part * kPartsOfNumbers);
      if constexpr (kLiteral) {
        decoded[part] = W::both(number, most);
      } else {
        // Odd numbers go in the direction in which the prediction leans.
        const Numbers p = p_[part], up = up_[part];
        const Numbers odd = W::difference(W::all_records(0), W::both(number, W::all_records(1)));
        const Numbers difference = W::exclusive(number >> 1, W::exclusive(odd, up));
        decoded[part] = W::both(W::difference(W::sum(p, difference), up), most);
        decoded_[c][part] = Base::seen_as(decoded[part]);
        error_here_[c][part] = W::both(wide_escaped_[part], W::token_errors(decoded[part], p));
      }
    }
    L3_UNROLL_RECORDS {
      if constexpr (Base::kAreBytes) {
        const Values values = W::packed(decoded + part * (kRecords / kNumbers));
        here_[c][part] = W::select(escaped_[part], values, here_[c][part]);
      } else {
        here_[c][part] = W::select(escaped_[part], Base::seen_as(decoded[part]), here_[c][part]);
      }
    }
  }

  uint32_t max_value(uint32_t c) const { return (1u << tables_.depth[c]) - 1; }

  bool has_classes_ = false, has_places_ = false, any_to_decode_ = false;
  bool has_escaped_[kNumberParts] = {};
  Value none_[kChannels];
  static constexpr uint16_t no_errors_[kChannels] = {};
  Values active_records_[kRecordParts] = {}, to_decode_[kRecordParts] = {}, escaped_[kRecordParts] = {};
  Numbers wide_escaped_[kNumberParts] = {};
  Numbers p_[kNumberParts] = {}, up_[kNumberParts] = {}, decoded_[kChannels][kNumberParts] = {};
  uint32_t entered_lanes_ = 0;  // a bit for each lane that has entered a block and does not have its weights yet
  uint32_t lane_classes_[kLanes];
  Sums sums_[kNumberParts] = {};  // activities
  Lanes numbers_[kParts] = {};
  alignas(64) Value still_[kLanes];  // all bits, if the lane is in a still block
  alignas(64) uint32_t places_[kLanes];
  alignas(64) uint32_t weights_[kChannels][kTapPairs][kLanes];
  uint32_t classes_weights_[kChannels][kMaxClasses][kTapPairs];
  uint32_t activity_[kChannels][kActivityPairs];
  uint8_t match_tables_[kMatchPatterns * kOctaves];  // by pattern of equalities, and octave if activity counts
  StillRows rows_;
};

}  // namespace l3
