// Decodes a tile of a token model with a warp (section 15 of the spec). Every processor target and CUDA compile this
// same code.
#pragma once

#include "engine/wavefront.h"
#include "models/token.h"

namespace l3 {

// The taps of a prediction in pairs, as they are multiplied: W N, NW NE, WW NN, NNE NWW; the errors at W N, NW NE, WW
// NN; the errors of the two channels before; then for each of those channels W N, and NW with the sample.
constexpr uint32_t kTapPairs = 12;
constexpr uint32_t kErrorPair = 4, kCrossErrorPair = 7, kCrossPair = 8;
L3_INLINE constexpr uint32_t tap_pairs(uint32_t channel) {
  return channel == 0 ? kCrossErrorPair : kCrossPair + 2 * cross_channels(channel);
}

L3_INLINE uint32_t pair_of(int32_t low, int32_t high) {
  return (static_cast<uint32_t>(low) & 0xFFFF) | static_cast<uint32_t>(high) << 16;
}
// The weights of a pair of taps.
L3_INLINE uint32_t tap_pair(const uint32_t* words, uint32_t pair) {
  const auto of = [&](uint32_t tap) {
    return static_cast<int8_t>(words[tap / kTapsOfWord] >> (8 * (tap % kTapsOfWord)));
  };
  return pair_of(of(2 * pair), of(2 * pair + 1));
}
// The weights of a pair of activity terms: errors at W N, NW NE, WW NN, errors of the channels before, then gradients.
constexpr uint32_t kActivityPairs = 6;
L3_INLINE uint32_t activity_pair(const uint32_t* words, uint32_t pair) {
  const auto of = [&](uint32_t word, uint32_t byte) { return static_cast<int32_t>(words[word] >> (8 * byte) & 0xFF); };
  return pair < 4 ? pair_of(of(pair / 2, pair % 2 * 2), of(pair / 2, pair % 2 * 2 + 1))
                  : pair_of(of(2, pair % 2 * 2), of(2, pair % 2 * 2 + 1));
}

// The neighbours of a pixel (section 13.3).
enum class NeighbourAt { w, n, nw, ne, ww, nn, nne, nww };

// The variants of the decoder. A processor compiles `holes` and `plain` separately. A GPU compiles one, which tests
// for holes at run time.
enum class TokenUse { literal, plain, holes };

template <class W, uint32_t kChannels, TokenUse kUse, class Sink>
class TokenDecoder {
  using Front = Wavefront<W>;

 public:
  using Lanes = typename W::Lanes;
  using Mask = typename W::Mask;
  using Tables = typename W::TokenTables;
  using Window = typename W::Reader::Window;
  static constexpr bool kLiteral = kUse == TokenUse::literal;
  using Delay = typename W::template TokenDelay<(kLiteral ? 2 : 4) * token_words(kChannels)>;
  static constexpr uint32_t kParts = W::kParts;
  static constexpr uint32_t kWords = token_words(kChannels);

  static_assert(kUse == TokenUse::plain || kChannels == 1);

