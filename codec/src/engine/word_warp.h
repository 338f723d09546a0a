// A warp of the dense method on a processor: 32 lanes of 32 bits, divided into parts. A part has as many lanes as fit
// a native vector of kBytes. The decoder processes one part at a time, so that its working set fits the registers.
//
// As in vector_warp.h, everything here works on any processor. word_warp_avx2.h and word_warp_avx512.h replace what
// AVX2 and AVX-512 can do faster. kernels/ implements the same functions with CUDA's registers, where a warp has a
// single part.
#pragma once

#include <cstring>
#include <utility>

#include "container/block_reader.h"
#include "engine/short_vectors.h"
#include "engine/warp_concepts.h"
#include "models/dense_tables.h"

namespace l3 {

// For each set of four lanes, how a processor that shuffles 16 bytes at once puts the next 16-bit words into the lower
// halves of these lanes, and how many these are.
struct ExpandFour {
  alignas(16) uint8_t order[16][16];
  uint8_t count[16];
  constexpr ExpandFour() : order(), count() {
    for (uint32_t set = 0; set < 16; ++set) {
      for (uint32_t lane = 0; lane < 4; ++lane) {
        const bool takes = (set >> lane & 1) != 0;
        for (uint32_t byte = 0; byte < 4; ++byte) {
          order[set][4 * lane + byte] = static_cast<uint8_t>(takes && byte < 2 ? 2u * count[set] + byte : 0x80u);
        }
        count[set] = static_cast<uint8_t>(count[set] + takes);
      }
    }
  }
};
inline constexpr ExpandFour kExpandFour;

// `Self` is the derived warp, whose replacements of functions are used here.
template <class Self, size_t kBytes>
struct WordWarp {
  using Lanes = WordLanes<kBytes>;
  using Mask = Lanes;  // all bits of a lane, or none
  using Vector = typename Lanes::Vector;
  using Signed = typename VectorTypes<kBytes>::I32;
  using Shorts = typename VectorTypes<kBytes>::I16;
  using Floats = typename VectorTypes<kBytes>::F32;
  using Reader = PayloadReader;
  using Tables = DenseTables;
  static constexpr uint32_t kPartLanes = kBytes / 4;
  static constexpr uint32_t kParts = kLanes / kPartLanes;

  // ---- numbers

  L3_INLINE static Lanes splat(uint32_t value) { return {Vector{} + value}; }
  template <uint32_t kValue>
  L3_INLINE static Lanes splat(Constant<kValue> value) {
    return {Lanes::of(value)};
  }
  L3_INLINE static Lanes numbers(uint32_t part) {
    Vector r{};
    for (uint32_t i = 0; i < kPartLanes; ++i) r[i] = part * kPartLanes + i;
    return {r};
  }
  L3_INLINE static Lanes load(const uint32_t* p) {
    Lanes r;
    std::memcpy(&r.v, p, kBytes);
    return r;
  }
  L3_INLINE static void store(uint32_t* p, Lanes a) { std::memcpy(p, &a.v, kBytes); }

  L3_INLINE static Lanes shift_right_signed(Lanes a, int count) { return {(Vector)((Signed)a.v >> count)}; }
  // Clamps signed numbers to kMin to kMax.
  template <int32_t kMin, int32_t kMax>
  L3_INLINE static Lanes clamp(Lanes a) {
    Signed v = (Signed)a.v;
    const Signed below = v < kMin;
    v = (v & ~below) | (kMin & below);
    const Signed above = v > kMax;
    return {(Vector)((v & ~above) | (kMax & above))};
  }
  // Marks a number that a compiler might otherwise compute repeatedly to save a register.
  L3_INLINE static uint32_t uniform(uint32_t number) { return number; }

  // The level of an activity (section 13.4): four levels per octave, from the exponent and top mantissa bits of a
  // float.
  L3_INLINE static Lanes level(Lanes a) {
    return {((Vector) __builtin_convertvector((Signed)a.v, Floats) >> 21) - Lanes::of(constant<130 << 2>)};
  }

