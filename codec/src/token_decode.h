// Decoding of a tile with a token model by a warp (section 15 of the spec): one body for every processor target and for
// CUDA.
#pragma once

#include "token.h"
#include "wavefront.h"

// As L3_FOR_PARTS, but for parts without lanes of the tile.
#if defined(__CUDACC__) || defined(__clang__)
#define L3_FOR_USED_PARTS for (uint32_t part = 0, used = parts(); part < used; ++part)
#else
#define L3_FOR_USED_PARTS _Pragma("GCC unroll 1") for (uint32_t part = 0, used = parts(); part < used; ++part)
#endif

namespace l3 {

// The taps of a prediction in pairs, as they are multiplied: W N, NW NE, WW NN, NNE NWW; the errors at W N, NW NE,
// WW NN, and of the two channels before; W N and NW with the sample of each of those.
constexpr uint32_t kTapPairs = 12;
constexpr uint32_t kErrorPair = 4, kCrossErrorPair = 7, kCrossPair = 8;
L3_INLINE constexpr uint32_t tap_pairs(uint32_t channel) {
  return channel == 0 ? kCrossErrorPair : kCrossPair + 2 * cross_channels(channel);
}

L3_INLINE uint32_t pair_of(int32_t low, int32_t high) {
  return (static_cast<uint32_t>(low) & 0xFFFF) | static_cast<uint32_t>(high) << 16;
}
// The weights of a pair.
L3_INLINE uint32_t tap_pair(const uint32_t* words, uint32_t pair) {
  const auto of = [&](uint32_t tap) {
    return static_cast<int8_t>(words[tap / kTapsOfWord] >> (8 * (tap % kTapsOfWord)));
  };
  return pair_of(of(2 * pair), of(2 * pair + 1));
}
// The weights of a pair of activity terms: errors at W N, NW NE, WW NN, of the channels before; then slopes.
constexpr uint32_t kActivityPairs = 6;
L3_INLINE uint32_t activity_pair(const uint32_t* words, uint32_t pair) {
  const auto of = [&](uint32_t word, uint32_t byte) { return static_cast<int32_t>(words[word] >> (8 * byte) & 0xFF); };
  return pair < 4 ? pair_of(of(pair / 2, pair % 2 * 2), of(pair / 2, pair % 2 * 2 + 1))
                  : pair_of(of(2, pair % 2 * 2), of(2, pair % 2 * 2 + 1));
}

template <class W, uint32_t kChannels, bool kLiteral, class Sink>
class TokenDecoder {
  using Front = Wavefront<W>;

 public:
  using Lanes = typename W::Lanes;
  using Mask = typename W::Mask;
  using Tables = typename W::TokenTables;
  using Window = typename W::Reader::Window;
  using Delay = typename W::template TokenDelay<(kLiteral ? 2 : 4) * token_words(kChannels)>;
  static constexpr uint32_t kParts = W::kParts;
  static constexpr uint32_t kWords = token_words(kChannels);

  L3_INLINE TokenDecoder(const TileShape& shape, const TileEntry& entry, const Tables& tables, Sink& sink, Delay& delay,
                         typename W::Classes& classes)
      : width_(shape.width),
        height_(shape.height),
        lanes_(W::keep(1u << (entry.parameters & 7))),
        parts_((lanes_ + W::kPartLanes - 1) / W::kPartLanes),
        payload_bytes_(entry.payload_bytes),
        payload_(entry.payload),
        tables_(tables),
        sink_(sink),
        delay_(delay),
        classes_(classes),
        weights_(tables),
        reader_(entry.payload, entry.payload_bytes) {}

  L3_INLINE Fault decode() {
    L3_FOR_PARTS state_[part] = W::load_states(payload_, lanes_, part);
    at_ = 4 * lanes_;
    if (!decode_blocks()) return {Reason::dense_words, payload_bytes_};
    if constexpr (W::kLooksAhead) {
      if (tables_.still()) ahead_.look(width_, height_, classes_);
    }
    if (!decode_values()) return {Reason::dense_words, payload_bytes_};
    return check_end();
  }

