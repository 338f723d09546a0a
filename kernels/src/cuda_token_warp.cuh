// A warp of a GPU for token models. It extends the warp of the dense method.
#pragma once

#include "cuda_word_warp.cuh"
#include "engine/token_taps.h"
#include "engine/warp_concepts.h"

namespace l3 {

constexpr uint32_t kLevelOfLeast = 130u << 2;  // of the lowest activity, 8, in the bits of a float

// The tables of a token model in shared memory: their address, and the flags and numbers that are equal in all lanes.
struct CudaTokenTables {
  // The words of a class. The first channel's taps need four words, the others' need six of their eight.
  L3_INLINE static constexpr uint32_t weight_words(uint32_t c) { return c == 0 ? 4 : 8; }
  L3_INLINE static constexpr uint32_t first_weight(uint32_t c) {
    return c == 0 ? 0 : kMaxClasses * (weight_words(0) + (c - 1) * weight_words(1));
  }

  struct Memory {
    uint32_t weights[kMaxClasses * 28];
    uint32_t activity[kMaxChannels][4];  // the last word is not used
    // The distance of a row from the first one, or the table itself if activity does not count.
    uint16_t match_row[kMatchPatterns];
    uint8_t match_table[kMaxMatchRows * kMatchOctaves];
    // The distance of a row from the first one is the sum of both.
    uint16_t zone_row[kMaxChannels][kZones];
    uint16_t pattern_row[kMaxChannels][kSignPatterns];
    // Indexed by row and level, or for literals by the value at W.
    uint8_t table_of[kMaxChannels][kMaxRows * kTokenLevels];
    alignas(16) Bucket buckets[kMaxTokenTables * kTokenBuckets];
  };

  enum Flag : uint32_t { kMatchFlag = 1, kActivityFlag = 2, kStillFlag = 4, kRowsFlag = 8, kGroupedFlag = 16 };

  L3_INLINE CudaTokenTables(uint32_t address, const TokenTables& tables) : memory(address), model(&tables) {
    uint32_t bits = (tables.match ? kMatchFlag : 0u) | (tables.match_by_activity ? kActivityFlag : 0u) |
                    (tables.still ? kStillFlag : 0u) | (tables.rows ? kRowsFlag : 0u);
    const uint32_t predicted = tables.literal ? 0 : tables.engine_channels;  // channels; no rows are read for literals
    for (uint32_t c = 0; c < predicted; ++c) bits |= tables.grouped[c] ? kGroupedFlag << c : 0u;
    const auto top = [&](uint32_t c) { return (1u << tables.depth[c]) - 1; };
    flags_ = CudaWordWarp::uniform(bits);
    max_value_[0] = CudaWordWarp::uniform(top(0) | top(1) << 16);
    max_value_[1] = CudaWordWarp::uniform(top(2) | top(3) << 16);
    hole_value_ = CudaWordWarp::uniform(tables.hole_value);
    one = CudaWordWarp::uniform(1);
    upper = CudaWordWarp::uniform(1u << 16);
  }

  L3_INLINE const TokenTables& all() const { return *model; }

  L3_INLINE bool match() const { return (flags_ & kMatchFlag) != 0; }
  L3_INLINE bool match_by_activity() const { return (flags_ & kActivityFlag) != 0; }
  L3_INLINE uint32_t hole_value() const { return hole_value_; }
  L3_INLINE bool still() const { return (flags_ & kStillFlag) != 0; }
  L3_INLINE uint32_t still_frequency(uint32_t i) const { return model->still_frequency[i]; }
  L3_INLINE bool rows() const { return (flags_ & kRowsFlag) != 0; }
  L3_INLINE bool grouped(uint32_t c) const { return (flags_ & kGroupedFlag << c) != 0; }
  L3_INLINE uint32_t max_value(uint32_t c) const {
    return c % 2 == 0 ? max_value_[c / 2] & 0xFFFF : max_value_[c / 2] >> 16;
  }

