// What all decoders of dense tiles share (section 13 of the spec): DenseLoop and TokenLoop on processors, DenseDecoder
// and TokenDecoder on GPUs derive from Wavefront. Every processor target and CUDA compile this same code.
//
// The lanes pass through the tile as a wavefront. Each lane is two columns behind the lane above it, so whatever it
// needs from the row above was already decoded by the previous lane, and is handed over from lane to lane. A warp may
// consist of several parts. Each stage of a step is done for all parts before the next stage begins, so that the
// latencies of the parts overlap.
#pragma once

#include "container/tile.h"
#include "models/token.h"

// Loops over parts are not unrolled, so that the code of a step fits the processor's cache of decoded instructions.
#if defined(__CUDACC__)
#define L3_FOR_PARTS for (uint32_t part = 0; part < kParts; ++part)
#elif defined(__clang__)
#define L3_FOR_PARTS _Pragma("clang loop unroll(disable)") for (uint32_t part = 0; part < kParts; ++part)
#else
#define L3_FOR_PARTS _Pragma("GCC unroll 1") for (uint32_t part = 0; part < kParts; ++part)
#endif

// Like L3_FOR_PARTS, but only for parts that have work: see Wavefront::choose_parts().
#if defined(__CUDACC__)
#define L3_FOR_USED_PARTS L3_FOR_PARTS
#elif defined(__clang__)
#define L3_FOR_USED_PARTS for (uint32_t part = this->first_part(), end = this->end_part(); part < end; ++part)
#else
#define L3_FOR_USED_PARTS \
  _Pragma("GCC unroll 1") for (uint32_t part = this->first_part(), end = this->end_part(); part < end; ++part)
#endif

// The stages of processors' loops are not inlined, so that profilers tell them apart. Those of dense tiles are, because
// that takes 3 to 5 % less time; bench/stages.py defines L3_KEEP_STAGES.
#define L3_STAGE __attribute__((noinline))
#if defined(L3_KEEP_STAGES)
#define L3_DENSE_STAGE L3_STAGE
#else
#define L3_DENSE_STAGE L3_INLINE
#endif

namespace l3 {

// Between these steps, the lanes that are active do not change, and none is in the ending: neither in `begin` nor in
// `end`, nor outside.
struct SteadySteps {
  uint32_t begin = UINT32_MAX, end = 0;

  static SteadySteps of(uint32_t width, uint32_t height, uint32_t lanes, const Ending& ending) {
    const uint32_t period = dense_period(width, lanes);
    if (period != width) return {};  // lanes wait between their rows
    SteadySteps steady{2 * (lanes - 1), UINT32_MAX};
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      const uint32_t turns = lane < height ? (height - 1 - lane) / lanes + 1 : 0;
      const uint32_t before = ending.row > lane ? ceil_div(ending.row - lane, lanes) : 0;
      steady.end = smaller(steady.end, 2 * lane + smaller(turns * period, before * period + ending.column));
    }
    return steady;
  }
};

// A part of the lanes begins to work kAhead steps before its first lane enters the tile.
template <class W, class Sink, uint32_t kAhead = 1>
class Wavefront {
 protected:
  using Lanes = typename W::Lanes;
  using Mask = typename W::Mask;
  using Classes = typename W::Classes;
  using Window = typename W::Reader::Window;
  static constexpr uint32_t kParts = W::kParts;
  // Whether a step works only on parts with lanes inside the tile.
  static constexpr bool kChoosesParts = W::kChoosesParts;

  L3_INLINE Wavefront(const TileShape& shape, const TileEntry& entry, Sink& sink, Classes& classes)
      : width_(shape.width),
        height_(shape.height),
        lanes_(W::uniform(dense_lanes(entry.parameters))),
        ending_(ending_of(W::uniform(entry.parameters), shape.width, shape.height)),
        end_part_(ceil_div(lanes_, W::kPartLanes)),
        payload_bytes_(entry.payload_bytes),
        payload_(entry.payload),
        sink_(sink),
        classes_(classes),
        reader_(entry.payload, entry.payload_bytes) {}

  // Where the lanes of a part are, and which of them are inside the tile.
  struct Place {
    Lanes column, row;
    Mask active;
  };

  // ---- states, symbols and words

  // The parts of the warp that have work: in a step, see choose_parts(); else those that contain lanes of this tile.
  L3_INLINE uint32_t first_part() const { return kChoosesParts ? first_part_ : 0; }
  L3_INLINE uint32_t end_part() const { return kParts == 1 ? 1 : end_part_; }

  L3_INLINE void load_states() {
    L3_FOR_PARTS state_[part] = W::load_states(payload_, lanes_, part);
    at_ = 4 * lanes_;
  }