 private:
  // What is around a lane's place: the neighbours of its values, or of their errors, edges and holes mended.
  struct Around {
    Lanes w, n, nw, ne, ww, nn, nne, nww;
  };
  using Upper = typename Front::Upper;

  L3_INLINE static Around around(const DenseWindow<Lanes>& window, const Upper& upper) {
    return {window.w, window.n, window.nw, upper.ne, window.ww, upper.nn, upper.nne, window.nww};
  }
  L3_INLINE Around pixels_around(uint32_t part, uint32_t word) const {
    return around(pixel_[part][word], above_[part][word]);
  }
  // What predictions look at.
  L3_INLINE Around values_around(uint32_t part, uint32_t word) const {
    if constexpr (kChannels == 1) {
      if (tables_.hole()) return filled_[part];
    }
    return pixels_around(part, word);
  }
  L3_INLINE Around errors_around(uint32_t part, uint32_t word) const {
    return around(error_[part][word], errors_above_[part][word]);
  }

  // The parts that have lanes of the tile.
  L3_INLINE uint32_t parts() const { return kParts == 1 ? 1 : parts_; }

  // False where words were wanted behind the payload's end.
  L3_INLINE bool advance(uint32_t taken) {
    at_ += taken;
    return at_ <= payload_bytes_;
  }

  // Which blocks are still, and the classes of the others.
  L3_INLINE bool decode_blocks() {
    if (kLiteral && !tables_.still()) return true;
    const uint32_t across = ceil_div(width_, kBlockEdge);
    const uint32_t blocks = across * ceil_div(height_, kBlockEdge);
    for (uint32_t first = 0; first < blocks; first += lanes_) {
      const uint32_t count = smaller(lanes_, blocks - first);
      Lanes all[kParts], before[kParts];
      L3_FOR_PARTS {
        all[part] = before[part] = W::splat(0);
        active_[part] = W::less(W::numbers(part), count);
      }
      const Window window = reader_.window(at_);
      uint32_t taken = 0;
      if (tables_.still()) {
        L3_FOR_USED_PARTS {
          const Mask still = decode_still(part, first, across, window, taken);
          active_[part] = W::without(active_[part], still);
          all[part] = W::only(still, W::splat(kStillBlock));
        }
      }
      for (uint32_t c = 0; c < kChannels && !kLiteral; ++c) {
        L3_FOR_USED_PARTS {
          if (tables_.classes(c) == 1) {
            before[part] = W::splat(0);
            continue;
          }
          Lanes own, other;
          W::look_up_token_class(tables_, c, before[part] & constant<kMaxClasses - 1>,
                                 Front::template bucket_of<kClassBuckets>(state_[part]), own, other);
          before[part] = W::only(active_[part], Front::template decode_symbol<kClassBuckets>(own, other, state_[part],
                                                                                             active_[part], sink_));
          Front::refill(state_[part], active_[part], window, taken);
          all[part] = all[part] | before[part] << static_cast<int>(8 * c);
        }
      }
      L3_FOR_PARTS classes_.store(first + part * W::kPartLanes, first + count, all[part]);
      if (!advance(taken)) return false;
    }
    return true;
  }

  // The lanes whose block is still, of a round that begins with block `first`.
  L3_INLINE Mask decode_still(uint32_t part, uint32_t first, uint32_t across, Window window, uint32_t& taken) {
    const Lanes lane = W::numbers(part);
    // The block above counts where an earlier round had it.
    const Mask known = W::both(W::less(lane, across), W::not_less(lane + first, W::splat(across)));
    const Lanes above = classes_.of(lane + (first - across), W::which(known));
    const Lanes frequency = W::select(W::equal(above & constant<kStillBlock>, kStillBlock),
                                      W::splat(tables_.still_frequency(1)), W::splat(tables_.still_frequency(0)));
    const Lanes slot = state_[part] & constant<kProbabilities - 1>;
    const Mask still = W::without(active_[part], W::not_less(slot, frequency));
    const Lanes own_frequency = W::select(still, frequency, W::splat(constant<kProbabilities>) - frequency);
    sink_.template saw<kClassBuckets>(own_frequency, active_[part]);
    const Lanes number = W::select(still, slot, slot - frequency);
    const Lanes next = own_frequency * (state_[part] >> kProbabilityBits) + number;
    state_[part] = W::select(active_[part], next, state_[part]);
    Front::refill(state_[part], active_[part], window, taken);
    return still;
  }