  uint32_t memory;
  const TokenTables* model;
  uint32_t one;    // for add_if_equal()
  uint32_t upper;  // 2^16, which the compiler does not know

 private:
  uint32_t flags_, max_value_[2], hole_value_;
};
static_assert(4 * CudaTokenTables::first_weight(kMaxChannels) == sizeof(CudaTokenTables::Memory::weights));

struct CudaTokenWarp : CudaWordWarp {
  using TokenTables = CudaTokenTables;
  using Memory = CudaTokenTables::Memory;
  // Two weights: the lower or the upper half of a word that holds four.
  struct WeightPair {
    uint32_t word;
    bool upper;
  };

  using CudaWordWarp::splat;
  L3_INLINE static WeightPair splat(WeightPair pair) { return pair; }
  L3_INLINE static bool any(Mask mask) { return __any_sync(kAllLanes, mask); }
  L3_INLINE static Mask same(Lanes a, Lanes b) { return a.v == b.v; }
  L3_INLINE static Lanes select_or_zero(Mask mask, Lanes a) { return {mask ? a.v : 0}; }
  L3_INLINE static Lanes at_most(Lanes a, Lanes b) { return {min(a.v, b.v)}; }

  L3_INLINE static Lanes shifted_left(Lanes a, Lanes count) { return {a.v << count.v}; }
  L3_INLINE static Lanes shifted_right(Lanes a, Lanes count) { return {a.v >> count.v}; }

  // ---- two 16-bit numbers per lane

  L3_INLINE static Lanes lower_halves(Lanes a, Lanes b) { return {__byte_perm(a.v, b.v, 0x5410)}; }
  // The same for numbers below 2^16, by a product.
  L3_INLINE static Lanes two_halves(const TokenTables& tables, Lanes a, Lanes b) { return {b.v * tables.upper + a.v}; }
  L3_INLINE static Lanes upper_halves(Lanes a, Lanes b) { return {__byte_perm(a.v, b.v, 0x7632)}; }
  L3_INLINE static Lanes dot_pairs(Lanes a, WeightPair b, Lanes sum) {
    return {b.upper ? dot_of_upper(a.v, b.word, sum.v) : dot_of_lower(a.v, b.word, sum.v)};
  }
  // The same for values, which have no sign.
  L3_INLINE static Lanes dot_values(Lanes a, WeightPair b, Lanes sum) {
    return {b.upper ? dot_of_upper_unsigned(a.v, b.word, sum.v) : dot_of_lower_unsigned(a.v, b.word, sum.v)};
  }
  L3_INLINE static Lanes magnitude_pairs(Lanes a) {
    const uint32_t negative = signs_of_bytes<0xBB99>(a.v);
    return {(a.v ^ negative) + (negative & 0x00010001)};
  }
  L3_INLINE static Lanes distance(Lanes a, Lanes b) {
    return {min(__sad(static_cast<int>(a.v), static_cast<int>(b.v), 0), static_cast<uint32_t>(kMaxTokenError))};
  }

  // ---- predictions and contexts