  // The bucket that a lane's state selects in its table.
  template <uint32_t kBuckets>
  L3_INLINE Lanes bucket_of(Constant<kBuckets>, uint32_t part) const {
    return (state_[part] & constant<kProbabilities - 1>) >> __builtin_ctz(kProbabilities / kBuckets);
  }

  // Decodes a symbol in each active lane of a part, from the two symbols of its bucket. Returns what the symbol stands
  // for in the lowest byte.
  template <uint32_t kBuckets>
  L3_INLINE Lanes decode_symbol(Constant<kBuckets>, uint32_t part, Lanes own, Lanes other, Mask active) {
    Lanes& state = state_[part];
    const Lanes place = state & constant<kProbabilities / kBuckets - 1>;
    const Mask is_own = W::less_small(place, W::template byte_of<2>(own));
    const Lanes chosen = W::select(is_own, own & constant<0xFF000FFF>, other);
    const Lanes number = ((chosen >> 12) + place) & constant<kProbabilities - 1>;
    const Lanes frequency = chosen & constant<kProbabilities - 1>;
    const Lanes next = frequency * (state >> kProbabilityBits) + number;
    state = W::select(active, next, state);
    return W::top_byte(chosen);
  }

  // The lanes of the mask whose state is low take a word each. `taken` is what the step has taken so far, in bytes.
  L3_INLINE void refill(uint32_t part, Mask lanes, Window window, uint32_t& taken) {
    W::refill(state_[part], W::both(lanes, W::below_floor(state_[part])), window, taken);
  }

  // Advances past words that were taken. Returns false if the payload has no more of them.
  L3_INLINE bool advance(uint32_t taken) {
    at_ += taken;
    return at_ <= payload_bytes_;
  }