  L3_INLINE bool decode_values() {
    const uint32_t period = W::keep(dense_period(width_, lanes_));
    const uint32_t steps = W::keep(dense_steps(width_, height_, lanes_));
    const uint32_t last_part = kParts == 1 ? 0 : (lanes_ - 1) / W::kPartLanes,
                   last_lane = W::keep((lanes_ - 1) % W::kPartLanes);
    delay_.clear(dense_delay(width_, lanes_));
    sink_.begin(width_, height_, lanes_);
    L3_FOR_PARTS {
      const Lanes zero = W::splat(0), lane = W::numbers(part), none = W::splat(kValueBias << 16 | kValueBias);
      for (uint32_t word = 0; word < kWords; ++word) {
        pixel_[part][word] = {none, none, none, none, none, none, none, none};
        pixel_here_[part][word] = none;
        if constexpr (!kLiteral) {
          error_[part][word] = {zero, zero, zero, zero, zero, zero, zero, zero};
          error_here_[part][word] = zero;
        }
      }
      held_[part] = W::splat(kValueBias);
      still_[part] = W::equal(lane, uint32_t{kLanes});  // none
      column_[part] = zero - lane - lane;
      // A lane beyond the tile's lanes is below its last row for ever.
      row_[part] = W::select(W::less(lane, lanes_), lane, W::splat(1u << 30));
    }
    // Where lane 0 is: its column, and how many rows it has done.
    uint32_t lead = 0, turn = 0;
    for (uint32_t step = 0; step < steps; ++step) {
      bool inside = false;  // no lane is at an edge of the tile
      if constexpr (W::kLooksAhead) {
        if (lead == period) {
          lead = 0;
          ++turn;
        }
        inside = turn * lanes_ > 1 && lead + 1 >= 2 * lanes_ && lead + 1 < width_;
        const bool may_stay = inside && tables_.still() && !tables_.hole();
        const uint32_t quiet = may_stay ? ahead_.quiet_steps(lead, turn * lanes_, lanes_) : 0;
        if (quiet > 0) {
          for (uint32_t i = 0; i < quiet; ++i) stay_everywhere(step + i, last_part, last_lane);
          L3_FOR_USED_PARTS {
            column_[part] = column_[part] + quiet;
            still_[part] = W::less(W::numbers(part), uint32_t{kLanes});  // each lane may have entered another block
          }
          lead += quiet;
          step += quiet - 1;
          continue;
        }
        ++lead;
      }
      const typename Delay::Entry from_last = delay_.load();
      // Backwards, since each part looks at what the one before it was.
      for (uint32_t part = parts(); part-- > 0;) look_around(part, from_last, inside);
      if (any_of(coded_) && !decode_step()) return false;
      L3_FOR_USED_PARTS {
        sink_.put(step, part, row_[part], column_[part], pixel_here_[part], active_[part]);
        go_on(part, period);
      }
      store_delay(last_part, last_lane);
    }
    return true;
  }

  // A step in which all lanes are in still blocks, and none is at an edge of the tile.
  L3_INLINE void stay_everywhere(uint32_t step, uint32_t last_part, uint32_t last_lane) {
    const typename Delay::Entry from_last = delay_.load();
    for (uint32_t part = parts(); part-- > 0;) {
      slide(part, from_last);
      Mask level = W::same(pixel_[part][0].n, pixel_[part][0].nw);
      for (uint32_t word = 1; word < kWords; ++word) {
        level = W::both(level, W::same(pixel_[part][word].n, pixel_[part][word].nw));
      }
      for (uint32_t word = 0; word < kWords; ++word) {
        pixel_here_[part][word] = W::select(level, pixel_[part][word].w, pixel_[part][word].n);
        if constexpr (!kLiteral) error_here_[part][word] = W::splat(0);
      }
    }
    L3_FOR_USED_PARTS sink_.put(step, part, row_[part], column_[part], pixel_here_[part], active_[part]);
    store_delay(last_part, last_lane);
  }

