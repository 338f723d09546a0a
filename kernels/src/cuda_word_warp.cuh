// A warp of a GPU for the dense method. A lane variable is a register, and a warp has one part.
// codec/src/engine/word_warp.h documents the functions.
#pragma once

#include "container/tile.h"
#include "cuda_instructions.cuh"
#include "engine/warp_concepts.h"
#include "models/dense_tables.h"
#include "models/token.h"

namespace l3 {

constexpr uint32_t kLevelOfOne = 127u << 2;  // in the bits of a float; an activity of 8 is three octaves above
constexpr uint32_t kRowBytes = kLevels + 4;  // of a row in memory, so that equal levels of rows are in different banks
constexpr uint32_t kRowPlaces = 2 * kZones * kSignPatterns;  // of two channels

// The tables of an image in shared memory. Lanes look up values by 32-bit addresses in shared memory.
struct CudaTables {
  // The last word of a class's weights is not used. The last word of an activity is its start value.
  struct Memory {
    uint4 weights[kMaxChannels][2][kMaxClasses];  // in halves, so that eight classes are in different banks
    uint4 activity[kMaxChannels];
    uint16_t row_of[kMaxChannels / 2 * kRowPlaces];  // the address of a row of table_of, minus kLevelOfOne
    uint8_t table_of[kMaxChannels][kMaxRows * kRowBytes];
    Bucket buckets[kMaxTables * kTableBuckets];
  };

  uint32_t memory;
  const uint32_t* classes;
  const Bucket* class_buckets;
  const uint8_t (*class_table_of)[kMaxClasses + 4];
};

struct CudaWords {
  uint32_t v;

  template <uint32_t kValue>
  L3_INLINE friend CudaWords operator+(CudaWords a, Constant<kValue>) {
    return {a.v + kValue};
  }
  template <uint32_t kValue>
  L3_INLINE friend CudaWords operator*(CudaWords a, Constant<kValue>) {
    return {a.v * kValue};
  }
  template <uint32_t kValue>
  L3_INLINE friend CudaWords operator&(CudaWords a, Constant<kValue>) {
    return {a.v & kValue};
  }
  template <uint32_t kValue>
  L3_INLINE friend CudaWords operator|(CudaWords a, Constant<kValue>) {
    return {a.v | kValue};
  }
  template <uint32_t kValue>
  L3_INLINE friend CudaWords operator^(CudaWords a, Constant<kValue>) {
    return {a.v ^ kValue};
  }

  L3_INLINE friend CudaWords operator+(CudaWords a, CudaWords b) { return {a.v + b.v}; }
  L3_INLINE friend CudaWords operator-(CudaWords a, CudaWords b) { return {a.v - b.v}; }
  L3_INLINE friend CudaWords operator*(CudaWords a, CudaWords b) { return {a.v * b.v}; }
  L3_INLINE friend CudaWords operator&(CudaWords a, CudaWords b) { return {a.v & b.v}; }
  L3_INLINE friend CudaWords operator|(CudaWords a, CudaWords b) { return {a.v | b.v}; }
  L3_INLINE friend CudaWords operator^(CudaWords a, CudaWords b) { return {a.v ^ b.v}; }
  L3_INLINE friend CudaWords operator+(CudaWords a, uint32_t b) { return {a.v + b}; }
  L3_INLINE friend CudaWords operator*(CudaWords a, uint32_t b) { return {a.v * b}; }
  L3_INLINE friend CudaWords operator<<(CudaWords a, int count) { return {a.v << count}; }
  L3_INLINE friend CudaWords operator>>(CudaWords a, int count) { return {a.v >> count}; }
};

struct CudaWordWarp {
  using Lanes = CudaWords;
  using Mask = bool;
  using Tables = CudaTables;
  static constexpr uint32_t kPartLanes = kLanes;
  static constexpr uint32_t kParts = 1;
  static constexpr bool kChoosesParts = false;
  static constexpr uint32_t kAllBits = kAllLanes;

