// The operations that token models add to WordWarp on processors. kernels/ implements the same for CUDA.
#pragma once

#include <algorithm>

#include "engine/token_taps.h"
#include "engine/warp_concepts.h"
#include "engine/word_warp.h"

namespace l3 {

// A model as the decoder accesses it.
class TokenView {
 public:
  explicit TokenView(const TokenTables& tables) : tables_(tables) {
    for (uint32_t equalities = 0; equalities < kMatchPatterns && tables.match; ++equalities) {
      match_place_[equalities] = static_cast<uint16_t>(tables.match_row[equalities] * kMatchOctaves);
    }
  }

  const TokenTables& all() const { return tables_; }
  // The index of the first table of each pattern's row. The octave is added to it.
  const uint16_t* match_place() const { return match_place_; }

  bool match() const { return tables_.match; }
  bool match_by_activity() const { return tables_.match_by_activity; }
  bool hole() const { return tables_.hole; }
  uint32_t hole_value() const { return tables_.hole_value; }
  bool still() const { return tables_.still; }
  uint32_t still_frequency(uint32_t i) const { return tables_.still_frequency[i]; }
  bool grouped(uint32_t c) const { return tables_.grouped[c]; }
  uint32_t max_value(uint32_t c) const { return (1u << tables_.depth[c]) - 1; }

 private:
  const TokenTables& tables_;
  uint16_t match_place_[kMatchPatterns];
};

// Finds steps in which all lanes are in still blocks.
class StillAhead {
 public:
  template <class Classes>
  void scan(uint32_t width, uint32_t height, const Classes& classes) {
    width_ = width;
    height_ = height;
    across_ = ceil_div(width, kBlockEdge);
    for (uint32_t block = across_ * ceil_div(height, kBlockEdge); block-- > 0;) {
      const uint32_t right = (block % across_ + 1) * kBlockEdge;
      const bool goes_on = right < width && ends_[block + 1] != 0;
      const bool still = (classes[block] & kStillBlock) != 0;
      ends_[block] = static_cast<uint16_t>(!still ? 0 : goes_on ? ends_[block + 1] : right);
    }
  }

  // idle: for how many steps from now on all lanes stay in still blocks and away from the tile's edges, or 0 if they
  // are too few to be worth it. busy: if idle is 0, for how many steps that cannot change. Lane 0 is at `column` and
  // `row`; each further lane is one row below and two columns behind.
  struct Steps {
    uint32_t idle, busy;
  };
  Steps from(uint32_t column, uint32_t row, uint32_t lanes) const {
    uint32_t steps = width_ - 1 - column;
    const uint32_t rows = smaller(lanes, height_ > row ? height_ - row : 0);
    for (uint32_t lane = 0; lane < rows && steps >= kFew; ++lane) {
      const uint32_t x = column - 2 * lane;
      const uint32_t end = ends_[((row + lane) >> 4) * across_ + (x >> 4)];
      if (end == 0) return {0, kBlockEdge - x % kBlockEdge};
      steps = smaller(steps, end - x);
    }
    return steps >= kFew ? Steps{steps, 0} : Steps{0, steps + 1};
  }

 private:
  static constexpr uint32_t kFew = 3;
  uint32_t width_ = 0, height_ = 0, across_ = 0;
  // The column after the run of still blocks that begins with this block, or 0 if this block is not still.
  uint16_t ends_[kMaxTileEdge / kBlockEdge * (kMaxTileEdge / kBlockEdge) + 1];
};

// `Self` is the derived warp, whose replacements of functions are used here.
template <class Self, class Base>
struct TokenWarp : Base {
  using Lanes = typename Base::Lanes;
  using Mask = typename Base::Mask;
  using Vector = typename Base::Vector;
  using Signed = typename Base::Signed;
  using Shorts = typename Base::Shorts;
  using Floats = typename Base::Floats;
  typedef uint16_t UnsignedShorts __attribute__((vector_size(sizeof(Shorts))));
  using TokenTables = TokenView;
  using Ahead = StillAhead;
  static constexpr bool kLooksAhead = true;
  static constexpr uint32_t kPartLanes = Base::kPartLanes;