  // ---- masks

  L3_INLINE static Mask less(Lanes a, uint32_t b) { return {(Vector)(a.v < b)}; }       // b is not 0
  L3_INLINE static Mask less_small(Lanes a, Lanes b) { return {(Vector)(a.v < b.v)}; }  // of numbers below 2^31
  L3_INLINE static Mask below_floor(Lanes state) { return {(Vector)(state.v < kStateFloor)}; }
  L3_INLINE static Mask at_least(Lanes a, uint32_t b) { return {(Vector)(a.v >= b)}; }
  L3_INLINE static Mask equal(Lanes a, uint32_t b) { return {(Vector)(a.v == b)}; }
  L3_INLINE static Mask both(Mask a, Mask b) { return a & b; }
  L3_INLINE static Mask either(Mask a, Mask b) { return a | b; }
  L3_INLINE static Mask and_not(Mask a, Mask b) { return a & ~b; }
  L3_INLINE static Lanes select(Mask mask, Lanes a, Lanes b) { return (a & mask) | (b & ~mask); }
  // Packs a mask into one bit per lane of the part.
  L3_INLINE static uint32_t bits(Mask mask) {
    uint32_t r = 0;
    for (uint32_t i = 0; i < kPartLanes; ++i) r |= (mask.v[i] & 1) << i;
    return r;
  }
  // Converts a mask to what Weights::enter() takes.
  template <class M>
  L3_INLINE static uint32_t lane_bits(M mask) {
    return Self::bits(mask);
  }
  static constexpr uint32_t kAllBits = kPartLanes == 32 ? UINT32_MAX : (1u << kPartLanes % 32) - 1;

  // ---- parts of a lane

  template <uint32_t kByte>
  L3_INLINE static Lanes byte_of(Lanes word) {
    return word >> static_cast<int>(8 * kByte) & constant<0xFF>;
  }
  L3_INLINE static Lanes top_byte(Lanes word) { return word >> 24; }

  // Combine halves of two words.
  L3_INLINE static Lanes lower_halves(Lanes a, Lanes b) { return (a & constant<0xFFFF>) | b << 16; }
  L3_INLINE static Lanes upper_halves(Lanes a, Lanes b) { return a >> 16 | (b & constant<0xFFFF0000>); }

  // ---- pairs: two 16-bit numbers to a lane

  // Add the sum of the two products to `sum`.
  L3_INLINE static Lanes dot_pairs(Lanes a, Lanes b, Lanes sum) { return add_products(a.v, b.v, sum); }
  L3_INLINE static Lanes magnitude_pairs(Lanes a) { return {magnitudes(a.v)}; }

  // ---- between lanes and memory

  // Moves each lane's value to the next higher lane. The first lane gets the last lane of `before`.
  L3_INLINE static Lanes shift_up(Lanes a, Lanes before) {
    return shift_up_by<1>(a, before, std::make_integer_sequence<int, static_cast<int>(kPartLanes)>{});
  }

  // The lanes' values, for work that is done lane by lane.
  L3_INLINE static Vector each(Lanes a) { return a.v; }
  // Looks up buckets in tables of kBuckets buckets each. table_of(i) is the table of lane i.
  template <uint32_t kBuckets, class TableOf>
  L3_INLINE static void look_up_in(const TableOf& table_of, const Bucket* buckets, Lanes bucket, Lanes& own,
                                   Lanes& other) {
    for (uint32_t i = 0; i < kPartLanes; ++i) {
      const Bucket& b = buckets[table_of(i) * kBuckets + bucket.v[i]];
      own.v[i] = b.own;
      other.v[i] = b.other;
    }
  }
  template <class Tables>
  L3_INLINE static void look_up_class(const Tables& tables, uint32_t channel, Lanes before, Lanes bucket, Lanes& own,
                                      Lanes& other) {
    for (uint32_t i = 0; i < kPartLanes; ++i) {
      const uint32_t table = tables.class_table_of[channel][before.v[i]];
      const Bucket& b = tables.class_buckets[table * kClassBuckets + bucket.v[i]];
      own.v[i] = b.own;
      other.v[i] = b.other;
    }
  }
  template <class Tables>
  L3_INLINE static Lanes row(const Tables& tables, uint32_t channel, Lanes zone, Lanes pattern) {
    Lanes r;
    for (uint32_t i = 0; i < kPartLanes; ++i) {
      r.v[i] = uint32_t{tables.zone_row[channel][zone.v[i]]} + tables.pattern_row[channel][pattern.v[i]];
    }
    return r;
  }