  L3_INLINE bool any_of(const Mask* masks) const {
    bool any = false;
    L3_FOR_USED_PARTS any = any || W::any(masks[part]);
    return any;
  }

  // What the lanes decode in a step.
  L3_INLINE bool decode_step() {
    const Window window = reader_.window(at_);
    uint32_t taken = 0;
    if (tables_.match()) {
      decode_match(window, taken);
    } else {
      L3_FOR_USED_PARTS escaped_[part] = coded_[part];
    }
    if (any_of(escaped_)) {
      decode_channel<0>(window, taken);
      if constexpr (kChannels > 1) decode_channel<1>(window, taken);
      if constexpr (kChannels > 2) decode_channel<2>(window, taken);
      if constexpr (kChannels > 3) decode_channel<3>(window, taken);
    }
    return advance(taken);
  }

  // To the next column, or to the first one of the lane's next row.
  L3_INLINE void go_on(uint32_t part, uint32_t period) {
    column_[part] = column_[part] + constant<1>;
    const Mask wraps = W::equal(column_[part], period);
    column_[part] = W::select(wraps, W::splat(0), column_[part]);
    row_[part] = W::select(wraps, row_[part] + lanes_, row_[part]);
  }

  L3_INLINE void store_delay(uint32_t part, uint32_t lane) {
    typename Delay::Next next = delay_.next(lane);
    for (uint32_t word = 0; word < kWords; ++word) {
      next.put(pixel_here_[part][word]);
      next.put(pixel_[part][word].n);
      if constexpr (!kLiteral) {
        next.put(error_here_[part][word]);
        next.put(error_[part][word].n);
      }
    }
    delay_.store(next);
  }

  // The windows of a part's lanes go on by a column.
  L3_INLINE void slide(uint32_t part, const typename Delay::Entry& from_last) {
    const uint32_t before = part == 0 ? 0 : part - 1;
    uint32_t next = 0;
    const auto above = [&](Lanes of_part_before) {
      const uint32_t of_last_lane = from_last[next++];
      return part == 0 ? W::splat(of_last_lane) : of_part_before;
    };
    for (uint32_t word = 0; word < kWords; ++word) {
      const Lanes here_above = above(pixel_here_[before][word]), n_above = above(pixel_[before][word].n);
      Front::slide(pixel_[part][word], pixel_here_[part][word], here_above, n_above);
      if constexpr (!kLiteral) {
        const Lanes error_above = above(error_here_[before][word]), error_n_above = above(error_[before][word].n);
        Front::slide(error_[part][word], error_here_[part][word], error_above, error_n_above);
      }
    }
  }

  // What the lanes of a part see where they are now; `inside`, where none is at an edge of the tile.
  L3_INLINE void look_around(uint32_t part, const typename Delay::Entry& from_last, bool inside) {
    slide(part, from_last);
    const Lanes column = column_[part], row = row_[part];
    const Mask active = W::both(W::less(column, width_), W::less(row, height_));
    active_[part] = active;
    const Lanes none = W::splat(kValueBias << 16 | kValueBias);
    if (inside) {
      for (uint32_t word = 0; word < kWords; ++word) {
        above_[part][word] = Front::upper_of(pixel_[part][word]);
        if constexpr (!kLiteral) errors_above_[part][word] = Front::upper_of(error_[part][word]);
      }
    } else {
      const auto edges = Front::Edges::of(column, row, width_);
      for (uint32_t word = 0; word < kWords; ++word) {
        above_[part][word] = Front::mend(pixel_[part][word], edges, none);
        if constexpr (!kLiteral) errors_above_[part][word] = Front::mend(error_[part][word], edges, W::splat(0));
      }
    }
    for (uint32_t word = 0; word < kWords; ++word) {
      pixel_here_[part][word] = none;
      if constexpr (!kLiteral) error_here_[part][word] = W::splat(0);
    }
    if constexpr (kChannels == 1 && !kLiteral) {
      if (tables_.hole()) fill_holes(part, W::equal(column, 0));
    }
    coded_[part] = active;
    if (kLiteral && !tables_.still()) return;
    const Mask enters = W::both(active, W::equal(column & constant<kBlockEdge - 1>, 0));
    const auto entering = W::which(enters);
    if (entering) {
      const Lanes block = block_at(row, column);
      if constexpr (!kLiteral) weights_.enter(part, entering, block, classes_);
      if constexpr (W::kLooksAhead) {
        if (tables_.still()) still_[part] = W::either(W::without(still_[part], enters), still_among(block, entering));
      }
    }
    if (!tables_.still()) return;
    if constexpr (W::kLooksAhead) {
      stay(part, W::both(active, still_[part]));
    } else {
      // A GPU looks again rather than remember.
      stay(part, still_among(block_at(row, column), active));
    }
  }
  L3_INLINE Lanes block_at(Lanes row, Lanes column) const {
    return (row >> 4) * ceil_div(width_, kBlockEdge) + (column >> 4);
  }
  // Those of these lanes whose block is still.
  template <class Which>
  L3_INLINE Mask still_among(Lanes block, Which lanes) const {
    return W::equal(classes_.of(block, lanes) & constant<kStillBlock>, kStillBlock);
  }

