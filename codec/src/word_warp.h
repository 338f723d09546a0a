// A warp on a processor for the dense method: 32 lanes of 32 bits, in parts of as many lanes as a native vector of
// kBytes has. The engine goes through the parts one by one, so that what it has in hand fits the processor's registers.
//
// As in vector_warp.h everything here runs on any processor; what AVX2 and AVX-512 do better stands in
// word_warp_avx2.h and word_warp_avx512.h, and kernels/ has the same functions over CUDA's registers, where a warp is
// one part.
#pragma once

#include <cstring>
#include <utility>

#include "block_reader.h"
#include "dense_tables.h"
#include "short_vectors.h"

namespace l3 {

// A constant in all lanes. GCC 12 makes such a vector anew, in three instructions, wherever it has no register to keep
// it in; from words that it takes for variable it loads it in one.
template <uint32_t kValue>
struct ConstantWords {
  alignas(64) static inline uint32_t words[16] = {kValue, kValue, kValue, kValue, kValue, kValue, kValue, kValue,
                                                  kValue, kValue, kValue, kValue, kValue, kValue, kValue, kValue};
};

template <size_t kBytes>
struct WordLanes {
  using Vector = typename VectorTypes<kBytes>::U32;
  Vector v;

  template <uint32_t kValue>
  L3_INLINE static Vector of(Constant<kValue>) {
    Vector r;
    std::memcpy(&r, ConstantWords<kValue>::words, kBytes);
    return r;
  }
  template <uint32_t kValue>
  L3_INLINE friend WordLanes operator+(WordLanes a, Constant<kValue> b) {
    return {a.v + of(b)};
  }
  template <uint32_t kValue>
  L3_INLINE friend WordLanes operator*(WordLanes a, Constant<kValue> b) {
    return {a.v * of(b)};
  }
  template <uint32_t kValue>
  L3_INLINE friend WordLanes operator&(WordLanes a, Constant<kValue> b) {
    return {a.v & of(b)};
  }
  template <uint32_t kValue>
  L3_INLINE friend WordLanes operator^(WordLanes a, Constant<kValue> b) {
    return {a.v ^ of(b)};
  }

  L3_INLINE friend WordLanes operator+(WordLanes a, WordLanes b) { return {a.v + b.v}; }
  L3_INLINE friend WordLanes operator-(WordLanes a, WordLanes b) { return {a.v - b.v}; }
  L3_INLINE friend WordLanes operator*(WordLanes a, WordLanes b) { return {a.v * b.v}; }
  L3_INLINE friend WordLanes operator&(WordLanes a, WordLanes b) { return {a.v & b.v}; }
  L3_INLINE friend WordLanes operator|(WordLanes a, WordLanes b) { return {a.v | b.v}; }
  L3_INLINE friend WordLanes operator^(WordLanes a, WordLanes b) { return {a.v ^ b.v}; }
  L3_INLINE friend WordLanes operator+(WordLanes a, uint32_t b) { return {a.v + b}; }
  L3_INLINE friend WordLanes operator*(WordLanes a, uint32_t b) { return {a.v * b}; }
  L3_INLINE friend WordLanes operator~(WordLanes a) { return {~a.v}; }
  L3_INLINE friend WordLanes operator<<(WordLanes a, int count) { return {a.v << count}; }
  L3_INLINE friend WordLanes operator>>(WordLanes a, int count) { return {a.v >> count}; }
};

template <size_t kBytes>
struct WordWarp {
  using Lanes = WordLanes<kBytes>;
  using Mask = Lanes;  // all bits of a lane, or none
  using Vector = typename Lanes::Vector;
  using Signed = typename VectorTypes<kBytes>::I32;
  using Shorts = typename VectorTypes<kBytes>::I16;
  using Bytes = typename VectorTypes<kBytes>::U8;
  using SignedBytes = typename VectorTypes<kBytes>::I8;
  using Floats = typename VectorTypes<kBytes>::F32;
  using Reader = PayloadReader;
  using Tables = DenseTables;
  static constexpr bool kOwnTables = false;
  static constexpr uint32_t kPartLanes = kBytes / 4;
  static constexpr uint32_t kParts = kLanes / kPartLanes;

  // ---- numbers