  // Of four bytes, which as signed numbers are -128 each.
  static constexpr uint32_t kErrorBias = 128, kErrorBiases = 0x80808080u;
  static constexpr uint32_t kActivityStart = 0x4B000000u + kActivityFloor;

  // Payloads begin at even addresses and have an even number of bytes. The reader does not read past the end: it
  // repeats the last word.
  class Reader {
   public:
    struct Window {
      const uint8_t* bytes;
      uint32_t at, size, lanes_so_far;
    };
    L3_INLINE Reader(const uint8_t* bytes, uint32_t size) : bytes_(bytes), size_(size) {}
    L3_INLINE Window window(uint32_t at) const { return {bytes_, at, size_, l3::lanes_so_far()}; }

   private:
    const uint8_t* bytes_;
    uint32_t size_;
  };

  // ---- numbers

  L3_INLINE static Lanes splat(uint32_t value) { return {value}; }
  template <uint32_t kValue>
  L3_INLINE static Lanes splat(Constant<kValue>) {
    return {kValue};
  }
  // Returns the same number. The compiler cannot see that, so it does not compute the number again.
  L3_INLINE static uint32_t uniform(uint32_t number) { return __reduce_max_sync(kAllLanes, number); }
  L3_INLINE static Lanes numbers(uint32_t) { return {lane_number()}; }
  // Splits a sum of weights times values, modulo 2^16, into the prediction p, and `up`: all ones if the sum lies in the
  // upper half of the range that rounds to p.
  L3_INLINE static void split(Lanes sum, Lanes& p, Lanes& up) {
    const uint32_t within = clamp_half_to_top(sum.v, (256u << kWeightShift) - 1) << (8 - kWeightShift);
    p = byte_of<1>({within});
    up = {signs_of_bytes<0x8888>(within)};
  }
  // The prediction, plus or minus the difference in a symbol's top byte.
  L3_INLINE static Lanes sample_of(Lanes p, Lanes up, Lanes symbol) {
    return byte_of<0>({dot_unsigned(symbol.v, __byte_perm(0, sign_of(up), 0x4000), p.v)});
  }
  // Errors are kept as bytes, plus 128.
  L3_INLINE static Lanes to_error(Lanes sample, Lanes p) {
    return {add_and_clamp_to_top(sample.v, kErrorBias - p.v, kErrorBias + kMaxError)};
  }

  // ---- masks

  L3_INLINE static Mask less(Lanes a, uint32_t b) { return a.v < b; }
  L3_INLINE static Mask less_small(Lanes a, Lanes b) { return a.v < b.v; }
  L3_INLINE static Mask below_floor(Lanes state) { return state.v < kStateFloor; }
  L3_INLINE static Mask at_least(Lanes a, uint32_t b) { return a.v >= b; }
  L3_INLINE static Mask equal(Lanes a, uint32_t b) { return a.v == b; }
  L3_INLINE static Mask both(Mask a, Mask b) { return a && b; }
  L3_INLINE static Mask either(Mask a, Mask b) { return a || b; }
  L3_INLINE static Mask and_not(Mask a, Mask b) { return a && !b; }
  L3_INLINE static Lanes select(Mask mask, Lanes a, Lanes b) { return mask ? a : b; }
  L3_INLINE static Mask lane_bits(Mask mask) { return mask; }
  L3_INLINE static bool any(Mask mask) { return __any_sync(kAllLanes, mask); }
  L3_INLINE static uint32_t bits(Mask mask) { return __ballot_sync(kAllLanes, mask); }

  // ---- four bytes per lane