  L3_INLINE static Lanes token_level(Lanes activity) {
    const uint32_t number = __float_as_uint(__uint2float_rn(min(activity.v, kMaxActivity)));
    return {(number >> 21) - kLevelOfLeast};
  }
  L3_INLINE static Lanes token_error(Lanes a) {
    return {static_cast<uint32_t>(min(max(static_cast<int32_t>(a.v), -kMaxTokenError), kMaxTokenError))};
  }
  // An error with its magnitude in the upper half.
  L3_INLINE static Lanes with_magnitude(Lanes error) {
    return {__byte_perm(error.v, static_cast<uint32_t>(abs(static_cast<int>(error.v))), 0x5410)};
  }
  // Twice the sign pattern in the decoder's bit order: W and N compared with p, then the signs of the errors at W and
  // N, and at NW and NE.
  L3_INLINE static Lanes sign_pattern(const TokenTables& tables, Lanes w, Lanes n, Lanes p, Lanes near, Lanes far) {
    const uint32_t of_errors = dot_signed(signs_of_bytes<0xFDB9>(near.v, far.v), 0xC0E0F0F8, 0);
    return {add_if_not_less<2>(w.v, p.v, tables.one, add_if_not_less<4>(n.v, p.v, tables.one, of_errors))};
  }
  template <uint32_t kNumber>
  L3_INLINE static Lanes add_if_same(const TokenTables& tables, Lanes a, Lanes b, Lanes sum) {
    return {add_if_equal<kNumber>(a.v, b.v, tables.one, sum.v)};
  }
  L3_INLINE static Lanes bit_length_at_most_15(Lanes a) { return {min(32u - static_cast<uint32_t>(__clz(a.v)), 15u)}; }
  L3_INLINE static void split_tokens(Lanes sum, uint32_t max_value, Lanes& p, Lanes& up) {
    const uint32_t within = clamp_to_top(sum.v, (max_value << kWeightShift) + (1u << kWeightShift) - 1);
    p = {within >> kWeightShift};
    up = {static_cast<uint32_t>(static_cast<int32_t>(within << (32 - kWeightShift)) >> 31)};
  }

  // ---- tables

  L3_INLINE static void look_up_match(const TokenTables& tables, Lanes twice_equalities, Lanes octave, Lanes bucket,
                                      Lanes& own, Lanes& other) {
    uint32_t table = load_shared_u16<0>(tables.memory + at(offsetof(Memory, match_row)) + twice_equalities.v);
    if (tables.match_by_activity()) {
      table = load_shared_u8<0>(tables.memory + at(offsetof(Memory, match_table)) + table + octave.v);
    }
    look_up_bucket(tables, table, bucket, own, other);
  }
  L3_INLINE static void look_up_literal(const TokenTables& tables, Lanes w, Lanes bucket, Lanes& own, Lanes& other) {
    look_up_token(tables, 0, w, bucket, own, other);
  }
  L3_INLINE static void look_up_token(const TokenTables& tables, uint32_t c, Lanes context, Lanes bucket, Lanes& own,
                                      Lanes& other) {
    const uint32_t first = tables.memory + at(offsetof(Memory, table_of)) + c * kMaxRows * kTokenLevels;
    look_up_bucket(tables, load_shared_u8<0>(first + context.v), bucket, own, other);
  }
  L3_INLINE static Lanes token_row(const TokenTables& tables, uint32_t c, Lanes zone, Lanes twice_pattern) {
    const uint32_t zones = tables.memory + at(offsetof(Memory, zone_row)) + 2 * c * kZones;
    const uint32_t patterns = tables.memory + at(offsetof(Memory, pattern_row)) + 2 * c * kSignPatterns;
    return {load_shared_u16<0>(zones + 2 * zone.v) + load_shared_u16<0>(patterns + twice_pattern.v)};
  }

  // ---- state of a tile in memory

  // In shared memory at a multiple of 16 bytes, with one entry per step.
  template <uint32_t kWords>
  class TokenDelay {
   public:
    static constexpr uint32_t kEntryBytes = 4 * kWords;
    class Entry {
     public:
      L3_INLINE void put(Lanes a) { words_[count_++] = a.v; }
      L3_INLINE Lanes operator[](uint32_t i) const { return {words_[i]}; }

     private:
      friend TokenDelay;
      uint32_t words_[kWords], count_ = 0;
    };

    L3_INLINE explicit TokenDelay(uint4* first) : first_(reinterpret_cast<Part*>(first)), at_(first_), end_(first_) {}