  // Loads the states at the beginning of a payload. Lanes beyond `count` get the final state.
  L3_INLINE static Lanes load_states(const uint8_t* bytes, uint32_t count, uint32_t part) {
    Lanes r;
    for (uint32_t i = 0; i < kPartLanes; ++i) {
      const uint32_t lane = part * kPartLanes + i;
      r.v[i] = lane < count ? load_u32(bytes + 4 * lane) : kStateFloor;
    }
    return r;
  }

  // The lanes of the mask take the next u16 of the payload, in order of lanes, as the lower half of their state. `at`
  // is in bytes.
  L3_INLINE static void refill(Lanes& state, Mask mask, const uint8_t* bytes, uint32_t& at) {
    for (uint32_t i = 0; i < kPartLanes; ++i) {
      const uint32_t word = state.v[i] << 16 | load_u16(bytes + at);
      state.v[i] = mask.v[i] != 0 ? word : state.v[i];
      at += mask.v[i] & 2;
    }
  }

  // ---- pixels, a word for each

  // Transposes eight by eight words.
  L3_INLINE static void transpose(const uint32_t* from, size_t from_row, uint32_t* to, size_t to_row) {
    for (uint32_t i = 0; i < 8; ++i) {
      for (uint32_t k = 0; k < 8; ++k) to[k * to_row + i] = from[i * from_row + k];
    }
  }
  // Stores the first kChannels bytes of each word.
  template <uint32_t kChannels>
  L3_INLINE static void store_pixels(uint8_t* to, const uint32_t* pixels, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i, to += kChannels) {
      for (uint32_t c = 0; c < kChannels; ++c) to[c] = static_cast<uint8_t>(pixels[i] >> (8 * c));
    }
  }

  // ---- what a tile keeps in memory

  // The class of each block in each channel, a byte each.
  class Classes {
   public:
    L3_INLINE void store(uint32_t first, uint32_t blocks, Lanes classes) {
      for (uint32_t i = 0; i < kPartLanes; ++i) {
        if (first + i < blocks) of_[first + i] = classes.v[i];
      }
    }
    L3_INLINE uint32_t operator[](uint32_t block) const { return of_[block]; }
    // The classes of the lanes' blocks, for the lanes in the bit mask `lanes`; 0 in the others.
    L3_INLINE Lanes of(Lanes blocks, uint32_t lanes) const {
      Lanes classes = splat(0);
      for (; lanes != 0; lanes &= lanes - 1) {
        const uint32_t i = static_cast<uint32_t>(__builtin_ctz(lanes));
        classes.v[i] = of_[blocks.v[i]];
      }
      return classes;
    }

   private:
    uint32_t of_[kMaxTileEdge / kBlockEdge * (kMaxTileEdge / kBlockEdge)];
  };

 private:
  L3_INLINE static Lanes add_products(Vector a, Vector b, Lanes sum) {
    return {sum.v + (Vector)ShortVectors<kBytes>::multiply_pairs((Shorts)a, (Signed)b)};
  }
  L3_INLINE static Vector magnitudes(Vector a) {
    const Shorts negative = (Shorts)a >> 15;
    return (Vector)(((Shorts)a ^ negative) - negative);
  }
  template <int kBy, int... kIndex>
  L3_INLINE static Lanes shift_up_by(Lanes a, Lanes before, std::integer_sequence<int, kIndex...>) {
    return {__builtin_shufflevector(before.v, a.v, (static_cast<int>(kPartLanes) - kBy + kIndex)...)};
  }
};

}  // namespace l3