  // In still blocks pixels are what goes on from above: W where N is as NW, else N.
  L3_INLINE void stay(uint32_t part, Mask stays) {
    coded_[part] = W::without(active_[part], stays);
    Mask level = stays;
    for (uint32_t word = 0; word < kWords; ++word) {
      const Around at = pixels_around(part, word);
      level = W::both(level, W::same(at.n, at.nw));
    }
    for (uint32_t word = 0; word < kWords; ++word) {
      const Around at = pixels_around(part, word);
      pixel_here_[part][word] = W::select(stays, W::select(level, at.w, at.n), pixel_here_[part][word]);
    }
  }

  // Which neighbours are the same, a bit for each of the eight pairs.
  L3_INLINE Lanes equalities(uint32_t part) const {
    Around at[kWords];
    for (uint32_t word = 0; word < kWords; ++word) at[word] = pixels_around(part, word);
    Lanes bits = W::splat(0);
    const auto add = [&](Lanes Around::*a, Lanes Around::*b, Lanes bit) {
      Mask same = W::same(at[0].*a, at[0].*b);
      for (uint32_t word = 1; word < kWords; ++word) same = W::both(same, W::same(at[word].*a, at[word].*b));
      bits = bits | W::only(same, bit);
    };
    add(&Around::w, &Around::n, W::splat(constant<1>));
    add(&Around::n, &Around::ne, W::splat(constant<2>));
    add(&Around::n, &Around::nw, W::splat(constant<4>));
    add(&Around::w, &Around::nw, W::splat(constant<8>));
    add(&Around::ww, &Around::w, W::splat(constant<16>));
    add(&Around::nn, &Around::n, W::splat(constant<32>));
    add(&Around::nne, &Around::ne, W::splat(constant<64>));
    add(&Around::nww, &Around::nw, W::splat(constant<128>));
    return bits;
  }

  // What is predicted from are the values that lanes hold, where there are holes.
  L3_INLINE void fill_holes(uint32_t part, Mask first_column) {
    Around& at = filled_[part];
    at = pixels_around(part, 0);
    const Lanes hole = W::splat(tables_.hole_value() ^ kValueBias);
    const auto is_hole = [&](Lanes v) { return W::same(v & constant<0xFFFF>, hole); };
    Lanes held = W::select(first_column, W::splat(constant<kValueBias>), held_[part]);
    held = W::select(is_hole(at.n), held, at.n & constant<0xFFFF>);
    held = W::select(is_hole(at.w), held, at.w & constant<0xFFFF>);
    held_[part] = W::select(active_[part], held, held_[part]);
    const auto fill = [&](Lanes& v) { v = W::select(is_hole(v), held, v); };
    fill(at.w);
    fill(at.n);
    fill(at.nw);
    fill(at.ne);
    fill(at.ww);
    fill(at.nn);
    fill(at.nne);
    fill(at.nww);
  }

