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

template <class W, uint32_t kChannels, TokenUse kUse, class Sink>
class TokenLoop : TokenRecords<W, kChannels, kUse, Sink> {
  using Base = TokenRecords<W, kChannels, kUse, Sink>;
  using typename Base::Classes, typename Base::Follow, typename Base::Records, typename Base::Window;
  using typename Base::Front::Lanes, typename Base::Front::Mask;
  using Sums = typename W::Sums;
  using Base::kArrays, Base::kHasHoles, Base::kLiteral, Base::kPartLanes, Base::kParts, Base::kRecordParts,
      Base::kRecords, Base::kStepRecords, Base::place_of;
  static constexpr uint32_t kPartsOfRecords = W::kPartsOfRecords;
  static constexpr uint32_t kOctaves = 32;  // a power of two, at least kMatchOctaves

 public:
  TokenLoop(const TileShape& shape, const TileEntry& entry, const TokenTables& tables, Sink& sink, Classes& classes)
      : Base(shape, entry, tables, sink, classes) {
    for (uint32_t i = 0; i < kArrays; ++i) none_[i] = i < kChannels ? kValueBias : 0;
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

  using Base::active_, Base::any_escaped_, Base::channels, Base::classes_, Base::copy_still, Base::error,
      Base::error_here_, Base::follow_, Base::height_, Base::here_, Base::hole, Base::is_between, Base::keep_records,
      Base::lanes_, Base::lanes_of, Base::last_value_, Base::near, Base::now_, Base::payload_bytes_, Base::refills_,
      Base::state_, Base::step_, Base::tables_, Base::taken_, Base::track_last_value, Base::value, Base::width_,
      Base::window_;

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
    std::fill_n(still_, kLanes, uint16_t{0});
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
      L3_UNROLL_RECORDS {
        escaped_[part] = to_decode_[part];
        has_escaped_[part] = W::any(to_decode_[part]);
      }
      any_escaped_ = true;
    }
    if (any_escaped_) {
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
    if (tables_.follow) follow_.begin_step(this->lead_, is_between(this->lead_));
    if (!this->is_steady()) has_places_ = false;
    any_to_decode_ = false;
    L3_UNROLL_RECORDS {
      if (!has_places_) active_records_[part] = W::mask_records(active_ + part * kPartsOfRecords);
      Records decoded = active_records_[part];
      if (tables_.still) {
        decoded = W::without(decoded, W::load_records(still_ + part * kRecords));
        copy_still(part);
      }
      to_decode_[part] = decoded;
      any_to_decode_ = any_to_decode_ || W::any(decoded);
      for (uint32_t c = 0; c < channels() && !kLiteral; ++c) error_here_[c][part] = W::all_records(0);
      if constexpr (kHasHoles) {
        const uint16_t* const now = now_ + part * kRecords;
        const Records numbers = W::record_numbers(part);
        last_value_[part] =
            W::select(W::same(numbers, W::all_records(this->first_)), W::all_records(kValueBias), last_value_[part]);
        track_last_value(part, near(now, kRoleN, 0), near(now, kRoleW, 0));
      }
    }
    has_places_ = this->is_steady();
    any_escaped_ = false;
  }
  // Keeps what the step has decoded, and makes the neighbours of the next one ready.
  L3_STAGE void end_step() {
    keep_records(this->lead_);
    this->restore_edges();
    now_ += kStepRecords;
    this->find_edges(step_ + 1);
    fix_edges();
    enter();
    Base::end_step();
  }
  void fix_edges() {
    if (this->edge_count_ == 0) return;
    Base::template fix_edges<0, kArrays>();
    if (this->noisy_ != 0) this->noisy_ = UINT32_MAX;  // errors may have been copied from step to step
  }
  // Passes steps in which all lanes are in still blocks and none is at an edge of the tile: nothing is decoded.
  L3_STAGE void pass_still(uint32_t steps) {
    const bool was_steady = this->is_steady();
    this->lead_ += steps - 1;
    any_escaped_ = false;
    uint32_t left = steps;
    if (channels() == 1 && lanes_ > 1 && steps > 2 * Base::kBack && !tables_.follow) {
      // Later steps need the records of the last ones only.
      left = Base::kBack;
      this->pass_without_records(steps - left);
    }
    for (; left > 0; --left) {
      this->delay_.next();
      L3_UNROLL_RECORDS {
        copy_still(part);
        for (uint32_t c = 0; c < channels() && !kLiteral; ++c) error_here_[c][part] = W::all_records(0);
        if constexpr (kHasHoles)
          track_last_value(part, near(now_ + part * kRecords, kRoleN, 0), near(now_ + part * kRecords, kRoleW, 0));
      }
      if (tables_.follow) follow_.begin_step(this->lead_ + 1 - left, is_between(this->lead_ + 1 - left));
      keep_records(this->lead_ + 1 - left);
      now_ += kStepRecords;
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
      still_[lane] = static_cast<uint16_t>(0u - (classes / kStillBlock & 1));
      if (!has_classes_ || still_[lane] != 0) continue;
      if constexpr (!kLiteral) {
        for (uint32_t c = 0; c < channels(); ++c) {
          const uint32_t* const from = held(classes_weights_[c][classes >> (8 * c) & (kMaxClasses - 1)]);
          uint32_t* const to = held(weights_[c][0] + W::place_in_sums(lane));
          for (uint32_t pair = 0; pair < tap_pairs(c); ++pair) to[pair * kLanes] = held(from[pair]);
        }
      }
    }
  }