  struct SignedFour {
    uint32_t bytes;
  };
  L3_INLINE static Lanes dot(Lanes a, SignedFour b, Lanes sum) { return {dot_unsigned(a.v, b.bytes, sum.v)}; }
  // Subtracts what the bias of four errors would add to a sum.
  L3_INLINE static Lanes without_bias(SignedFour weights, Lanes sum) {
    return {dot_signed(kErrorBiases, weights.bytes, sum.v)};
  }
  L3_INLINE static Lanes dot_magnitudes(Lanes errors, SignedFour b, Lanes sum) {
    return {dot_unsigned(__vabsdiffu4(errors.v, kErrorBiases), b.bytes, sum.v)};
  }
  template <uint32_t kByte>
  L3_INLINE static Lanes byte_of(Lanes word) {
    return {dot_unsigned(word.v, 1u << (8 * kByte), 0)};
  }
  L3_INLINE static Lanes top_byte(Lanes word) { return byte_of<3>(word); }
  L3_INLINE static Lanes distances(Lanes a, Lanes b) { return {__vabsdiffu4(a.v, b.v)}; }
  // Stores the lowest byte of `byte` at a place of the word.
  template <uint32_t kPlace>
  L3_INLINE static Lanes with_byte(Lanes word, Lanes byte) {
    // The bytes above may hold anything: those of later channels follow, and the rest are never read.
    if constexpr (kPlace == 0) return byte;
    constexpr uint32_t kFour = 0x3210;
    return {__byte_perm(word.v, byte.v, (kFour & ~(0xFu << (4 * kPlace))) | 4u << (4 * kPlace))};
  }

  template <uint32_t kCount>
  L3_INLINE static void exchange(Lanes a, Lanes b, Lanes c, Lanes d, Lanes* r) {
    const uint32_t low_ab = __byte_perm(a.v, b.v, 0x5140), low_cd = __byte_perm(c.v, d.v, 0x5140);
    r[0] = {__byte_perm(low_ab, low_cd, 0x5410)};
    if constexpr (kCount > 1) r[1] = {__byte_perm(low_ab, low_cd, 0x7632)};
    if constexpr (kCount > 2) {
      const uint32_t high_ab = __byte_perm(a.v, b.v, 0x7362), high_cd = __byte_perm(c.v, d.v, 0x7362);
      r[2] = {__byte_perm(high_ab, high_cd, 0x5410)};
      if constexpr (kCount > 3) r[3] = {__byte_perm(high_ab, high_cd, 0x7632)};
    }
  }
  // For three bytes: the highest byte has no weight.
  template <uint32_t kCount>
  L3_INLINE static void exchange(Lanes a, Lanes b, Lanes c, Lanes* r) {
    const uint32_t low = __byte_perm(a.v, b.v, 0x5140), high = __byte_perm(a.v, b.v, 0x7362);
    r[0] = {__byte_perm(low, c.v, 0x4410)};
    if constexpr (kCount > 1) r[1] = {__byte_perm(low, c.v, 0x5532)};
    if constexpr (kCount > 2) r[2] = {__byte_perm(high, c.v, 0x6610)};
    if constexpr (kCount > 3) r[3] = {__byte_perm(high, c.v, 0x7732)};
  }
  // For two bytes. The words of odd channels hold them in the upper half, where with_errors() expects them.
  template <uint32_t kCount>
  L3_INLINE static void exchange(Lanes a, Lanes b, Lanes* r) {
    r[0] = {__byte_perm(a.v, b.v, 0x5140)};
    if constexpr (kCount > 1) r[1] = r[0];
    if constexpr (kCount > 2) r[2] = {__byte_perm(a.v, b.v, 0x7362)};
    if constexpr (kCount > 3) r[3] = r[2];
  }
  // For bytes 2 and 3. They have no weight if there is no such channel.
  L3_INLINE static Lanes with_errors(Lanes far, Lanes before) { return {__byte_perm(far.v, before.v, 0x4432)}; }
  template <uint32_t kChannel>
  L3_INLINE static Lanes with_errors(Lanes far, Lanes before, Lanes before_that) {
    const uint32_t errors = __byte_perm(before.v, before_that.v, 0x4040);
    return {__byte_perm(far.v, errors, kChannel % 2 == 0 ? 0x5410 : 0x5432)};
  }