  L3_INLINE static Mask same(Lanes a, Lanes b) { return {(Vector)(a.v == b.v)}; }
  L3_INLINE static Mask not_less(Lanes a, Lanes b) { return {(Vector)((Signed)a.v >= (Signed)b.v)}; }
  L3_INLINE static bool any(Mask mask) { return Base::bits(mask) != 0; }
  // `a` in the lanes of the mask, 0 in the others.
  L3_INLINE static Lanes select_or_zero(Mask mask, Lanes a) { return a & mask; }
  L3_INLINE static Lanes at_least_zero(Lanes a) { return {a.v & ~(Vector)((Signed)a.v >> 31)}; }
  // The minimum, for numbers below 2^31.
  L3_INLINE static Lanes at_most(Lanes a, Lanes b) {
    const Vector above = (Vector)((Signed)a.v > (Signed)b.v);
    return {(a.v & ~above) | (b.v & above)};
  }

  L3_INLINE static Lanes shifted_left(Lanes a, Lanes count) { return {a.v << count.v}; }
  L3_INLINE static Lanes shifted_right(Lanes a, Lanes count) { return {a.v >> count.v}; }

  // Lanes of two 16-bit numbers.
  // Saturates at 32767.
  L3_INLINE static Lanes distance_pairs(Lanes a, Lanes b) {
    const Shorts x = (Shorts)a.v, y = (Shorts)b.v, above = (Shorts)(x > y);
    const UnsignedShorts sign = (UnsignedShorts)~above;
    const Shorts distance = (Shorts)((((UnsignedShorts)x - (UnsignedShorts)y) ^ sign) - sign);
    const Shorts over = distance >> 15;
    return {(Vector)((distance & ~over) | (over & 32767))};
  }

  L3_INLINE static Lanes token_level(Lanes activity) {
    return Base::level(Self::at_most(activity, Base::splat(constant<kMaxActivity>)));
  }
  L3_INLINE static Lanes token_error(Lanes a) { return Base::template clamp<-kMaxTokenError, kMaxTokenError>(a); }
  // Uses the exponent of 2 a + 1 as a float.
  L3_INLINE static Lanes bit_length_at_most_15(Lanes a) {
    const Vector exponent = (Vector) __builtin_convertvector((Signed)((a.v << 1) + 1), Floats) >> 23;
    return Self::at_most({exponent - 127}, Base::splat(constant<15>));
  }
  // The prediction, clamped to 0 to `max_value`, and a mask of the lanes in which it leans upwards.
  L3_INLINE static void split_tokens(Lanes sum, uint32_t max_value, Lanes& p, Lanes& up) {
    const Lanes minimum = Self::at_least_zero(sum);
    const Lanes within = Self::at_most(minimum, Base::splat((max_value << kWeightShift) + (1u << kWeightShift) - 1));
    p = within >> kWeightShift;
    up = Base::shift_right_signed(within << (32 - kWeightShift), 31);
  }

  // Looks up the buckets of each lane's table.
  L3_INLINE static void look_up_match(const TokenView& view, Lanes equalities, Lanes octave, Lanes bucket, Lanes& own,
                                      Lanes& other) {
    const auto patterns = Self::each(equalities), octaves = Self::each(octave);
    const uint8_t* const tables = view.all().match_table;
    const uint16_t* const place = view.match_place();
    look_up_buckets([&](uint32_t i) { return tables[place[patterns[i]] + octaves[i]]; }, view, bucket, own, other);
  }
  L3_INLINE static void look_up_literal(const TokenView& view, Lanes w, Lanes bucket, Lanes& own, Lanes& other) {
    const auto values = Self::each(w);
    look_up_buckets([&](uint32_t i) { return view.all().literal_table[values[i]]; }, view, bucket, own, other);
  }
  L3_INLINE static void look_up_token(const TokenView& view, uint32_t c, Lanes context, Lanes bucket, Lanes& own,
                                      Lanes& other) {
    const auto contexts = Self::each(context);
    look_up_buckets([&](uint32_t i) { return view.all().table_of[c][contexts[i]]; }, view, bucket, own, other);
  }
  // The index of the first level in the row of a zone and a sign pattern.
  L3_INLINE static Lanes token_row(const TokenView& view, uint32_t c, Lanes zone, Lanes pattern) {
    return Base::row(view.all(), c, zone, pattern) * constant<kTokenLevels>;
  }