  // What the pixels repeat; lanes whose pixel repeats nothing escape.
  L3_INLINE void decode_match(Window window, uint32_t& taken) {
    Lanes own[kParts], other[kParts];
    L3_FOR_USED_PARTS {
      if (kParts > 1 && !W::any(coded_[part])) continue;
      Lanes octave = W::splat(0);
      if constexpr (!kLiteral) {
        if (tables_.match_by_activity()) {
          activity_[part] = prepare_activity<0>(part);
          octave = W::token_level(activity_[part]) >> 2;
        }
      }
      W::look_up_match(tables_, equalities(part), octave, Front::template bucket_of<kTokenBuckets>(state_[part]),
                       own[part], other[part]);
    }
    L3_FOR_USED_PARTS {
      escaped_[part] = coded_[part];
      if (kParts > 1 && !W::any(coded_[part])) continue;
      const Lanes symbol =
          Front::template decode_symbol<kTokenBuckets>(own[part], other[part], state_[part], coded_[part], sink_);
      Front::refill(state_[part], coded_[part], window, taken);
      const Mask is_n = W::equal(symbol, kMatchN), is_ne = W::equal(symbol, kMatchNe),
                 is_nw = W::equal(symbol, kMatchNw);
      for (uint32_t word = 0; word < kWords; ++word) {
        const Around at = pixels_around(part, word);
        const Lanes matched = W::select(is_nw, at.nw, W::select(is_ne, at.ne, W::select(is_n, at.n, at.w)));
        pixel_here_[part][word] = W::select(coded_[part], matched, pixel_here_[part][word]);
      }
      const Mask repeats = W::less(symbol, uint32_t{kMatchNone});
      Mask known = repeats;
      if constexpr (kChannels == 1 && !kLiteral) {
        if (tables_.hole()) {
          const Mask is_hole = W::both(coded_[part], W::equal(symbol, kMatchHole));
          known = W::either(known, is_hole);
          pixel_here_[part][0] = W::select(is_hole, W::splat((tables_.hole_value() ^ kValueBias) | kValueBias << 16),
                                           pixel_here_[part][0]);
        }
      }
      escaped_[part] = W::without(coded_[part], known);
    }
  }

  template <uint32_t c, class Halves>
  L3_INLINE static Lanes pair(const Halves& a, const Halves& b) {
    return c % 2 == 0 ? W::lower_halves(a, b) : W::upper_halves(a, b);
  }

  // The activity as far as this channel's own neighbours go.
  template <uint32_t c>
  L3_INLINE Lanes prepare_activity(uint32_t part) {
    const Around values = values_around(part, c / 2);
    const Around errors = errors_around(part, c / 2);
    Lanes activity = W::splat(constant<kActivityFloor>);
    const auto add = [&](uint32_t i, Lanes terms) {
      activity = W::dot_pairs(terms, W::splat(weights_.activity(c, i)), activity);
    };
    add(0, W::magnitude_pairs(pair<c>(errors.w, errors.n)));
    add(1, W::magnitude_pairs(pair<c>(errors.nw, errors.ne)));
    add(2, W::magnitude_pairs(pair<c>(errors.ww, errors.nn)));
    const auto w_nw = W::distance_pairs(values.w, values.nw), n_nw = W::distance_pairs(values.n, values.nw),
               n_ne = W::distance_pairs(values.n, values.ne);
    add(4, pair<c>(w_nw, n_nw));
    add(5, pair<c>(n_ne, n_ne) & constant<0xFFFF>);
    return activity;
  }

  // The lowest 16 bits, or the upper ones, of each lane's word.
  template <uint32_t c>
  L3_INLINE static Lanes half_of(Lanes word) {
    return c % 2 == 0 ? word & constant<0xFFFF> : word >> 16;
  }
  template <uint32_t c>
  L3_INLINE static Lanes in_place(Lanes half) {
    return c % 2 == 0 ? half : half << 16;
  }
  // Puts a channel's 16 bits into a word of two, in the lanes of the mask.
  template <uint32_t c>
  L3_INLINE static Lanes with_half(Lanes word, Lanes half, Mask mask) {
    const Lanes rest = c % 2 == 0 ? word & constant<0xFFFF0000> : word & constant<0xFFFF>;
    return W::select(mask, rest | in_place<c>(half), word);
  }

