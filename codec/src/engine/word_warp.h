// A warp of the dense method on a processor: 32 lanes of 32 bits, divided into parts. A part has as many lanes as fit
// a native vector of kBytes. The decoder processes one part at a time, so that its working set fits the registers.
//
// As in vector_warp.h, everything here works on any processor. targets/word_warp_*.h replace what SSE, AVX2, AVX-512
// and NEON do faster. kernels/ implements the same functions with CUDA's registers, where a warp has a single part.
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
  using Floats = typename VectorTypes<kBytes>::F32;
  using Reader = PayloadReader;
  using Tables = DenseTables;
  static constexpr uint32_t kPartLanes = kBytes / 4;
  static constexpr uint32_t kParts = kLanes / kPartLanes;
  // With two parts, choosing those that have work takes longer than it saves.
  static constexpr bool kChoosesParts = kParts > 2;

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

  // ---- between lanes and memory

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

  // Transpose eight by eight numbers.
  L3_INLINE static void transpose(const uint16_t* from, size_t from_row, uint16_t* to, size_t to_row) {
    using Row = typename VectorTypes<16>::U16;
    Row r[8], s[8];
    for (size_t i = 0; i < 8; ++i) std::memcpy(&r[i], from + i * from_row, 16);
    const auto exchange = [](const Row* a, Row* b) __attribute__((always_inline)) {
      for (int i = 0; i < 4; ++i) {
        b[2 * i] = __builtin_shufflevector(a[i], a[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
        b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
      }
    };
    exchange(r, s);
    exchange(s, r);
    exchange(r, s);
    for (size_t i = 0; i < 8; ++i) std::memcpy(to + i * to_row, &s[i], 16);
  }
  L3_INLINE static void transpose(const uint32_t* from, size_t from_row, uint32_t* to, size_t to_row) {
    for (uint32_t i = 0; i < 8; ++i) {
      for (uint32_t k = 0; k < 8; ++k) to[k * to_row + i] = from[i * from_row + k];
    }
  }
  // Transposes 16 by kLanes bytes, of which the first `lanes` of each row count.
  L3_INLINE static void turn_bytes(const uint8_t* from, uint32_t lanes, uint8_t* to, size_t to_row) {
    typedef uint8_t Row __attribute__((vector_size(16)));
    for (uint32_t lane = 0; lane < lanes; lane += 16) {
      Row r[16], s[16];
      for (size_t i = 0; i < 16; ++i) std::memcpy(&r[i], from + i * kLanes + lane, 16);
      const auto exchange = [](const Row* a, Row* b) __attribute__((always_inline)) {
        for (int i = 0; i < 8; ++i) {
          b[2 * i] = __builtin_shufflevector(a[i], a[i + 8], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
          b[2 * i + 1] =
              __builtin_shufflevector(a[i], a[i + 8], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
        }
      };
      exchange(r, s);
      exchange(s, r);
      exchange(r, s);
      exchange(s, r);
      for (size_t i = 0; i < 16; ++i) std::memcpy(to + (lane + i) * to_row, &r[i], 16);
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
};

}  // namespace l3