  // Checks what must hold after the last pixel: the states, and that only padding follows.
  L3_INLINE Fault check_end() const {
    sink_.save_states(1, at_, state_);
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

  // ---- blocks: in a round, each lane decodes the classes of one block

  L3_INLINE uint32_t blocks_across() const { return ceil_div(width_, kBlockEdge); }
  L3_INLINE uint32_t blocks() const { return blocks_across() * ceil_div(height_, kBlockEdge); }
  L3_INLINE Lanes block_of(const Place& at) const { return (at.row >> 4) * blocks_across() + (at.column >> 4); }

  struct Round {
    uint32_t first, end;  // blocks
    Window window;
    uint32_t taken;
    Lanes classes[kParts];
  };
  L3_INLINE Round begin_round(uint32_t first) {
    Round round{first, first + smaller(lanes_, blocks() - first), reader_.window(at_), 0, {}};
    L3_FOR_USED_PARTS {
      round.classes[part] = W::splat(0);
      active_[part] = W::less(W::numbers(part), round.end - first);
    }
    return round;
  }
  // Decodes the classes of each active lane's block in the first `channels` channels.
  template <class Tables>
  L3_INLINE void decode_classes(Round& round, const Tables& tables, uint32_t channels) {
    Lanes before[kParts];
    L3_FOR_USED_PARTS before[part] = W::splat(0);
    for (uint32_t c = 0; c < channels; ++c) {
      L3_FOR_USED_PARTS {
        if (tables.classes[c] == 1) {
          before[part] = W::splat(0);
          continue;
        }
        Lanes own, other;
        W::look_up_class(tables, c, before[part] & constant<kMaxClasses - 1>, bucket_of(constant<kClassBuckets>, part),
                         own, other);
        before[part] = decode_symbol(constant<kClassBuckets>, part, own, other, active_[part]);
        refill(part, active_[part], round.window, round.taken);
        round.classes[part] = round.classes[part] | before[part] << static_cast<int>(8 * c);
      }
    }
  }
  // Decodes which lanes' blocks are still (section 15.4), from the frequencies of a still block below one that is not
  // still and below one that is. Only the others remain active.
  L3_INLINE void decode_still(uint32_t part, Round& round, const uint32_t (&frequencies)[2]) {
    const Lanes lane = W::numbers(part);
    const uint32_t first = round.first, across = blocks_across();
    // The block above is a context only if an earlier round decoded it.
    const Mask known = W::both(W::less(lane, across), W::at_least(lane + first, across));
    const Lanes above = classes_.of(lane + (first - across), W::lane_bits(known));
    const Lanes frequency = W::select(W::equal(above & constant<kStillBlock>, kStillBlock), W::splat(frequencies[1]),
                                      W::splat(frequencies[0]));
    const Mask still = decode_binary(part, round, frequency, active_[part]);
    active_[part] = W::and_not(active_[part], still);
    round.classes[part] = W::select(still, W::splat(kStillBlock), W::splat(0));
  }
  // Decodes in which of these lanes the first of two alternatives holds, whose frequency is given.
  L3_INLINE Mask decode_binary(uint32_t part, Round& round, Lanes frequency, Mask lanes) {
    const Lanes slot = state_[part] & constant<kProbabilities - 1>;
    const Mask first = W::both(lanes, W::less_small(slot, frequency));
    const Lanes own_frequency = W::select(first, frequency, W::splat(constant<kProbabilities>) - frequency);
    const Lanes number = W::select(first, slot, slot - frequency);
    const Lanes next = own_frequency * (state_[part] >> kProbabilityBits) + number;
    state_[part] = W::select(lanes, next, state_[part]);
    refill(part, lanes, round.window, round.taken);
    return first;
  }
  L3_INLINE bool end_round(const Round& round) {
    L3_FOR_USED_PARTS classes_.store(round.first + part * W::kPartLanes, round.end, round.classes[part]);
    return advance(round.taken);
  }

  // Decodes, for a token model, which blocks are still, which rows of others, and the classes of the others. `rows` has
  // room for a bit for each row of each block.
  bool decode_token_blocks(const TokenTables& tables, uint16_t* rows) {
    if (tables.literal && !tables.still) return true;
    for (uint32_t i = 0; i < blocks() && tables.rows; ++i) rows[i] = 0xFFFF;
    for (uint32_t first = 0; first < blocks(); first += lanes_) {
      Round round = begin_round(first);
      if (tables.still) {
        L3_FOR_USED_PARTS decode_still(part, round, tables.still_frequency);
        if (tables.rows) decode_rows(round, tables, rows);
      }
      if (!tables.literal) decode_classes(round, tables, tables.engine_channels);
      if (!end_round(round)) return false;
    }
    return true;
  }

  // Decodes which rows of a round's blocks are still (section 15.5). Here a word has a bit for each block of the round.
  void decode_rows(Round& round, const TokenTables& tables, uint16_t* rows) {
    uint32_t busy = 0;
    L3_FOR_USED_PARTS busy |= W::bits(active_[part]) << (part * W::kPartLanes);
    if (busy == 0) return;
    const uint32_t across = blocks_across(), last_lane = round.end - round.first - 1;
    // Bit k is what row k of a block sees of a block beside it that does not change in this round.
    const auto beside = [&](uint32_t block) {
      return uint32_t{rows[block]} << 1 | (block >= across ? rows[block - across] >> 15 : 1);
    };
    const uint32_t before = round.first > 0 ? beside(round.first - 1) : 0,
                   after = round.end < blocks() ? beside(round.end) : 0;
    // What row k sees of rows k - 1 and k - 2; blocks with none to the left or to the right; the first row of each.
    uint32_t above = 0, above_two = 0, no_left = 0, no_right = 0;
    alignas(64) uint32_t first_rows[kLanes] = {}, frequencies[kLanes] = {};
    uint32_t x = round.first % across, y = round.first / across;
    for (uint32_t lane = 0; lane <= last_lane; ++lane) {
      const uint32_t block = round.first + lane, up = block >= across ? rows[block - across] : 0xFFFFu;
      above |= (up >> 15) << lane;
      above_two |= (up >> 14 & 1) << lane;
      no_left |= uint32_t{x == 0} << lane;
      first_rows[lane] = y * kBlockEdge;
      if (++x == across) {
        no_right |= 1u << lane;
        x = 0;
        ++y;
      }
    }
    for (uint32_t k = 0; k < kBlockEdge; ++k) {
      const uint32_t left = no_left | above << 1 | (before >> k & 1),
                     right = no_right | (above & ((1u << last_lane << 1) - 1)) >> 1 | (after >> k & 1) << last_lane;
      for (uint32_t lanes = busy; lanes != 0; lanes &= lanes - 1) {
        const uint32_t lane = static_cast<uint32_t>(__builtin_ctz(lanes));
        const auto bit = [=](uint32_t of, uint32_t to) { return (of >> lane & 1) << to; };
        frequencies[lane] = tables.row_frequency[bit(above, 0) | bit(above_two, 1) | bit(right, 2) | bit(left, 3)];
      }
      uint32_t decoded = 0;
      L3_FOR_USED_PARTS {
        if ((busy >> (part * W::kPartLanes) & W::kAllBits) == 0) continue;
        const Mask here = W::both(active_[part], W::less(W::load(first_rows + part * W::kPartLanes) + k, height_));
        const Mask still = decode_binary(part, round, W::load(frequencies + part * W::kPartLanes), here);
        decoded |= W::bits(W::and_not(here, still)) << (part * W::kPartLanes);
      }
      above_two = above;
      above = ~decoded;
      for (uint32_t lanes = decoded; lanes != 0; lanes &= lanes - 1) {
        rows[round.first + static_cast<uint32_t>(__builtin_ctz(lanes))] &= static_cast<uint16_t>(~(1u << k));
      }
    }
  }

  // ---- the way of the lanes

  struct Way {
    uint32_t period, steps;         // of a row, with the columns in which a lane waits; of the tile
    uint32_t last_part, last_lane;  // where the last lane is
  };
  // Puts the lanes to where they begin.
  template <class Delay>
  L3_INLINE Way start_lanes(Delay& delay) {
    delay.clear(dense_delay(width_, lanes_));
    sink_.save_states(0, at_, state_);
    sink_.begin(width_, height_, lanes_);
    L3_FOR_USED_PARTS {
      const Lanes lane = W::numbers(part);
      column_[part] = W::splat(start_of(part)) - lane - lane;
      // A lane beyond the tile's lanes gets a row that is always below the tile, so it is never active.
      row_[part] = W::select(W::less(lane, lanes_), lane, W::splat(1u << 30));
    }
    return {W::uniform(dense_period(width_, lanes_)), W::uniform(dense_steps(width_, height_, lanes_)),
            kParts == 1 ? 0 : (lanes_ - 1) / W::kPartLanes, W::uniform((lanes_ - 1) % W::kPartLanes)};
  }
  // Chooses the parts to work on in a step. The first lanes begin and end before the last ones, so in a small tile
  // most parts are outside it in most steps.
  L3_INLINE void choose_parts(uint32_t step, const Way& way) {
    if (!kChoosesParts || step < change_) return;
    const uint32_t parts = way.last_part + 1;
    first_part_ = 0;
    while (first_part_ + 1 < parts && end_of(first_part_, way.period) <= step) ++first_part_;
    end_part_ = parts;
    while (end_part_ > first_part_ + 1 &&
           (step < start_of(end_part_ - 1) || end_of(end_part_ - 1, way.period) <= step)) {
      --end_part_;
    }
    change_ = way.steps;
    for (uint32_t part = 0; part < parts; ++part) {
      for (const uint32_t at : {start_of(part), end_of(part, way.period)}) {
        if (at > step) change_ = smaller(change_, at);
      }
    }
  }
  // Finds the lanes that are inside the tile. Of these, only those whose pixel is not in the ending take words.
  L3_INLINE Place find_place(uint32_t part) {
    const Lanes column = column_[part], row = row_[part];
    const Mask active = W::both(W::less(column, width_), W::less(row, height_));
    active_[part] = active;
    refills_[part] = W::and_not(active, W::both(W::at_least(row, ending_.row), W::at_least(column, ending_.column)));
    return {column, row, active};
  }
  // The active lanes that enter a block.
  L3_INLINE static Mask entering_block(const Place& at) {
    return W::both(at.active, W::equal(at.column & constant<kBlockEdge - 1>, 0));
  }
  // Moves each lane to its next column, or to the first column of its next row.
  L3_INLINE void next_column(uint32_t part, uint32_t period) {
    column_[part] = column_[part] + constant<1>;
    const Mask wraps = W::equal(column_[part], period);
    column_[part] = W::select(wraps, W::splat(0), column_[part]);
    row_[part] = W::select(wraps, row_[part] + lanes_, row_[part]);
  }

  const uint32_t width_, height_, lanes_;
  const Ending ending_;
  uint32_t first_part_ = 0, end_part_;
  const uint32_t payload_bytes_;
  const uint8_t* payload_;
  Sink& sink_;
  Classes& classes_;
  typename W::Reader reader_;
  uint32_t at_ = 0;      // in the payload
  uint32_t change_ = 0;  // the step in which other parts have work
  Lanes state_[kParts];
  Lanes column_[kParts], row_[kParts];
  Mask active_[kParts], refills_[kParts];  // decodes something in this step; may take words after it

 private:
  // The step in which a part begins to work.
  L3_INLINE uint32_t start_of(uint32_t part) const {
    return !kChoosesParts || part == 0 ? 0 : 2 * part * W::kPartLanes - kAhead;
  }
  // The step in which a part's last lane has left the tile. 0 if the tile has no row for the part.
  L3_INLINE uint32_t end_of(uint32_t part, uint32_t period) const {
    const uint32_t first = part * W::kPartLanes;
    if (first >= height_) return 0;
    const uint32_t turns = (height_ - 1 - first) / lanes_;  // of the part's first lane, before its last row
    const uint32_t last = smaller(first + W::kPartLanes, smaller(lanes_, height_ - turns * lanes_)) - 1;
    return 2 * last + turns * period + width_;
  }
};

}  // namespace l3