  // What lane 0 will need of the last lane in later steps: kWords words for each step.
  template <uint32_t kWords>
  class TokenDelay {
   public:
    using Entry = const uint32_t*;
    L3_INLINE void clear(uint32_t steps) {
      steps_ = steps;
      at_ = 0;
      for (uint32_t i = 0; i < steps; ++i) {
        for (uint32_t word = 0; word < kWords; ++word) words_[i][word] = kValueBias << 16 | kValueBias;
      }
    }
    L3_INLINE Entry load() const { return words_[at_]; }

    // Writes the words of one entry. `lane` is the lane's number within its part.
    class Next {
     public:
      L3_INLINE Next(uint32_t* to, uint32_t lane) : to_(to), lane_(lane) {}
      L3_INLINE void put(Lanes a) { *to_++ = a.v[lane_]; }

     private:
      uint32_t* to_;
      uint32_t lane_;
    };
    L3_INLINE Next next(uint32_t lane) { return {words_[at_], lane}; }
    L3_INLINE void store(const Next&) { at_ = at_ + 1 == steps_ ? 0 : at_ + 1; }

   private:
    uint32_t steps_ = 1, at_ = 0;
    uint32_t words_[kMaxTileEdge][kWords];
  };

  // The weights for the block of each lane, in pairs.
  template <uint32_t kChannels>
  class TokenWeights {
   public:
    L3_INLINE explicit TokenWeights(const TokenView& view) {
      const l3::TokenTables& tables = view.all();
      if (tables.literal) return;
      channels_ = tables.engine_channels;
      for (uint32_t c = 0; c < channels(); ++c) change_ = change_ || tables.classes[c] > 1;
      for (uint32_t c = 0; c < channels(); ++c) {
        for (uint32_t k = 0; k < tables.classes[c]; ++k) {
          for (uint32_t i = 0; i < tap_pairs(c); ++i) classes_[c][k][i] = tap_pair(tables.weights[c][k], i);
        }
        for (uint32_t i = 0; i < kActivityPairs; ++i) activity_[c][i] = activity_pair(tables.activity[c], i);
        for (uint32_t i = 0; i < tap_pairs(c) && !change_; ++i) std::fill_n(lanes_[c][i], kLanes, classes_[c][0][i]);
      }
    }

    // Whether different blocks have different weights.
    L3_INLINE bool change() const { return change_; }

    // Loads the weights of the lanes in `entering`, a bit mask, which enter a new block.
    L3_INLINE void enter(uint32_t part, uint32_t entering, Lanes block, const typename Base::Classes& classes) {
      for (; entering != 0; entering &= entering - 1) {
        const uint32_t i = static_cast<uint32_t>(__builtin_ctz(entering));
        const uint32_t of_block = classes[block.v[i]];
        const uint32_t lane = part * kPartLanes + i;
        for (uint32_t c = 0; c < channels(); ++c) {
          const uint32_t* from = classes_[c][of_block >> (8 * c) & (kMaxClasses - 1)];
          for (uint32_t pair = 0; pair < tap_pairs(c); ++pair) lanes_[c][pair][lane] = from[pair];
        }
      }
    }
    L3_INLINE Lanes pair(uint32_t c, uint32_t i, uint32_t part) const {
      return Base::load(lanes_[c][i] + part * kPartLanes);
    }
    L3_INLINE uint32_t activity(uint32_t c, uint32_t i) const { return activity_[c][i]; }

   private:
    L3_INLINE uint32_t channels() const { return kChannels == 1 ? 1 : channels_; }

    bool change_ = false;
    uint32_t channels_ = 1;
    uint32_t classes_[kChannels][kMaxClasses][kTapPairs];
    uint32_t activity_[kChannels][kActivityPairs];
    alignas(64) uint32_t lanes_[kChannels][kTapPairs][kLanes] = {};
  };

 private:
  template <class TableOf>
  L3_INLINE static void look_up_buckets(const TableOf& table_of, const TokenView& view, Lanes bucket, Lanes& own,
                                        Lanes& other) {
    Self::template look_up_in<kTokenBuckets>(table_of, view.all().buckets, bucket, own, other);
  }
};

struct PortableTokenWarp : TokenWarp<PortableTokenWarp, WordWarp<PortableTokenWarp, 16>> {};

static_assert(TokenMethodWarp<PortableTokenWarp>);

}  // namespace l3