  L3_INLINE static Lanes splat(uint32_t value) { return {Vector{} + value}; }
  template <uint32_t kValue>
  L3_INLINE static Lanes splat(Constant<kValue> value) {
    return {Lanes::of(value)};
  }
  L3_INLINE static Lanes numbers(uint32_t part) {
    Vector r;
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
  // As signed numbers: at least 0 and at most 255; at least -128 and at most 127.
  L3_INLINE static Lanes to_byte(Lanes a) { return clamp(a, 0, 255); }
  L3_INLINE static Lanes to_error(Lanes a) { return clamp(a, kLeastError, kMostError); }

  // A number that a compiler might compute again and again, where registers are few.
  L3_INLINE static uint32_t keep(uint32_t number) { return number; }

  // Four levels to an octave, 0 for 8: from exponent and top bits of a float.
  L3_INLINE static Lanes level(Lanes a) {
    return {((Vector) __builtin_convertvector((Signed)a.v, Floats) >> 21) - Lanes::of(constant<130 << 2>)};
  }

  // ---- masks

  L3_INLINE static Mask less(Lanes a, uint32_t b) { return {(Vector)(a.v < b)}; }       // b is not 0
  L3_INLINE static Mask less_small(Lanes a, Lanes b) { return {(Vector)(a.v < b.v)}; }  // of numbers below 2^31
  L3_INLINE static Mask below_floor(Lanes state) { return {(Vector)(state.v < kStateFloor)}; }
  L3_INLINE static Mask greater_signed(Lanes a, int32_t b) { return {(Vector)((Signed)a.v > b)}; }
  L3_INLINE static Mask equal(Lanes a, uint32_t b) { return {(Vector)(a.v == b)}; }
  L3_INLINE static Mask both(Mask a, Mask b) { return a & b; }
  L3_INLINE static Mask either(Mask a, Mask b) { return a | b; }
  L3_INLINE static Lanes select(Mask mask, Lanes a, Lanes b) { return (a & mask) | (b & ~mask); }
  L3_INLINE static Lanes all_bits(Mask mask) { return mask; }
  // A bit for each lane of the part.
  L3_INLINE static uint32_t bits(Mask mask) {
    uint32_t r = 0;
    for (uint32_t i = 0; i < kPartLanes; ++i) r |= (mask.v[i] & 1) << i;
    return r;
  }
  static constexpr uint32_t kAllBits = kPartLanes == 32 ? UINT32_MAX : (1u << kPartLanes % 32) - 1;

  // ---- four bytes to a lane

  // Signed bytes, as weights and errors are: bytes 0 and 2, and 1 and 3, in 16 bits each.
  struct SignedFour {
    Lanes even, odd;
  };
  L3_INLINE static SignedFour signed_four(Lanes a) {
    return {{(Vector)((Shorts)(a.v << 8) >> 8)}, {(Vector)((Shorts)a.v >> 8)}};
  }
  // The sum of four products added to `sum`: of unsigned bytes, of signed ones, and of their magnitudes.
  L3_INLINE static Lanes dot(Lanes a, const SignedFour& b, Lanes sum) {
    return add_products((a & constant<0x00FF00FF>).v, b.even.v,
                        add_products((a >> 8 & constant<0x00FF00FF>).v, b.odd.v, sum));
  }
  L3_INLINE static Lanes dot(const SignedFour& a, const SignedFour& b, Lanes sum) {
    return add_products(a.even.v, b.even.v, add_products(a.odd.v, b.odd.v, sum));
  }
  L3_INLINE static Lanes dot_magnitudes(const SignedFour& a, const SignedFour& b, Lanes sum) {
    return add_products(magnitudes(a.even.v), b.even.v, add_products(magnitudes(a.odd.v), b.odd.v, sum));
  }
  L3_INLINE static Lanes distances(Lanes a, Lanes b) {
    const Bytes x = (Bytes)a.v, y = (Bytes)b.v;
    const Bytes above = (Bytes)(x > y);
    return {(Vector)(((x - y) & above) | ((y - x) & ~above))};
  }
  // The top bit of each byte of `a` that is at least the one of `b`; the other bits are anything.
  L3_INLINE static Lanes at_least(Lanes a, Lanes b) { return {(Vector)((Bytes)a.v >= (Bytes)b.v)}; }
  L3_INLINE static Lanes spread(Lanes byte) { return byte * constant<0x01010101>; }

  // Word c of the result has byte c of a, b, c and d, in this order; of fewer words, zeros.
  template <uint32_t kCount>
  L3_INLINE static void exchange(Lanes a, Lanes b, Lanes c, Lanes d, Lanes* r) {
    const Lanes low_ab = (a & constant<0x00FF00FF>) | (b & constant<0x00FF00FF>) << 8;  // bytes 0 and 2
    const Lanes low_cd = (c & constant<0x00FF00FF>) | (d & constant<0x00FF00FF>) << 8;
    r[0] = lower_halves(low_ab, low_cd);
    if constexpr (kCount > 2) r[2] = upper_halves(low_ab, low_cd);
    if constexpr (kCount > 1) {
      const Lanes high_ab = (a >> 8 & constant<0x00FF00FF>) | (b & constant<0xFF00FF00>);
      const Lanes high_cd = (c >> 8 & constant<0x00FF00FF>) | (d & constant<0xFF00FF00>);
      r[1] = lower_halves(high_ab, high_cd);
      if constexpr (kCount > 3) r[3] = upper_halves(high_ab, high_cd);
    }
  }
  template <uint32_t kCount>
  L3_INLINE static void exchange(Lanes a, Lanes b, Lanes* r) {
    const Lanes low = (a & constant<0x00FF00FF>) | (b & constant<0x00FF00FF>) << 8;
    r[0] = low & constant<0xFFFF>;
    if constexpr (kCount > 2) r[2] = low >> 16;
    if constexpr (kCount > 1) {
      const Lanes high = (a >> 8 & constant<0x00FF00FF>) | (b & constant<0xFF00FF00>);
      r[1] = high & constant<0xFFFF>;
      if constexpr (kCount > 3) r[3] = high >> 16;
    }
  }

  template <uint32_t kCount>
  L3_INLINE static void exchange(Lanes a, Lanes b, Lanes c, Lanes* r) {
    exchange<kCount>(a, b, c, splat(0), r);
  }
  // Puts a byte, or its lowest one, where a word has a zero.
  template <uint32_t kPlace>
  L3_INLINE static Lanes with_byte(Lanes word, Lanes byte) {
    return word | byte << static_cast<int>(8 * kPlace);
  }
  template <uint32_t kPlace>
  L3_INLINE static Lanes without_byte(Lanes word) {
    return word & constant<~(0xFFu << (8 * kPlace))>;
  }

  // ---- between lanes and memory

  // Lane i gets lane i - 1; the first one gets the last of `before`.
  L3_INLINE static Lanes shift_up(Lanes a, Lanes before) {
    return shift_up_with(a, before, std::make_integer_sequence<int, static_cast<int>(kPartLanes)>{});
  }

  L3_INLINE static void gather_buckets(const Bucket* buckets, Lanes index, Lanes& own, Lanes& other) {
    for (uint32_t i = 0; i < kPartLanes; ++i) {
      own.v[i] = buckets[index.v[i]].own;
      other.v[i] = buckets[index.v[i]].other;
    }
  }
  L3_INLINE static Lanes gather(const uint8_t* p, Lanes index) {
    Lanes r;
    for (uint32_t i = 0; i < kPartLanes; ++i) r.v[i] = p[index.v[i]];
    return r;
  }
  // The row of a zone and a sign pattern.
  L3_INLINE static Lanes row(const DenseTables& tables, uint32_t channel, Lanes zone, Lanes pattern) {
    return gather(tables.zone_row[channel], zone) + gather(tables.pattern_row[channel], pattern);
  }

  // The states with which a payload begins; lanes that it has none for are at rest.
  L3_INLINE static Lanes load_states(const uint8_t* bytes, uint32_t count, uint32_t part) {
    Lanes r;
    for (uint32_t i = 0; i < kPartLanes; ++i) {
      const uint32_t lane = part * kPartLanes + i;
      r.v[i] = lane < count ? load_u32(bytes + 4 * lane) : kStateFloor;
    }
    return r;
  }

  // Lanes of the mask take the next u16 of a payload, in order, below what they hold. `at` counts bytes.
  L3_INLINE static void refill(Lanes& state, Mask mask, const uint8_t* bytes, uint32_t& at) {
    for (uint32_t i = 0; i < kPartLanes; ++i) {
      const uint32_t word = state.v[i] << 16 | load_u16(bytes + at);
      state.v[i] = mask.v[i] != 0 ? word : state.v[i];
      at += mask.v[i] & 2;
    }
  }

  // ---- pixels, a word for each

  // Eight by eight words, rows and columns exchanged.
  L3_INLINE static void transpose(const uint32_t* from, size_t from_row, uint32_t* to, size_t to_row) {
    for (uint32_t i = 0; i < 8; ++i) {
      for (uint32_t k = 0; k < 8; ++k) to[k * to_row + i] = from[i * from_row + k];
    }
  }
  // The first kChannels bytes of each word.
  template <uint32_t kChannels>
  L3_INLINE static void store_pixels(uint8_t* to, const uint32_t* pixels, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i, to += kChannels) {
      for (uint32_t c = 0; c < kChannels; ++c) to[c] = static_cast<uint8_t>(pixels[i] >> (8 * c));
    }
  }