  // ---- between lanes and memory

  L3_INLINE static Lanes shift_up(Lanes a, Lanes before) {
    const uint32_t below = __shfl_up_sync(kAllLanes, a.v, 1);
    return {lane_number() == 0 ? before.v : below};
  }
  // A bucket of samples as it lies in shared memory: `place` is which one of its table it is. From bit 12 on, both
  // words have a number which is added to a slot, not to its place in the bucket, to give the number within the symbol.
  // In `own` that is a multiple of 16, and its lowest bits say how many slots are its own. If all 16 are, they say 0,
  // and `other` is the same symbol.
  L3_INLINE static Bucket packed(const Bucket& bucket, uint32_t place) {
    constexpr uint32_t kKept = 0xFF000FFFu, kNumber = ~kKept;
    const uint32_t count = bucket.own >> 16 & 0xFF, from = 0 - (place << 16);
    const uint32_t own = (bucket.own & kKept) | (from & kNumber);
    const uint32_t other = (bucket.other & kKept) | ((bucket.other + from) & kNumber);
    return {own | (count & 15) << 12, count == 16 ? own : other};
  }
  // The context is the address of its table's number.
  L3_INLINE static void look_up(const Tables& tables, uint32_t, Lanes context, Lanes state, Lanes& own, Lanes& other) {
    static_assert(kProbabilities == 1 << 12 && kTableBuckets == 1 << 8);
    const uint32_t bucket = dot_unsigned(state.v << 20, static_cast<uint32_t>(sizeof(Bucket)) << 24,
                                         tables.memory + static_cast<uint32_t>(offsetof(CudaTables::Memory, buckets)));
    const uint2 both = load_shared_two<0>(
        load_shared_u8<0>(context.v) * static_cast<uint32_t>(kTableBuckets * sizeof(Bucket)) + bucket);
    own.v = both.x;
    other.v = both.y;
  }
  // Decodes a symbol in each active lane, from the two of its bucket. What it stands for is in the top byte.
  L3_INLINE static Lanes decode_symbol(Lanes& state, Lanes own, Lanes other, Mask active) {
    const bool is_own = (state.v << 28 | 0x0FFFFFFFu) < own.v << 16;
    const uint32_t chosen = is_own ? own.v & 0xFFFF0FFFu : other.v;
    const uint32_t number = (chosen * 256 + (state.v << 20)) >> 20;
    const uint32_t next = (chosen & (kProbabilities - 1)) * (state.v >> kProbabilityBits) + number;
    state.v = active ? next : state.v;
    return {chosen};
  }
  template <class AnyTables>
  L3_INLINE static void look_up_class(const AnyTables& tables, uint32_t channel, Lanes before, Lanes bucket, Lanes& own,
                                      Lanes& other) {
    const uint32_t table = tables.class_table_of[channel][before.v];
    const Bucket both = tables.class_buckets[table * kClassBuckets + bucket.v];
    own.v = both.own;
    other.v = both.other;
  }

  // Returns the address of the table of a level, a zone and a sign pattern. Activities are counted from 2^23 on: a
  // float of that size has them in its lowest bits. The level is the exponent and the top bits of the difference.
  // A prediction that leans upwards inverts all bits of the pattern. So twice the pattern is 63, plus or minus the
  // same distance.
  L3_INLINE static Lanes context(const Tables& tables, uint32_t channel, Lanes activity, Lanes near, Lanes near_errors,
                                 Lanes p, Lanes up) {
    const uint32_t zone = dot_all_unsigned(((p.v ^ up.v) & 0xFF) * 3613 + 61923, 128u << 16, tables.memory);
    const uint32_t at_least = __byte_perm(near.v, kFromMiddle, 0x4140) - p.v * 0x00010001u;
    const uint32_t of_errors = dot_signed(signs_of_bytes<0xBA98>(near_errors.v), 0x10080402, kFromMiddle);
    const uint32_t distance = dot_unsigned(at_least, 0x40002000, of_errors);
    const uint32_t row = load_shared_u16<0>(
        distance * sign_of(up) + zone +
        (static_cast<uint32_t>(offsetof(CudaTables::Memory, row_of)) + 2 * place_of_row(channel, 0, 0) + 63));
    return {row + (__float_as_uint(__uint_as_float(activity.v) - kLarge) >> 21)};
  }
  // The index that context() uses.
  L3_INLINE static uint32_t place_of_row(uint32_t channel, uint32_t zone, uint32_t pattern) {
    return channel / 2 * kRowPlaces + channel % 2 * (kZones * kSignPatterns) + zone * kSignPatterns + pattern;
  }