    L3_INLINE void clear(uint32_t steps) {
      uint32_t* const words = reinterpret_cast<uint32_t*>(first_);
      for (uint32_t i = lane_number(); i < steps * kWords; i += kLanes) words[i] = 0;
      end_ = first_ + uniform(steps) * kParts;
      __syncwarp();
    }
    // What the lane above has put. The first lane gets what the last lane has put, from the oldest entry.
    L3_INLINE Entry above(const Entry& here) const {
      Entry entry;
#pragma unroll
      for (uint32_t i = 0; i < kWords; ++i) entry.words_[i] = __shfl_up_sync(kAllLanes, here.words_[i], 1);
      if (lane_number() == 0) {
#pragma unroll
        for (uint32_t i = 0; i < kParts; ++i) {
          const Part part = at_[i];
          entry.words_[kPartWords * i] = part.x;
          entry.words_[kPartWords * i + 1] = part.y;
          if constexpr (kPartWords == 4) {
            entry.words_[4 * i + 2] = part.z;
            entry.words_[4 * i + 3] = part.w;
          }
        }
      }
      return entry;
    }
    // Replaces the oldest entry.
    L3_INLINE void store(uint32_t lane, const Entry& entry) {
      __syncwarp();  // the first lane has read it
      if (lane_number() == lane) {
#pragma unroll
        for (uint32_t i = 0; i < kParts; ++i) {
          const uint32_t* const words = entry.words_ + kPartWords * i;
          if constexpr (kPartWords == 4) {
            at_[i] = make_uint4(words[0], words[1], words[2], words[3]);
          } else {
            at_[i] = uint2{words[0], words[1]};
          }
        }
      }
      at_ += kParts;
      if (at_ == end_) at_ = first_;
      __syncwarp();
    }

   private:
    static_assert(kWords == 2 || kWords % 4 == 0);
    static constexpr uint32_t kPartWords = kWords == 2 ? 2 : 4, kParts = kWords / kPartWords;
    using Part = std::conditional_t<kPartWords == 2, uint2, uint4>;

    Part* first_;
    Part* at_;
    Part* end_;
  };

  // A lane keeps the classes of its block, and loads the weights when it uses them.
  template <uint32_t kChannels>
  class TokenWeights {
   public:
    L3_INLINE explicit TokenWeights(const TokenTables& tables) : tables_(tables) {}
    L3_INLINE static constexpr bool change() { return true; }
    L3_INLINE void enter(uint32_t, Mask, Lanes block, const Classes& classes) { classes_ = classes[block.v]; }
    L3_INLINE void set_still(bool still) { classes_ = (classes_ & ~kStillBlock) | (still ? kStillBlock : 0); }
    // A byte for each channel. The first one has the flag of still blocks, too.
    L3_INLINE Lanes classes() const { return {classes_}; }
    L3_INLINE WeightPair pair(uint32_t c, uint32_t i, uint32_t) const {
      const uint32_t bytes = 4 * CudaTokenTables::weight_words(c);
      const uint32_t first = tables_.memory + 4 * CudaTokenTables::first_weight(c);
      const uint32_t at = dot_unsigned(classes_, bytes << (8 * c), first);
      return {part_of(load_shared_four<0>(at + i / 8 * 16), i / 2 % 4), i % 2 != 0};
    }
    // Request the first pair first: it starts the loads of the others.
    L3_INLINE WeightPair activity(uint32_t c, uint32_t i) {
      if (i == 0) activity_ = load_shared_four_here(tables_.memory + at(offsetof(Memory, activity)) + 16 * c);
      return {part_of(activity_, i / 2), i % 2 != 0};
    }

   private:
    L3_INLINE static uint32_t part_of(uint4 v, uint32_t i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }

    const TokenTables& tables_;
    uint4 activity_{};
    uint32_t classes_ = 0;
  };

 private:
  L3_INLINE static constexpr uint32_t at(size_t offset) { return static_cast<uint32_t>(offset); }
  L3_INLINE static void look_up_bucket(const TokenTables& tables, uint32_t table, Lanes bucket, Lanes& own,
                                       Lanes& other) {
    const uint32_t first =
        tables.memory + at(offsetof(Memory, buckets)) + table * static_cast<uint32_t>(kTokenBuckets * sizeof(Bucket));
    const uint2 both = load_shared_two<0>(first + bucket.v * static_cast<uint32_t>(sizeof(Bucket)));
    own.v = both.x;
    other.v = both.y;
  }
};

static_assert(TokenMethodWarp<CudaTokenWarp>);

}  // namespace l3