  template <uint32_t c>
  L3_INLINE void decode_channel(Window window, uint32_t& taken) {
    Lanes p[kParts], up[kParts], own[kParts], other[kParts], number[kParts], raw_bits[kParts];
    L3_FOR_USED_PARTS {
      if (kParts > 1 && !W::any(escaped_[part])) continue;
      const Lanes bucket = Front::template bucket_of<kTokenBuckets>(state_[part]);
      if constexpr (kLiteral) {
        const Lanes w = (pixel_[part][0].w & constant<0xFFFF>)^constant<kValueBias>;
        W::look_up_literal(tables_, W::at_most(w, W::splat(constant<kLiteralContexts - 1>)), bucket, own[part],
                           other[part]);
      } else {
        predict<c>(part, p[part], up[part]);
        const Lanes context = context_of<c>(part, p[part], up[part]);
        W::look_up_token(tables_, c, context, bucket, own[part], other[part]);
      }
    }
    bool any_raw = false;
    L3_FOR_USED_PARTS {
      raw_[part] = escaped_[part];
      if (kParts > 1 && !W::any(escaped_[part])) continue;
      const Lanes token =
          Front::template decode_symbol<kTokenBuckets>(own[part], other[part], state_[part], escaped_[part], sink_);
      Front::refill(state_[part], escaped_[part], window, taken);
      const Mask direct = W::less(token, kDirectTokens);
      raw_[part] = W::without(escaped_[part], direct);
      any_raw = any_raw || W::any(raw_[part]);
      number[part] = token;
      raw_bits[part] = ((token - W::splat(constant<kDirectTokens>)) >> 1) + constant<4>;
    }
    if (any_raw) {
      L3_FOR_USED_PARTS {
        if (kParts > 1 && !W::any(raw_[part])) continue;
        const Lanes count = W::only(raw_[part], raw_bits[part]);
        sink_.saw_raw(count);
        const Lanes raw = state_[part] & (W::shifted_left(W::splat(constant<1>), count) - W::splat(constant<1>));
        const Lanes long_number = W::shifted_left((number[part] & constant<1>) | constant<2>, count) | raw;
        number[part] = W::select(raw_[part], long_number, number[part]);
        state_[part] = W::shifted_right(state_[part], count);
        Front::refill(state_[part], raw_[part], window, taken);
      }
    }
    L3_FOR_USED_PARTS {
      if (kParts == 1 || W::any(escaped_[part])) finish<c>(part, p[part], up[part], number[part]);
    }
  }

  template <uint32_t c>
  L3_INLINE void predict(uint32_t part, Lanes& p, Lanes& up) {
    const Around values = values_around(part, c / 2);
    const Around errors = errors_around(part, c / 2);
    // The bias of values, times what their weights add up to, and a half.
    Lanes sum = W::splat(constant<(kValueBias << kWeightShift) + (1u << kWeightShift >> 1)>);
    const bool is_prepared = c == 0 && tables_.match() && tables_.match_by_activity();
    Lanes activity = is_prepared ? activity_[part] : prepare_activity<c>(part);
    const auto add = [&](uint32_t i, Lanes pairs) { sum = W::dot_pairs(pairs, weights_.pair(c, i, part), sum); };
    add(0, pair<c>(values.w, values.n));
    add(1, pair<c>(values.nw, values.ne));
    add(2, pair<c>(values.ww, values.nn));
    add(3, pair<c>(values.nne, values.nww));
    add(kErrorPair, pair<c>(errors.w, errors.n));
    add(kErrorPair + 1, pair<c>(errors.nw, errors.ne));
    add(kErrorPair + 2, pair<c>(errors.ww, errors.nn));
    if constexpr (c > 0) {
      Lanes before = half_of<c - 1>(error_here_[part][(c - 1) / 2]);
      if constexpr (c > 1) before = before | half_of<c - 2>(error_here_[part][(c - 2) / 2]) << 16;
      add(kCrossErrorPair, before);
      activity = W::dot_pairs(W::magnitude_pairs(before), W::splat(weights_.activity(c, 3)), activity);
      add_cross<c - 1>(part, c, kCrossPair, sum);
      if constexpr (c > 1) add_cross<c - 2>(part, c, kCrossPair + 2, sum);
    }
    W::split_tokens(sum, tables_.most(c), p, up);
    activity_[part] = activity;
  }
  template <uint32_t kFrom>
  L3_INLINE void add_cross(uint32_t part, uint32_t c, uint32_t i, Lanes& sum) {
    const Around values = values_around(part, kFrom / 2);
    sum = W::dot_pairs(pair<kFrom>(values.w, values.n), weights_.pair(c, i, part), sum);
    sum = W::dot_pairs(pair<kFrom>(values.nw, pixel_here_[part][kFrom / 2]), weights_.pair(c, i + 1, part), sum);
  }