  L3_INLINE TokenDecoder(const TileShape& shape, const TileEntry& entry, const Tables& tables, Sink& sink, Delay& delay,
                         typename W::Classes& classes)
      : width_(shape.width),
        height_(shape.height),
        lanes_(W::uniform(dense_lanes(entry.parameters))),
        ending_(ending_of(entry.parameters, shape.width, shape.height)),
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
      if (tables_.still()) ahead_.scan(width_, height_, classes_);
    }
    if (!decode_values()) return {Reason::dense_words, payload_bytes_};
    return check_end();
  }

 private:
  using Upper = typename Front::Upper;

  // The values or errors of a neighbour, corrected at the tile's edges.
  template <NeighbourAt at>
  L3_INLINE static Lanes neighbour(const DenseWindow<Lanes>& window, const Upper& upper) {
    if constexpr (at == NeighbourAt::w) return window.w;
    if constexpr (at == NeighbourAt::n) return window.n;
    if constexpr (at == NeighbourAt::nw) return window.nw;
    if constexpr (at == NeighbourAt::ww) return window.ww;
    if constexpr (at == NeighbourAt::nww) return window.nww;
    if constexpr (at == NeighbourAt::ne) return upper.ne;
    if constexpr (at == NeighbourAt::nn) return upper.nn;
    if constexpr (at == NeighbourAt::nne) return upper.nne;
  }
  template <NeighbourAt at>
  L3_INLINE Lanes pixel(uint32_t part, uint32_t word) const {
    return neighbour<at>(pixel_[part][word], above_[part][word]);
  }
  // The values that predictions use: pixels, with holes filled.
  template <NeighbourAt at>
  L3_INLINE Lanes value(uint32_t part, uint32_t word) const {
    if constexpr (kMayHaveHoles) {
      const Lanes seen = pixel<at>(part, word);
      return has_holes() ? W::select(is_hole(seen), last_value_[part], seen) : seen;
    }
    return pixel<at>(part, word);
  }
  template <NeighbourAt at>
  L3_INLINE Lanes error(uint32_t part, uint32_t word) const {
    return neighbour<at>(error_[part][word], errors_above_[part][word]);
  }

  static constexpr bool kMayHaveHoles = kUse == TokenUse::holes;
  L3_INLINE bool has_holes() const { return kMayHaveHoles && (W::kLooksAhead || tables_.hole()); }

  // The number of parts of the warp that contain lanes of this tile.
  L3_INLINE uint32_t parts() const { return kParts == 1 ? 1 : parts_; }

  // Advances past words that were taken. Returns false if the payload has no more of them.
  L3_INLINE bool advance(uint32_t taken) {
    at_ += taken;
    return at_ <= payload_bytes_;
  }

  // Decodes which blocks are still, and the classes of the others.
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
          active_[part] = W::and_not(active_[part], still);
          all[part] = W::select_or_zero(still, W::splat(kStillBlock));
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
          before[part] = W::select_or_zero(active_[part], Front::template decode_symbol<kClassBuckets>(
                                                              own, other, state_[part], active_[part], sink_));
          Front::refill(state_[part], active_[part], window, taken);
          all[part] = all[part] | before[part] << static_cast<int>(8 * c);
        }
      }
      L3_FOR_PARTS classes_.store(first + part * W::kPartLanes, first + count, all[part]);
      if (!advance(taken)) return false;
    }
    return true;
  }

  // Decodes which lanes' blocks are still, in the round that begins with block `first`.
  L3_INLINE Mask decode_still(uint32_t part, uint32_t first, uint32_t across, Window window, uint32_t& taken) {
    const Lanes lane = W::numbers(part);
    // The block above is a context only if an earlier round decoded it.
    const Mask known = W::both(W::less(lane, across), W::not_less(lane + first, W::splat(across)));
    const Lanes above = classes_.of(lane + (first - across), W::lane_bits(known));
    const Lanes frequency = W::select(W::equal(above & constant<kStillBlock>, kStillBlock),
                                      W::splat(tables_.still_frequency(1)), W::splat(tables_.still_frequency(0)));
    const Lanes slot = state_[part] & constant<kProbabilities - 1>;
    const Mask still = W::and_not(active_[part], W::not_less(slot, frequency));
    const Lanes own_frequency = W::select(still, frequency, W::splat(constant<kProbabilities>) - frequency);
    sink_.template on_symbol<kClassBuckets>(own_frequency, active_[part]);
    const Lanes number = W::select(still, slot, slot - frequency);
    const Lanes next = own_frequency * (state_[part] >> kProbabilityBits) + number;
    state_[part] = W::select(active_[part], next, state_[part]);
    Front::refill(state_[part], active_[part], window, taken);
    return still;
  }

  L3_INLINE bool decode_values() {
    const uint32_t period = W::uniform(dense_period(width_, lanes_));
    const uint32_t steps = W::uniform(dense_steps(width_, height_, lanes_));
    const uint32_t last_part = kParts == 1 ? 0 : (lanes_ - 1) / W::kPartLanes,
                   last_lane = W::uniform((lanes_ - 1) % W::kPartLanes);
    delay_.clear(dense_delay(width_, lanes_));
    sink_.begin(width_, height_, lanes_);
    L3_FOR_PARTS {
      const Lanes zero = W::splat(0), lane = W::numbers(part), none = W::splat(kValueBias << 16 | kValueBias);
      for (uint32_t word = 0; word < kWords; ++word) {
        pixel_[part][word] = {none, none, none, none, none, none, none, none};
        pixel_here_[part][word] = none;
        if constexpr (!kLiteral) {
          error_[part][word] = {zero, zero, zero, zero, zero, zero, zero, zero};
          errors_above_[part][word] = {zero, zero, zero};
          error_here_[part][word] = zero;
        }
      }
      last_value_[part] = W::splat(kValueBias);
      still_[part] = W::equal(lane, uint32_t{kLanes});  // none
      column_[part] = zero - lane - lane;
      // A lane beyond the tile's lanes gets a row that is always below the tile, so it is never active.
      row_[part] = W::select(W::less(lane, lanes_), lane, W::splat(1u << 30));
    }
    // The column of lane 0, and how many rows it has completed. Until step `ask_at` no step has all lanes in still
    // blocks.
    uint32_t lead = 0, turn = 0, ask_at = 0;
    for (uint32_t step = 0; step < steps; ++step) {
      bool inside = false;  // whether no lane is at an edge of the tile
      if constexpr (W::kLooksAhead) {
        if (lead == period) {
          lead = 0;
          ++turn;
        }
        inside = turn * lanes_ > 1 && lead + 1 >= 2 * lanes_ && lead + 1 < width_;
        uint32_t idle = 0;
        if (inside && step >= ask_at && tables_.still()) {
          const auto steps_ahead = ahead_.from(lead, turn * lanes_, lanes_);
          idle = steps_ahead.idle;
          ask_at = step + steps_ahead.busy;
        }
        if (idle > 0) {
          for (uint32_t i = 0; i < idle; ++i) still_step(step + i, last_part, last_lane);
          skip_columns(idle);
          lead += idle;
          step += idle - 1;
          continue;
        }
        ++lead;
      }
      const typename Delay::Entry from_last = delay_.load();
      track_errors(from_last);
      // In descending order: each part reads the neighbours of the part before it, which must not have moved yet.
      for (uint32_t part = parts(); part-- > 0;) gather_neighbours(part, from_last, inside);
      if (any_of(to_decode_) && !decode_step()) return false;
      L3_FOR_USED_PARTS {
        sink_.put(step, part, row_[part], column_[part], pixel_here_[part], active_[part]);
        next_column(part, period);
      }
      store_delay(last_part, last_lane);
    }
    return true;
  }

  // A step in which all lanes are in still blocks and none is at an edge of the tile: nothing is decoded.
  L3_INLINE void still_step(uint32_t step, uint32_t last_part, uint32_t last_lane) {
    const typename Delay::Entry from_last = delay_.load();
    track_errors(from_last);
    for (uint32_t part = parts(); part-- > 0;) {
      slide(part, from_last);
      Mask level = W::same(pixel_[part][0].n, pixel_[part][0].nw);
      for (uint32_t word = 1; word < kWords; ++word) {
        level = W::both(level, W::same(pixel_[part][word].n, pixel_[part][word].nw));
      }
      if (has_holes()) track_last_value(part, W::equal(W::numbers(part), uint32_t{kLanes}));
      for (uint32_t word = 0; word < kWords; ++word) {
        pixel_here_[part][word] = W::select(level, pixel_[part][word].w, pixel_[part][word].n);
        if constexpr (!kLiteral) error_here_[part][word] = W::splat(0);
      }
    }
    L3_FOR_USED_PARTS sink_.put(step, part, row_[part], column_[part], pixel_here_[part], active_[part]);
    store_delay(last_part, last_lane);
  }

  // Updates the state that still_step() does not, after `idle` such steps.
  L3_INLINE void skip_columns(uint32_t idle) {
    L3_FOR_USED_PARTS {
      column_[part] = column_[part] + idle;
      still_[part] = W::less(W::numbers(part), uint32_t{kLanes});  // each lane may have entered another block
      for (uint32_t word = 0; word < kWords && !kLiteral; ++word) {
        errors_above_[part][word] = Front::upper_of(error_[part][word]);
      }
    }
  }

  // Errors that are all 0 need not be moved. An error that is not 0 stays in the windows for at most five steps.
  L3_INLINE void track_errors(const typename Delay::Entry& from_last) {
    if constexpr (W::kLooksAhead && !kLiteral) {
      uint32_t errors = 0;
      for (uint32_t word = 0; word < kWords; ++word) errors |= from_last[4 * word + 2] | from_last[4 * word + 3];
      if (errors != 0 || has_escapes_) {
        error_steps_ = kErrorSteps;
      } else if (error_steps_ > 0) {
        --error_steps_;
      }
      has_escapes_ = false;
    }
  }
  static constexpr uint32_t kErrorSteps = 8;
  L3_INLINE bool has_errors() const { return !kLiteral && (!W::kLooksAhead || error_steps_ > 0); }

  L3_INLINE bool any_of(const Mask* masks) const {
    bool any = false;
    L3_FOR_USED_PARTS any = any || W::any(masks[part]);
    return any;
  }

  // Decodes the pixels of one step.
  L3_INLINE bool decode_step() {
    const Window window = reader_.window(at_);
    uint32_t taken = 0;
    if (tables_.match()) {
      decode_match(window, taken);
    } else {
      L3_FOR_USED_PARTS escaped_[part] = to_decode_[part];
    }
    if (any_of(escaped_)) {
      has_escapes_ = true;
      decode_channel<0>(window, taken);
      if constexpr (kChannels > 1) decode_channel<1>(window, taken);
      if constexpr (kChannels > 2) decode_channel<2>(window, taken);
      if constexpr (kChannels > 3) decode_channel<3>(window, taken);
    }
    return advance(taken);
  }

  // Moves each lane to its next column, or to the first column of its next row.
  L3_INLINE void next_column(uint32_t part, uint32_t period) {
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

  // Moves the windows of a part's lanes by one column.
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
      if (!has_errors()) {
        next += kLiteral ? 0 : 2;
      } else if constexpr (!kLiteral) {
        const Lanes error_above = above(error_here_[before][word]), error_n_above = above(error_[before][word].n);
        Front::slide(error_[part][word], error_here_[part][word], error_above, error_n_above);
      }
    }
  }

  // Collects the neighbours of each lane's pixel in a part. `inside`: no lane is at an edge of the tile.
  L3_INLINE void gather_neighbours(uint32_t part, const typename Delay::Entry& from_last, bool inside) {
    slide(part, from_last);
    const Lanes column = column_[part], row = row_[part];
    const Mask active = W::both(W::less(column, width_), W::less(row, height_));
    active_[part] = active;
    refills_[part] = Front::refilling_lanes(active, column, row, ending_);
    const Lanes none = W::splat(kValueBias << 16 | kValueBias);
    if (inside) {
      for (uint32_t word = 0; word < kWords; ++word) {
        above_[part][word] = Front::upper_of(pixel_[part][word]);
        if (has_errors()) errors_above_[part][word] = Front::upper_of(error_[part][word]);
      }
    } else {
      const auto edges = Front::Edges::of(column, row, width_);
      for (uint32_t word = 0; word < kWords; ++word) {
        above_[part][word] = Front::fix_edges(pixel_[part][word], edges, none);
        if (has_errors()) errors_above_[part][word] = Front::fix_edges(error_[part][word], edges, W::splat(0));
      }
    }
    for (uint32_t word = 0; word < kWords; ++word) {
      pixel_here_[part][word] = none;
      if constexpr (!kLiteral) error_here_[part][word] = W::splat(0);
    }
    if (has_holes()) track_last_value(part, W::equal(column, 0));
    to_decode_[part] = active;
    const bool has_classes = !kLiteral && weights_.change();
    if (!has_classes && !tables_.still()) return;
    const Mask enters = W::both(active, W::equal(column & constant<kBlockEdge - 1>, 0));
    const auto entering = W::lane_bits(enters);
    if (entering) {
      const Lanes block = block_at(row, column);
      if (has_classes) weights_.enter(part, entering, block, classes_);
      if constexpr (W::kLooksAhead) {
        if (tables_.still()) still_[part] = W::either(W::and_not(still_[part], enters), still_among(block, entering));
      }
    }
    if (!tables_.still()) return;
    if constexpr (W::kLooksAhead) {
      copy_still(part, W::both(active, still_[part]));
    } else {
      // A GPU looks this up in each step rather than keep it in a register.
      copy_still(part, still_among(block_at(row, column), active));
    }
  }
  L3_INLINE Lanes block_at(Lanes row, Lanes column) const {
    return (row >> 4) * ceil_div(width_, kBlockEdge) + (column >> 4);
  }
  // The lanes, among those given, whose block is still.
  template <class Which>
  L3_INLINE Mask still_among(Lanes block, Which lanes) const {
    return W::equal(classes_.of(block, lanes) & constant<kStillBlock>, kStillBlock);
  }

  // Pixels of still blocks (section 15.4): W if N equals NW, else N.
  L3_INLINE void copy_still(uint32_t part, Mask still) {
    to_decode_[part] = W::and_not(active_[part], still);
    Mask level = still;
    for (uint32_t word = 0; word < kWords; ++word) {
      level = W::both(level, W::same(pixel<NeighbourAt::n>(part, word), pixel<NeighbourAt::nw>(part, word)));
    }
    for (uint32_t word = 0; word < kWords; ++word) {
      const Lanes copied = W::select(level, pixel<NeighbourAt::w>(part, word), pixel<NeighbourAt::n>(part, word));
      pixel_here_[part][word] = W::select(still, copied, pixel_here_[part][word]);
    }
  }

  // Which pairs of neighbours are equal: one bit for each of the eight pairs of section 14.4.
  L3_INLINE Lanes equalities(uint32_t part) const {
    return same<NeighbourAt::w, NeighbourAt::n, 1>(part) | same<NeighbourAt::n, NeighbourAt::ne, 2>(part) |
           same<NeighbourAt::n, NeighbourAt::nw, 4>(part) | same<NeighbourAt::w, NeighbourAt::nw, 8>(part) |
           same<NeighbourAt::ww, NeighbourAt::w, 16>(part) | same<NeighbourAt::nn, NeighbourAt::n, 32>(part) |
           same<NeighbourAt::nne, NeighbourAt::ne, 64>(part) | same<NeighbourAt::nww, NeighbourAt::nw, 128>(part);
  }
  template <NeighbourAt a, NeighbourAt b, uint32_t kBit>
  L3_INLINE Lanes same(uint32_t part) const {
    Mask all = W::same(pixel<a>(part, 0), pixel<b>(part, 0));
    for (uint32_t word = 1; word < kWords; ++word) {
      all = W::both(all, W::same(pixel<a>(part, word), pixel<b>(part, word)));
    }
    return W::select_or_zero(all, W::splat(constant<kBit>));
  }

  // With holes, each lane keeps the last value that was not the hole (section 15.2).
  L3_INLINE void track_last_value(uint32_t part, Mask first_column) {
    const Lanes n = pixel<NeighbourAt::n>(part, 0), w = pixel<NeighbourAt::w>(part, 0);
    Lanes last_value = W::select(first_column, W::splat(constant<kValueBias>), last_value_[part]);
    last_value = W::select(is_hole(n), last_value, n & constant<0xFFFF>);
    last_value_[part] = W::select(is_hole(w), last_value, w & constant<0xFFFF>);
  }
  L3_INLINE Mask is_hole(Lanes v) const {
    return W::same(v & constant<0xFFFF>, W::splat(tables_.hole_value() ^ kValueBias));
  }

  // Decodes matches: what the pixels repeat. Lanes whose pixel repeats nothing escape.
  L3_INLINE void decode_match(Window window, uint32_t& taken) {
    Lanes own[kParts], other[kParts];
    L3_FOR_USED_PARTS {
      if (kParts > 1 && !W::any(to_decode_[part])) continue;
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
      escaped_[part] = to_decode_[part];
      if (kParts > 1 && !W::any(to_decode_[part])) continue;
      const Lanes symbol =
          Front::template decode_symbol<kTokenBuckets>(own[part], other[part], state_[part], to_decode_[part], sink_);
      Front::refill(state_[part], W::both(to_decode_[part], refills_[part]), window, taken);
      const Mask is_n = W::equal(symbol, kMatchN), is_ne = W::equal(symbol, kMatchNe),
                 is_nw = W::equal(symbol, kMatchNw);
      for (uint32_t word = 0; word < kWords; ++word) {
        const Lanes w_or_n = W::select(is_n, pixel<NeighbourAt::n>(part, word), pixel<NeighbourAt::w>(part, word));
        const Lanes matched = W::select(is_nw, pixel<NeighbourAt::nw>(part, word),
                                        W::select(is_ne, pixel<NeighbourAt::ne>(part, word), w_or_n));
        pixel_here_[part][word] = W::select(to_decode_[part], matched, pixel_here_[part][word]);
      }
      const Mask repeats = W::less(symbol, uint32_t{kMatchNone});
      Mask known = repeats;
      if constexpr (kMayHaveHoles) {
        if (has_holes()) {
          const Mask hole = W::both(to_decode_[part], W::equal(symbol, kMatchHole));
          known = W::either(known, hole);
          pixel_here_[part][0] =
              W::select(hole, W::splat((tables_.hole_value() ^ kValueBias) | kValueBias << 16), pixel_here_[part][0]);
        }
      }
      escaped_[part] = W::and_not(to_decode_[part], known);
    }
  }

  template <uint32_t c, class Halves>
  L3_INLINE static Lanes pair(const Halves& a, const Halves& b) {
    return c % 2 == 0 ? W::lower_halves(a, b) : W::upper_halves(a, b);
  }

  // The activity, from the terms of this channel's own neighbours.
  template <uint32_t c>
  L3_INLINE Lanes prepare_activity(uint32_t part) {
    constexpr uint32_t word = c / 2;
    Lanes activity = W::splat(constant<kActivityFloor>);
    const auto add = [&](uint32_t i, Lanes terms) {
      activity = W::dot_pairs(terms, W::splat(weights_.activity(c, i)), activity);
    };
    add(0, W::magnitude_pairs(pair<c>(error<NeighbourAt::w>(part, word), error<NeighbourAt::n>(part, word))));
    add(1, W::magnitude_pairs(pair<c>(error<NeighbourAt::nw>(part, word), error<NeighbourAt::ne>(part, word))));
    add(2, W::magnitude_pairs(pair<c>(error<NeighbourAt::ww>(part, word), error<NeighbourAt::nn>(part, word))));
    const Lanes w = value<NeighbourAt::w>(part, word), n = value<NeighbourAt::n>(part, word),
                nw = value<NeighbourAt::nw>(part, word);
    const auto w_nw = W::distance_pairs(w, nw), n_nw = W::distance_pairs(n, nw),
               n_ne = W::distance_pairs(n, value<NeighbourAt::ne>(part, word));
    add(4, pair<c>(w_nw, n_nw));
    add(5, pair<c>(n_ne, n_ne) & constant<0xFFFF>);
    return activity;
  }

  // The lower or upper 16 bits of each lane's word.
  template <uint32_t c>
  L3_INLINE static Lanes half_of(Lanes word) {
    return c % 2 == 0 ? word & constant<0xFFFF> : word >> 16;
  }
  template <uint32_t c>
  L3_INLINE static Lanes in_place(Lanes half) {
    return c % 2 == 0 ? half : half << 16;
  }
  // Replaces a channel's 16 bits in a word of two channels, in the lanes of the mask.
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
      Front::refill(state_[part], W::both(escaped_[part], refills_[part]), window, taken);
      const Mask direct = W::less(token, kDirectTokens);
      raw_[part] = W::and_not(escaped_[part], direct);
      any_raw = any_raw || W::any(raw_[part]);
      number[part] = token;
      raw_bits[part] = ((token - W::splat(constant<kDirectTokens>)) >> 1) + constant<4>;
    }
    if (any_raw) {
      L3_FOR_USED_PARTS {
        if (kParts > 1 && !W::any(raw_[part])) continue;
        const Lanes count = W::select_or_zero(raw_[part], raw_bits[part]);
        sink_.on_raw_bits(count);
        const Lanes raw = state_[part] & (W::shifted_left(W::splat(constant<1>), count) - W::splat(constant<1>));
        const Lanes long_number = W::shifted_left((number[part] & constant<1>) | constant<2>, count) | raw;
        number[part] = W::select(raw_[part], long_number, number[part]);
        state_[part] = W::shifted_right(state_[part], count);
        Front::refill(state_[part], W::both(raw_[part], refills_[part]), window, taken);
      }
    }
    L3_FOR_USED_PARTS {
      if (kParts == 1 || W::any(escaped_[part])) finish<c>(part, p[part], up[part], number[part]);
    }
  }

  template <uint32_t c>
  L3_INLINE void predict(uint32_t part, Lanes& p, Lanes& up) {
    constexpr uint32_t word = c / 2;
    // Corrects the bias of the values, whose weights add up to 1 in 64ths, and adds one half for rounding.
    Lanes sum = W::splat(constant<(kValueBias << kWeightShift) + (1u << kWeightShift >> 1)>);
    const bool is_prepared = c == 0 && tables_.match() && tables_.match_by_activity();
    Lanes activity = is_prepared ? activity_[part] : prepare_activity<c>(part);
    const auto add = [&](uint32_t i, Lanes pairs) { sum = W::dot_pairs(pairs, weights_.pair(c, i, part), sum); };
    add(0, pair<c>(value<NeighbourAt::w>(part, word), value<NeighbourAt::n>(part, word)));
    add(1, pair<c>(value<NeighbourAt::nw>(part, word), value<NeighbourAt::ne>(part, word)));
    add(2, pair<c>(value<NeighbourAt::ww>(part, word), value<NeighbourAt::nn>(part, word)));
    add(3, pair<c>(value<NeighbourAt::nne>(part, word), value<NeighbourAt::nww>(part, word)));
    add(kErrorPair, pair<c>(error<NeighbourAt::w>(part, word), error<NeighbourAt::n>(part, word)));
    add(kErrorPair + 1, pair<c>(error<NeighbourAt::nw>(part, word), error<NeighbourAt::ne>(part, word)));
    add(kErrorPair + 2, pair<c>(error<NeighbourAt::ww>(part, word), error<NeighbourAt::nn>(part, word)));
    if constexpr (c > 0) {
      Lanes before = half_of<c - 1>(error_here_[part][(c - 1) / 2]);
      if constexpr (c > 1) before = before | half_of<c - 2>(error_here_[part][(c - 2) / 2]) << 16;
      add(kCrossErrorPair, before);
      activity = W::dot_pairs(W::magnitude_pairs(before), W::splat(weights_.activity(c, 3)), activity);
      add_cross<c - 1>(part, c, kCrossPair, sum);
      if constexpr (c > 1) add_cross<c - 2>(part, c, kCrossPair + 2, sum);
    }
    W::split_tokens(sum, tables_.max_value(c), p, up);
    activity_[part] = activity;
  }
  template <uint32_t kFrom>
  L3_INLINE void add_cross(uint32_t part, uint32_t c, uint32_t i, Lanes& sum) {
    constexpr uint32_t word = kFrom / 2;
    const Lanes w_n = pair<kFrom>(value<NeighbourAt::w>(part, word), value<NeighbourAt::n>(part, word));
    const Lanes nw_here = pair<kFrom>(value<NeighbourAt::nw>(part, word), pixel_here_[part][word]);
    sum = W::dot_pairs(w_n, weights_.pair(c, i, part), sum);
    sum = W::dot_pairs(nw_here, weights_.pair(c, i + 1, part), sum);
  }

  template <uint32_t c>
  L3_INLINE Lanes context_of(uint32_t part, Lanes p, Lanes up) {
    const Lanes level = W::token_level(activity_[part]);
    if (!tables_.grouped(c)) return level;
    constexpr uint32_t word = c / 2;
    const Lanes max_value = W::splat(tables_.max_value(c));
    const Lanes distance = (p ^ up) & max_value;  // max_value - p if the prediction leans upwards
    const auto sign = [&](Lanes e, int bit) { return c % 2 == 0 ? (e >> 15 & constant<1>) << bit : (e >> 31) << bit; };
    const auto at_least = [&](Lanes neighbour, Lanes bit) {
      return W::select_or_zero(W::not_less(half_of<c>(neighbour) ^ constant<kValueBias>, p), bit);
    };
    // In the decoder's bit order: W and N compared with p, then the signs of the errors.
    const Lanes pattern = at_least(value<NeighbourAt::w>(part, word), W::splat(constant<1>)) |
                          at_least(value<NeighbourAt::n>(part, word), W::splat(constant<2>)) |
                          sign(error<NeighbourAt::w>(part, word), 2) | sign(error<NeighbourAt::n>(part, word), 3) |
                          sign(error<NeighbourAt::nw>(part, word), 4) | sign(error<NeighbourAt::ne>(part, word), 5);
    return level + W::token_row(tables_, c, W::bit_length_at_most_15(distance), (pattern ^ up) & constant<63>);
  }

  // Odd numbers go in the direction in which the prediction leans.
  template <uint32_t c>
  L3_INLINE void finish(uint32_t part, Lanes p, Lanes up, Lanes number) {
    const Lanes max_value = W::splat(tables_.max_value(c));
    Lanes& here = pixel_here_[part][c / 2];
    if constexpr (kLiteral) {
      here = with_half<c>(here, (number & max_value) ^ constant<kValueBias>, escaped_[part]);
    } else {
      const Lanes odd = W::splat(0) - (number & constant<1>);
      const Lanes difference = (number >> 1) ^ odd;  // for a prediction that does not lean upwards
      const Lanes value = (p + (difference ^ up) - up) & max_value;
      const Lanes error = W::token_error(value - p) & constant<0xFFFF>;
      here = with_half<c>(here, value ^ constant<kValueBias>, escaped_[part]);
      error_here_[part][c / 2] = error_here_[part][c / 2] | W::select_or_zero(escaped_[part], in_place<c>(error));
    }
  }

  L3_INLINE Fault check_end() const {
    for (uint32_t part = 0; part < kParts; ++part) {
      const Mask rests =
          ending_.row < height_ ? W::less(state_[part], kStateFloor + 1) : W::equal(state_[part], kStateFloor);
      if (W::bits(rests) != W::kAllBits) return {Reason::dense_states, 0};
    }
    if (payload_bytes_ - at_ >= kUnit) return {Reason::tile_leftover, at_};
    for (uint32_t i = at_; i < payload_bytes_; ++i) {
      if (payload_[i] != 0) return {Reason::tile_padding, i};
    }
    return {};
  }

  const uint32_t width_, height_, lanes_;
  const Ending ending_;
  const uint32_t parts_, payload_bytes_;
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
  Mask active_[kParts], refills_[kParts], still_[kParts], to_decode_[kParts], escaped_[kParts], raw_[kParts];
  DenseWindow<Lanes> pixel_[kParts][kWords], error_[kParts][kWords];
  Lanes pixel_here_[kParts][kWords], error_here_[kParts][kWords];
  Upper above_[kParts][kWords], errors_above_[kParts][kWords];
  Lanes last_value_[kParts], activity_[kParts];
  typename W::Ahead ahead_;
  uint32_t error_steps_ = 0;
  bool has_escapes_ = false;
};

}  // namespace l3