  // ---- what a tile keeps in memory

  // What lane 0 will need of the last lane, in steps to come.
  class Delay {
   public:
    L3_INLINE void clear(uint32_t steps) {
      steps_ = steps;
      std::memset(words_, 0, 16 * size_t{steps});
    }
    using Entry = const uint32_t*;
    L3_INLINE Entry load() const { return words_[at_]; }
    // `lane` is counted within the part.
    L3_INLINE void store(uint32_t lane, Lanes a, Lanes b, Lanes c, Lanes d) {
      words_[at_][0] = a.v[lane];
      words_[at_][1] = b.v[lane];
      words_[at_][2] = c.v[lane];
      words_[at_][3] = d.v[lane];
      at_ = at_ + 1 == steps_ ? 0 : at_ + 1;
    }

   private:
    uint32_t steps_ = 1, at_ = 0;
    uint32_t words_[kMaxTileEdge][4];
  };

  // The class of each block in each channel, a byte each.
  class Classes {
   public:
    L3_INLINE void store(uint32_t first, uint32_t blocks, Lanes classes) {
      for (uint32_t i = 0; i < kPartLanes; ++i) {
        if (first + i < blocks) of_[first + i] = classes.v[i];
      }
    }
    L3_INLINE uint32_t operator[](uint32_t block) const { return of_[block]; }