  // Loads the states at the start of a payload. Lanes without a state get the idle state.
  L3_INLINE static Lanes load_states(const uint8_t* bytes, uint32_t count, uint32_t) {
    return {lane_number() < count ? load_u32(bytes + 4 * lane_number()) : kStateFloor};
  }
  L3_INLINE static void refill(Lanes& state, Mask mask, Reader::Window window, uint32_t& taken) {
    const uint32_t wanted = __ballot_sync(kAllLanes, mask);
    const uint32_t behind = window.at + taken + 2 * __popc(wanted & window.lanes_so_far);
    if (mask) state.v = __byte_perm(load_global_u16(window.bytes + smaller(behind, window.size) - 2), state.v, 0x5410);
    taken += 2 * __popc(wanted);
  }

  // ---- state of a tile in memory

  // In shared memory, with one entry per step.
  class Delay {
   public:
    struct Entry {
      uint4 words;
      L3_INLINE uint32_t operator[](uint32_t i) const {
        return i == 0 ? words.x : i == 1 ? words.y : i == 2 ? words.z : words.w;
      }
    };
    L3_INLINE explicit Delay(uint4* first) : first_(first), at_(first), end_(first) {}

    L3_INLINE void clear(uint32_t steps) {
      for (uint32_t i = lane_number(); i < steps; i += kLanes) first_[i] = make_uint4(0, 0, 0, 0);
      end_ = first_ + uniform(steps);
      __syncwarp();
    }
    // Numbers of the lane above. The first lane gets those of the last lane, from the oldest entry.
    L3_INLINE Entry above(Lanes a, Lanes b, Lanes c, Lanes d) const {
      uint4 words = make_uint4(__shfl_up_sync(kAllLanes, a.v, 1), __shfl_up_sync(kAllLanes, b.v, 1),
                               __shfl_up_sync(kAllLanes, c.v, 1), __shfl_up_sync(kAllLanes, d.v, 1));
      if (lane_number() == 0) words = *at_;
      return {words};
    }
    // Replaces the oldest entry.
    L3_INLINE void store(uint32_t lane, Lanes a, Lanes b, Lanes c, Lanes d) {
      __syncwarp();  // the first lane has read it
      if (lane_number() == lane) *at_ = make_uint4(a.v, b.v, c.v, d.v);
      ++at_;
      if (at_ == end_) at_ = first_;
      __syncwarp();
    }

   private:
    uint4* first_;
    uint4* at_;
    uint4* end_;
  };