  template <uint32_t c>
  L3_INLINE Lanes context_of(uint32_t part, Lanes p, Lanes up) {
    const Lanes level = W::token_level(activity_[part]);
    if (!tables_.grouped(c)) return level;
    const Around values = values_around(part, c / 2);
    const Around errors = errors_around(part, c / 2);
    const Lanes most = W::splat(tables_.most(c));
    const Lanes distance = (p ^ up) & most;  // most - p where the prediction leans upwards
    const auto sign = [&](Lanes error, uint32_t bit) {
      return c % 2 == 0 ? (error >> 15 & constant<1>) << static_cast<int>(bit) : (error >> 31) << static_cast<int>(bit);
    };
    const auto at_least = [&](Lanes value, Lanes bit) {
      return W::only(W::not_less(half_of<c>(value) ^ constant<kValueBias>, p), bit);
    };
    // In the engine's order: W and N against p, then the errors.
    const Lanes pattern = at_least(values.w, W::splat(constant<1>)) | at_least(values.n, W::splat(constant<2>)) |
                          sign(errors.w, 2) | sign(errors.n, 3) | sign(errors.nw, 4) | sign(errors.ne, 5);
    return level + W::token_row(tables_, c, W::bit_length_at_most_15(distance), (pattern ^ up) & constant<63>);
  }

  // Odd numbers go the way in which the prediction leans.
  template <uint32_t c>
  L3_INLINE void finish(uint32_t part, Lanes p, Lanes up, Lanes number) {
    const Lanes most = W::splat(tables_.most(c));
    Lanes& here = pixel_here_[part][c / 2];
    if constexpr (kLiteral) {
      here = with_half<c>(here, (number & most) ^ constant<kValueBias>, escaped_[part]);
    } else {
      const Lanes odd = W::splat(0) - (number & constant<1>);
      const Lanes difference = (number >> 1) ^ odd;  // of a prediction that does not lean upwards
      const Lanes value = (p + (difference ^ up) - up) & most;
      const Lanes error = W::token_error(value - p) & constant<0xFFFF>;
      here = with_half<c>(here, value ^ constant<kValueBias>, escaped_[part]);
      error_here_[part][c / 2] = error_here_[part][c / 2] | W::only(escaped_[part], in_place<c>(error));
    }
  }

  L3_INLINE Fault check_end() const {
    for (uint32_t part = 0; part < kParts; ++part) {
      if (W::bits(W::equal(state_[part], kStateFloor)) != W::kAllBits) return {Reason::dense_states, 0};
    }
    if (payload_bytes_ - at_ >= kUnit) return {Reason::tile_leftover, at_};
    for (uint32_t i = at_; i < payload_bytes_; ++i) {
      if (payload_[i] != 0) return {Reason::tile_padding, i};
    }
    return {};
  }

  const uint32_t width_, height_, lanes_, parts_, payload_bytes_;
  const uint8_t* payload_;
  const Tables& tables_;
  Sink& sink_;
  Delay& delay_;
  typename W::Classes& classes_;
  typename W::template TokenWeights<kChannels> weights_;
  typename W::Reader reader_;
  uint32_t at_ = 0;  // in the payload
  Lanes state_[kParts];
  Lanes column_[kParts], row_[kParts];
  Mask active_[kParts], still_[kParts], coded_[kParts], escaped_[kParts], raw_[kParts];
  DenseWindow<Lanes> pixel_[kParts][kWords], error_[kParts][kWords];
  Lanes pixel_here_[kParts][kWords], error_here_[kParts][kWords];
  Upper above_[kParts][kWords], errors_above_[kParts][kWords];
  Around filled_[kParts];  // where there are holes
  Lanes held_[kParts], activity_[kParts];
  typename W::Ahead ahead_;
};

}  // namespace l3