   private:
    uint32_t of_[kMaxTileEdge / kBlockEdge * (kMaxTileEdge / kBlockEdge)];
  };

  // The weights of the block that each lane is in.
  template <uint32_t kChannels>
  class Weights {
   public:
    L3_INLINE explicit Weights(const DenseTables& tables) {
      for (uint32_t c = 0; c < kChannels; ++c) {
        for (uint32_t k = 0; k < tables.classes[c]; ++k) {
          for (uint32_t word = 0; word < tap_words(c); ++word) {
            const uint32_t w = tables.weights[c][k][word];
            split_[c][k][word][0] = halves(w, w >> 16);
            split_[c][k][word][1] = halves(w >> 8, w >> 24);
          }
        }
        for (uint32_t word = 0; word < kActivityWords; ++word) {
          activity_[c][word] = signed_four(splat(tables.activity[c][word]));
        }
      }
    }

    // These lanes of a part, a bit for each, enter a block.
    L3_INLINE void enter(uint32_t part, uint32_t entering, Lanes block, const Classes& classes) {
      for (; entering != 0; entering &= entering - 1) {
        const uint32_t i = static_cast<uint32_t>(__builtin_ctz(entering));
        const uint32_t of_block = classes[block.v[i]];
        const uint32_t lane = part * kPartLanes + i;
        for (uint32_t c = 0; c < kChannels; ++c) {
          const uint32_t(*from)[2] = split_[c][of_block >> (8 * c) & 0xFF];
          for (uint32_t word = 0; word < tap_words(c); ++word) {
            lanes_[c][word][0][lane] = from[word][0];
            lanes_[c][word][1][lane] = from[word][1];
          }
        }
      }
    }
    L3_INLINE Lanes start(uint32_t, uint32_t) const { return splat(constant<((1u << kWeightShift) >> 1)>); }
    L3_INLINE SignedFour word(uint32_t channel, uint32_t i, uint32_t part) const {
      return {load(lanes_[channel][i][0] + part * kPartLanes), load(lanes_[channel][i][1] + part * kPartLanes)};
    }

    L3_INLINE const SignedFour& activity(uint32_t channel, uint32_t word) const { return activity_[channel][word]; }

   private:
    // Two signed bytes in 16 bits each.
    L3_INLINE static uint32_t halves(uint32_t low, uint32_t high) {
      return (static_cast<uint32_t>(static_cast<int8_t>(low)) & 0xFFFF) |
             static_cast<uint32_t>(static_cast<int8_t>(high)) << 16;
    }

    uint32_t split_[kChannels][kMaxClasses][kMaxTapWords][2];
    SignedFour activity_[kChannels][kActivityWords];
    alignas(64) uint32_t lanes_[kChannels][kMaxTapWords][2][kLanes] = {};
  };

 private:
  L3_INLINE static Lanes add_products(Vector a, Vector b, Lanes sum) {
    return {sum.v + (Vector)ShortVectors<kBytes>::multiply_pairs((Shorts)a, (Signed)b)};
  }
  L3_INLINE static Vector magnitudes(Vector a) {
    const Shorts negative = (Shorts)a >> 15;
    return (Vector)(((Shorts)a ^ negative) - negative);
  }
  L3_INLINE static Lanes lower_halves(Lanes a, Lanes b) { return (a & constant<0xFFFF>) | b << 16; }
  L3_INLINE static Lanes upper_halves(Lanes a, Lanes b) { return a >> 16 | (b & constant<0xFFFF0000>); }
  L3_INLINE static Lanes clamp(Lanes a, int32_t least, int32_t most) {
    Signed v = (Signed)a.v;
    const Signed below = v < least;
    v = (v & ~below) | (least & below);
    const Signed above = v > most;
    return {(Vector)((v & ~above) | (most & above))};
  }
  template <int... kIndex>
  L3_INLINE static Lanes shift_up_with(Lanes a, Lanes before, std::integer_sequence<int, kIndex...>) {
    return {__builtin_shufflevector(before.v, a.v, (static_cast<int>(kPartLanes) - 1 + kIndex)...)};
  }
};

}  // namespace l3