  // In shared memory: a byte for each block and channel, but the class of channel 3 is in free bits of the others. The
  // first two bytes of all blocks come first, then the third ones.
  class Classes {
   public:
    L3_INLINE static constexpr uint32_t bytes_of_block(uint32_t channels) { return channels < 3 ? channels : 3; }
    L3_INLINE Classes(uint8_t* of, uint32_t channels, const TileShape& shape)
        : of_(of), third_(of + 2 * block_count(shape.width, shape.height)), channels_(channels) {}
    L3_INLINE void store(uint32_t first, uint32_t blocks, Lanes classes) {
      const uint32_t block = first + lane_number(), all = channels_ < 4 ? classes.v : packed(classes.v);
      if (block < blocks) {
        if (channels_ == 1) {
          of_[block] = static_cast<uint8_t>(all);
        } else {
          reinterpret_cast<uint16_t*>(of_)[block] = static_cast<uint16_t>(all);
        }
        if (channels_ > 2) third_[block] = static_cast<uint8_t>(all >> 16);
      }
      __syncwarp();
    }
    L3_INLINE uint32_t operator[](uint32_t block) const {
      if (channels_ == 1) return of_[block];
      const uint32_t two = reinterpret_cast<const uint16_t*>(of_)[block];
      if (channels_ == 2) return two;
      const uint32_t all = two | uint32_t{third_[block]} << 16;
      return channels_ == 3 ? all : unpacked(all);
    }
    L3_INLINE Lanes of(Lanes blocks, Mask lanes) const { return {lanes ? (*this)[blocks.v] : 0}; }

   private:
    // Classes have five bits, and the lowest byte has the mark of still blocks too.
    static constexpr uint32_t kOfThree = 0x1F1F1F | kStillBlock;
    L3_INLINE static uint32_t packed(uint32_t classes) {
      const uint32_t fourth = classes >> 24;
      return (classes & kOfThree) | (fourth & 7) << 21 | (fourth >> 3) << 13;
    }
    L3_INLINE static uint32_t unpacked(uint32_t all) {
      return (all & kOfThree) | ((all >> 21 & 7) | (all >> 10 & 0x18)) << 24;
    }

    uint8_t *of_, *third_;
    uint32_t channels_;
  };
  static_assert(kMaxClasses == 32 && kStillBlock == 0x80);

  // A lane keeps the classes of its block, and loads the weights when it uses them.
  template <uint32_t kChannels>
  class Weights {
   public:
    L3_INLINE explicit Weights(const Tables& tables) : tables_(tables) {}
    L3_INLINE void enter(Mask, Lanes block, const Classes& classes) { classes_ = classes[block.v]; }
    L3_INLINE Lanes start() const { return {1u << kWeightShift >> 1}; }
    L3_INLINE SignedFour word(uint32_t channel, uint32_t i) const {
      constexpr uint32_t kClassBytes = sizeof(CudaTables::Memory::weights[0][0][0]);
      const uint32_t at = dot_unsigned(classes_, kClassBytes << (8 * channel), tables_.memory);
      return {part_of(load_shared_four<0>(at + (channel * 2 + i / 4) * kMaxClasses * kClassBytes), i % 4)};
    }
    // Call this first: it loads the channel's activity weights.
    L3_INLINE Lanes activity_start(uint32_t channel) {
      activity_ = load_shared_four_here(tables_.memory + static_cast<uint32_t>(offsetof(CudaTables::Memory, activity)) +
                                        channel * 16);
      return {activity_.w};
    }
    L3_INLINE SignedFour activity(uint32_t, uint32_t word) const { return {part_of(activity_, word)}; }

   private:
    L3_INLINE static uint32_t part_of(uint4 v, uint32_t i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }

    const Tables& tables_;
    uint4 activity_{};
    uint32_t classes_ = 0;
  };

 private:
  // 1, or -1 where the prediction leans upwards.
  L3_INLINE static uint32_t sign_of(Lanes up) { return up.v | 1; }

  // What the distance is if no sample is at least p and no error has a sign: 2 * 15 - 63, minus what `at_least` has
  // then. The byte above a sample is a guard: it stays if the sample is at least p, and else becomes one less. The
  // guard is chosen so that this number has it in its lowest byte. So both need one register.
  static constexpr uint32_t kGuard = 0x9F;
  static constexpr uint32_t kFromMiddle = 0u - 33 - (kGuard - 1) * (0x40 + 0x20);
  static_assert((kFromMiddle & 0xFF) == kGuard);
  static constexpr float kLarge = 8388608.0f;  // kActivityStart is 8 more
};

static_assert(DenseMethodWarp<CudaWordWarp>);

}  // namespace l3