  // ---- matches (section 15.1)

  // Finds where the symbols of matches are.
  L3_STAGE void find_matches() {
    L3_UNROLL_RECORDS {
      if (!W::any(to_decode_[part])) continue;
      const uint16_t* const now = held(now_ + part * kRecords);
      Records place = W::all_records(0);
      const auto add = [&](NeighbourRole a, NeighbourRole b, uint32_t bit) __attribute__((always_inline)) {
        Records all = W::same(near(now, a, 0), near(now, b, 0));
        for (uint32_t c = 1; c < channels(); ++c) all = W::both(all, W::same(near(now, a, c), near(now, b, c)));
        place = W::either(place, W::both(all, W::all_records(bit)));
      };
      add(kRoleW, kRoleN, 1);
      add(kRoleN, kRoleNe, 2);
      add(kRoleN, kRoleNw, 4);
      add(kRoleW, kRoleNw, 8);
      add(kRoleWw, kRoleW, 16);
      add(kRoleNn, kRoleN, 32);
      add(kRoleNne, kRoleNe, 64);
      add(kRoleNww, kRoleNw, 128);
      if constexpr (!kLiteral) {
        if (has_octaves()) {
          sums_[part] = own_activity<0>(now, part);
          place = W::either(place << 5, W::levels(sums_[part]) >> 2);
        }
      }
      if (tables_.follow) place = W::either(place << 5, follow_numbers(now, part));
      W::store_places(place, state_ + part * kPartsOfRecords, places_ + part * kRecords);
    }
  }
  // Finds what the pixels follow.
  L3_STAGE void find_follows() {
    Records flat[kRecordParts];
    alignas(64) uint16_t near_sums[kRecordParts * kRecords];
    L3_UNROLL_RECORDS {
      flat[part] = W::all_records(0xFFFF);
      Records sum = W::all_records(0);
      const uint16_t* const now = now_ + part * kRecords;
      for (uint32_t c = 0; c < channels(); ++c) {
        const Records w = near(now, kRoleW, c), n = near(now, kRoleN, c), nw = near(now, kRoleNw, c),
                      ne = near(now, kRoleNe, c);
        flat[part] = W::both(flat[part], W::both(W::same(w, n), W::both(W::same(nw, n), W::same(ne, n))));
        const uint16_t* const factors = kNearFactors[c];
        sum = W::sum(sum, W::sum(W::sum(W::times(w, factors[0]), W::times(n, factors[1])),
                                 W::sum(W::times(nw, factors[2]), W::times(ne, factors[3]))));
      }
      W::store_records(near_sums + part * kRecords, sum);
    }
    follow_.find(step_, this->lead_row_, lanes_of(to_decode_), lanes_of(flat), near_sums);
  }
  // The numbers of what the pixels follow, from the sources and which neighbours the followed pixels equal.
  L3_INLINE Records follow_numbers(const uint16_t* now, uint32_t part) const {
    const Records ones = W::all_records(0xFFFF);
    Records is_w = ones, is_n = ones, is_nw = ones, is_ne = ones;
    for (uint32_t c = 0; c < channels(); ++c) {
      const Records followed = follow_.followed(c, part);
      is_w = W::both(is_w, W::same(followed, near(now, kRoleW, c)));
      is_n = W::both(is_n, W::same(followed, near(now, kRoleN, c)));
      is_nw = W::both(is_nw, W::same(followed, near(now, kRoleNw, c)));
      is_ne = W::both(is_ne, W::same(followed, near(now, kRoleNe, c)));
    }
    Records relation =
        W::select(W::either(is_nw, is_ne), W::all_records(2 * kFollowSources), W::all_records(3 * kFollowSources));
    relation = W::select(is_n, W::all_records(kFollowSources), relation);
    relation = W::without(relation, is_w);
    const Records sources = follow_.sources(part);
    return W::without(W::sum(sources, relation), W::same(sources, W::all_records(0)));
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
      const Records decoded = to_decode_[part];
      has_escaped_[part] = false;
      escaped_[part] = W::all_records(0);
      if (!W::any(decoded)) continue;
      const uint16_t* const now = now_ + part * kRecords;
      const Records symbol = W::narrow(numbers_ + part * kPartsOfRecords);
      const Records is_n = W::same(symbol, W::all_records(kMatchN)), is_ne = W::same(symbol, W::all_records(kMatchNe)),
                    is_nw = W::same(symbol, W::all_records(kMatchNw));
      for (uint32_t c = 0; c < channels(); ++c) {
        Records matched = W::select(is_n, near(now, kRoleN, c), near(now, kRoleW, c));
        matched = W::select(is_ne, near(now, kRoleNe, c), matched);
        matched = W::select(is_nw, near(now, kRoleNw, c), matched);
        if (tables_.follow) {
          matched = W::select(W::same(symbol, W::all_records(kMatchFollow)), follow_.followed(c, part), matched);
        }
        here_[c][part] = W::select(decoded, matched, here_[c][part]);
      }
      Records escaped = W::both(decoded, W::not_less(symbol, W::all_records(kMatchNone)));
      if constexpr (kHasHoles) {
        const Records is_hole = W::both(decoded, W::same(symbol, W::all_records(kMatchHole)));
        here_[0][part] = W::select(is_hole, hole(), here_[0][part]);
        escaped = W::without(escaped, is_hole);
      }
      if (tables_.follow) {
        const Records nothing = W::same(follow_.sources(part), W::all_records(0));
        escaped = W::without(escaped, W::without(W::same(symbol, W::all_records(kMatchFollow)), nothing));
      }
      escaped_[part] = escaped;
      has_escaped_[part] = W::any(escaped);
      any_escaped_ = any_escaped_ || has_escaped_[part];
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
  L3_INLINE Sums own_activity(const uint16_t* now, uint32_t part) const {
    Sums activity = W::all_sums(kActivityFloor);
    const auto add = [&](uint32_t i, Records a, Records b) __attribute__((always_inline)) {
      W::add_pairs(a, b, activity_[c][i], activity);
    };
    const auto magnitude = [&](NeighbourRole role) __attribute__((always_inline)) {
      return W::error_magnitudes(error(now, role, c));
    };
    add(0, magnitude(kRoleW), magnitude(kRoleN));
    add(1, magnitude(kRoleNw), magnitude(kRoleNe));
    add(2, magnitude(kRoleWw), magnitude(kRoleNn));
    const Records n = value(now, kRoleN, c, part), nw = value(now, kRoleNw, c, part);
    add(4, W::value_distances(value(now, kRoleW, c, part), nw), W::value_distances(n, nw));
    add(5, W::value_distances(n, value(now, kRoleNe, c, part)), W::all_records(0));
    return activity;
  }

  // Predicts, and finds where each lane's token is.
  template <uint32_t c>
  L3_STAGE void find_places() {
    L3_UNROLL_RECORDS {
      if (!has_escaped_[part]) continue;
      const uint16_t* const now = held(now_ + part * kRecords);
      Records context;
      if constexpr (kLiteral) {
        context = W::at_most_255(W::flipped(near(now, kRoleW, 0)));
      } else {
        context = find_context<c>(now, part);
      }
      W::store_places(context, state_ + part * kPartsOfRecords, places_ + part * kRecords);
    }
  }
  template <uint32_t c>
  L3_INLINE Records find_context(const uint16_t* now, uint32_t part) {
    // Corrects the bias of the values, whose weights add up to 1 in 64ths, and adds one half for rounding.
    Sums sum = W::all_sums((kValueBias << kWeightShift) + (1u << kWeightShift >> 1));
    const uint32_t* const weights = held(weights_[c][0] + part * kRecords);
    const auto add = [&](uint32_t pair, Records a, Records b) __attribute__((always_inline)) {
      W::add_pairs(a, b, weights + pair * kLanes, sum);
    };
    const auto of = [&](NeighbourRole role) __attribute__((always_inline)) { return value(now, role, c, part); };
    const auto error_of = [&](NeighbourRole role) __attribute__((always_inline)) { return error(now, role, c); };
    const Records w = of(kRoleW), n = of(kRoleN);
    add(0, w, n);
    add(1, of(kRoleNw), of(kRoleNe));
    add(2, of(kRoleWw), of(kRoleNn));
    add(3, of(kRoleNne), of(kRoleNww));
    const Records ew = error_of(kRoleW), en = error_of(kRoleN), enw = error_of(kRoleNw), ene = error_of(kRoleNe);
    add(kErrorPair, ew, en);
    add(kErrorPair + 1, enw, ene);
    add(kErrorPair + 2, error_of(kRoleWw), error_of(kRoleNn));
    const bool is_known = c == 0 && tables_.match && has_octaves();
    Sums activity = is_known ? sums_[part] : own_activity<c>(now, part);
    if constexpr (c > 0) {
      const Records before = error_here_[c - 1][part];
      const Records second = c > 1 ? error_here_[c > 1 ? c - 2 : 0][part] : W::all_records(0);
      add(kCrossErrorPair, before, second);
      W::add_pairs(W::error_magnitudes(before), W::error_magnitudes(second), activity_[c][3], activity);
      for (uint32_t i = 0; i < cross_channels(c); ++i) {
        const uint32_t from = c - 1 - i;
        add(kCrossPair + 2 * i, value(now, kRoleW, from, part), value(now, kRoleN, from, part));
        add(kCrossPair + 2 * i + 1, value(now, kRoleNw, from, part), here_[from][part]);
      }
    }
    const Records most = W::all_records(max_value(c));
    Records p, up;
    W::split(sum, max_value(c), p, up);
    p_[part] = p;
    up_[part] = up;
    const Records level = W::levels(activity);
    if (!tables_.grouped[c]) return level;
    const Records zone = W::bit_lengths(W::both(W::exclusive(p, up), most));
    // In the decoder's bit order: W and N compared with p, then the signs of the errors.
    const Records biased = W::flipped(p);
    Records pattern = W::both(W::not_less(w, biased), W::all_records(1));
    pattern = W::either(pattern, W::both(W::not_less(n, biased), W::all_records(2)));
    const auto sign = [&](Records e, uint32_t bit) __attribute__((always_inline)) {
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
    const Records most = W::all_records(max_value(c));
    L3_UNROLL_RECORDS {
      if (!has_escaped_[part]) continue;
      const Records escaped = escaped_[part], number = W::narrow(numbers_ + part * kPartsOfRecords);
      if constexpr (kLiteral) {
        here_[0][part] = W::select(escaped, W::flipped(W::both(number, most)), here_[0][part]);
      } else {
        // Odd numbers go in the direction in which the prediction leans.
        const Records p = p_[part], up = up_[part];
        const Records odd = W::difference(W::all_records(0), W::both(number, W::all_records(1)));
        const Records difference = W::exclusive(number >> 1, W::exclusive(odd, up));
        const Records decoded = W::both(W::difference(W::sum(p, difference), up), most);
        here_[c][part] = W::select(escaped, W::flipped(decoded), here_[c][part]);
        error_here_[c][part] = W::both(escaped, W::token_errors(decoded, p));
      }
    }
  }

  uint32_t max_value(uint32_t c) const { return (1u << tables_.depth[c]) - 1; }

  bool has_classes_ = false, has_places_ = false, any_to_decode_ = false;
  bool has_escaped_[kRecordParts] = {};
  uint16_t none_[kArrays];
  Records active_records_[kRecordParts] = {}, to_decode_[kRecordParts] = {}, escaped_[kRecordParts] = {};
  Records p_[kRecordParts] = {}, up_[kRecordParts] = {};
  Sums sums_[kRecordParts] = {};  // activities
  Lanes numbers_[kParts] = {};
  alignas(64) uint16_t still_[kLanes];  // all bits, if the lane is in a still block
  alignas(64) uint32_t places_[kLanes];
  alignas(64) uint32_t weights_[kChannels][kTapPairs][kLanes];
  uint32_t classes_weights_[kChannels][kMaxClasses][kTapPairs];
  uint32_t activity_[kChannels][kActivityPairs];
  uint8_t match_tables_[kMatchPatterns * kOctaves];  // by pattern of equalities, and octave if activity counts
  StillRows rows_;
};

}  // namespace l3
