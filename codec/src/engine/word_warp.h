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

// `Self` is the derived warp, whose replacements of functions are used here.
template <class Self, size_t kBytes>
struct WordWarp {
  using Lanes = WordLanes<kBytes>;
  using Mask = Lanes;  // all bits of a lane, or none
  using Vector = typename Lanes::Vector;
  using Signed = typename VectorTypes<kBytes>::I32;
  using Shorts = typename VectorTypes<kBytes>::I16;
  using Bytes = typename VectorTypes<kBytes>::U8;
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
  // Clamps an error to the range of errors. The result is in the lowest byte.
  L3_INLINE static Lanes to_error(Lanes a) { return Self::template clamp<kMinError, kMaxError>(a) & constant<0xFF>; }
  // Splits a sum of weights times values into the prediction `p` and a mask `up` of the lanes that lean upwards: those
  // where the fraction that was cut off is at least one half.
  L3_INLINE static void split(Lanes sum, Lanes& p, Lanes& up) {
    const Lanes within = Self::template clamp<0, (256 << kWeightShift) - 1>(sum);
    p = within >> kWeightShift;
    up = shift_right_signed(within << (32 - kWeightShift), 31);
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

  // ---- four bytes to a lane

  // Signed bytes, widened to 16 bits: bytes 0 and 2 in `even`, bytes 1 and 3 in `odd`.
  struct SignedFour {
    Lanes even, odd;
  };
  L3_INLINE static SignedFour signed_four(Lanes a) {
    return {{(Vector)((Shorts)(a.v << 8) >> 8)}, {(Vector)((Shorts)a.v >> 8)}};
  }
  // Four weights in the form that this warp multiplies by: kWeightWords words, made from the four bytes.
  // start_of_weight() is the value that a sum of products must start from.
  using Weight = SignedFour;
  static constexpr uint32_t kWeightWords = 2;
  struct WeightWords {
    uint32_t of[2];
  };
  L3_INLINE static WeightWords words_of_weight(uint32_t weight, bool) {
    const auto halves = [](uint32_t low, uint32_t high) {
      return (static_cast<uint32_t>(static_cast<int8_t>(low)) & 0xFFFF) |
             static_cast<uint32_t>(static_cast<int8_t>(high)) << 16;
    };
    return {{halves(weight, weight >> 16), halves(weight >> 8, weight >> 24)}};
  }
  L3_INLINE static uint32_t start_of_weight(uint32_t, bool) { return 0; }
  // Activity weights are never negative.
  using ActivityWeight = Weight;
  L3_INLINE static ActivityWeight activity_weight(uint32_t weight) { return signed_four(splat(weight)); }
  L3_INLINE static uint32_t start_of_activity(uint32_t) { return 0; }
  // Add the sum of four products to `sum`. The operands are unsigned bytes, signed bytes, or magnitudes of signed
  // bytes.
  L3_INLINE static Lanes dot(Lanes a, const Weight& b, Lanes sum) {
    return add_products((a & constant<0x00FF00FF>).v, b.even.v,
                        add_products((a >> 8 & constant<0x00FF00FF>).v, b.odd.v, sum));
  }
  L3_INLINE static Lanes dot(const SignedFour& a, const Weight& b, Lanes sum) {
    return add_products(a.even.v, b.even.v, add_products(a.odd.v, b.odd.v, sum));
  }
  L3_INLINE static Lanes dot_magnitudes(const SignedFour& a, const Weight& b, Lanes sum) {
    return add_products(magnitudes(a.even.v), b.even.v, add_products(magnitudes(a.odd.v), b.odd.v, sum));
  }
  L3_INLINE static Lanes distances(Lanes a, Lanes b) {
    const Bytes x = (Bytes)a.v, y = (Bytes)b.v;
    const Bytes above = (Bytes)(x > y);
    return {(Vector)(((x - y) & above) | ((y - x) & ~above))};
  }
  template <uint32_t kByte>
  L3_INLINE static Lanes byte_of(Lanes word) {
    return word >> static_cast<int>(8 * kByte) & constant<0xFF>;
  }
  L3_INLINE static Lanes top_byte(Lanes word) { return word >> 24; }

  // Transposes bytes: word c of the result has byte c of a, b, c and d, in this order. Only kCount words are made.
  template <uint32_t kCount>
  L3_INLINE static void exchange(Lanes a, Lanes b, Lanes c, Lanes d, Lanes* r) {
    const Lanes low_ab = Self::even_bytes(a, b), low_cd = Self::even_bytes(c, d);
    r[0] = Self::lower_halves(low_ab, low_cd);
    if constexpr (kCount > 2) r[2] = Self::upper_halves(low_ab, low_cd);
    if constexpr (kCount > 1) {
      const Lanes high_ab = Self::odd_bytes(a, b), high_cd = Self::odd_bytes(c, d);
      r[1] = Self::lower_halves(high_ab, high_cd);
      if constexpr (kCount > 3) r[3] = Self::upper_halves(high_ab, high_cd);
    }
  }
  template <uint32_t kCount>
  L3_INLINE static void exchange(Lanes a, Lanes b, Lanes* r) {
    const Lanes low = Self::even_bytes(a, b);
    r[0] = low & constant<0xFFFF>;
    if constexpr (kCount > 2) r[2] = low >> 16;
    if constexpr (kCount > 1) {
      const Lanes high = Self::odd_bytes(a, b);
      r[1] = high & constant<0xFFFF>;
      if constexpr (kCount > 3) r[3] = high >> 16;
    }
  }
  template <uint32_t kCount>
  L3_INLINE static void exchange(Lanes a, Lanes b, Lanes c, Lanes* r) {
    exchange<kCount>(a, b, c, splat(0), r);
  }
  // Interleave bytes 0 and 2, or bytes 1 and 3, of two words; combine halves of two words.
  L3_INLINE static Lanes even_bytes(Lanes a, Lanes b) {
    return (a & constant<0x00FF00FF>) | (b & constant<0x00FF00FF>) << 8;
  }
  L3_INLINE static Lanes odd_bytes(Lanes a, Lanes b) {
    return (a >> 8 & constant<0x00FF00FF>) | (b & constant<0xFF00FF00>);
  }
  L3_INLINE static Lanes lower_halves(Lanes a, Lanes b) { return (a & constant<0xFFFF>) | b << 16; }
  L3_INLINE static Lanes upper_halves(Lanes a, Lanes b) { return a >> 16 | (b & constant<0xFFFF0000>); }

  // Puts a byte into a word whose byte there is zero.
  template <uint32_t kPlace>
  L3_INLINE static Lanes with_byte(Lanes word, Lanes byte) {
    return word | byte << static_cast<int>(8 * kPlace);
  }
  template <uint32_t kPlace>
  L3_INLINE static Lanes without_byte(Lanes word) {
    return word & constant<~(0xFFu << (8 * kPlace))>;
  }

  // Fills in the errors of the one or two channels before.
  L3_INLINE static Lanes with_errors(Lanes far, Lanes before) { return far | before << 16; }
  template <uint32_t>
  L3_INLINE static Lanes with_errors(Lanes far, Lanes before, Lanes before_that) {
    return far | before << 16 | before_that << 24;
  }

  // The index into table_of: the row, which zone and sign pattern select, and the level.
  L3_INLINE static Lanes context(const DenseTables& tables, uint32_t channel, Lanes activity, Lanes near,
                                 Lanes near_errors, Lanes p, Lanes up) {
    const Lanes level = Self::level(activity);
    if (!tables.grouped[channel]) return level;
    const Lanes zone =
        multiply_pairs(((p ^ up) & constant<0xFF>) | constant<3 << 16>, constant<20641 << 16 | 3613>) >> 16;
    return level + (Self::row(tables, channel, zone, Self::sign_pattern(near, near_errors, p, up)) << 6);
  }
  // The sign pattern: bits 0 and 1 say whether W and N are at least p, bits 2 to 5 whether the errors at W, N, NW and
  // NE are negative. All bits are inverted if the prediction leans upwards.
  L3_INLINE static Lanes sign_pattern(Lanes near, Lanes near_errors, Lanes p, Lanes up) {
    return join_signs({(Vector)((Bytes)near.v >= (Bytes)(p * constant<0x0101>).v)}, near_errors, up);
  }
  // The same, with the comparisons given in the top bits of `at_least`.
  L3_INLINE static Lanes join_signs(Lanes at_least, Lanes near_errors, Lanes up) {
    const Lanes signs = ((near_errors ^ up) & constant<0x80808080>) | ((at_least ^ up) & constant<0x00008080>) >> 2;
    return (signs * constant<0x00204081>) >> 26;
  }

  // ---- between lanes and memory

  // Moves each lane's value to the next higher lane. The first lane gets the last lane of `before`.
  L3_INLINE static Lanes shift_up(Lanes a, Lanes before) {
    return shift_up_with(a, before, std::make_integer_sequence<int, static_cast<int>(kPartLanes)>{});
  }

  // Look up the buckets in the tables of the lanes' contexts, or in the class tables.
  L3_INLINE static void look_up(const DenseTables& tables, uint32_t channel, Lanes context, Lanes bucket, Lanes& own,
                                Lanes& other) {
    const auto contexts = Self::each(context);
    const auto table_of = [&](uint32_t i) { return tables.table_of[channel][contexts[i]]; };
    Self::template look_up_in<kTableBuckets>(table_of, tables.buckets, bucket, own, other);
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

  // Keeps what lane 0 will need of the last lane in later steps.
  class Delay {
   public:
    L3_INLINE void clear(uint32_t steps) {
      steps_ = steps;
      std::memset(words_, 0, 16 * size_t{steps});
    }
    using Entry = const uint32_t*;
    L3_INLINE Entry load() const { return words_[at_]; }
    // `lane` is the lane's number within its part.
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

  // The weights for the block that each lane is in.
  template <uint32_t kChannels>
  class Weights {
   public:
    using Weight = typename Self::Weight;
    using Words = typename Self::WeightWords;

    L3_INLINE explicit Weights(const DenseTables& tables) {
      for (uint32_t c = 0; c < kChannels; ++c) {
        for (uint32_t k = 0; k < tables.classes[c]; ++k) {
          OfClass& to = classes_[c][k];
          to.start = 1u << kWeightShift >> 1;
          for (uint32_t i = 0; i < tap_words(c); ++i) {
            const bool of_errors = i == kErrorWord || i == kErrorWord + 1;
            to.words[i] = Self::words_of_weight(tables.weights[c][k][i], of_errors);
            to.start += Self::start_of_weight(tables.weights[c][k][i], of_errors);
          }
        }
        for (uint32_t i = 0; i < kActivityWords; ++i) activity_[c][i] = Self::activity_weight(tables.activity[c][i]);
        activity_start_[c] = kActivityFloor + Self::start_of_activity(tables.activity[c][2]);
      }
    }

    // Loads the weights of the lanes in `entering`, a bit mask, which enter a new block.
    L3_INLINE void enter(uint32_t part, uint32_t entering, Lanes block, const Classes& classes) {
      for (; entering != 0; entering &= entering - 1) {
        const uint32_t i = static_cast<uint32_t>(__builtin_ctz(entering));
        const uint32_t of_block = classes[block.v[i]];
        const uint32_t lane = part * kPartLanes + i;
        for (uint32_t c = 0; c < kChannels; ++c) {
          const OfClass& from = classes_[c][of_block >> (8 * c) & 0xFF];
          starts_[c][lane] = from.start;
          for (uint32_t word = 0; word < tap_words(c); ++word) {
            for (uint32_t j = 0; j < Self::kWeightWords; ++j) lanes_[c][word][j][lane] = from.words[word].of[j];
          }
        }
      }
    }
    L3_INLINE Lanes start(uint32_t channel, uint32_t part) const { return load(starts_[channel] + part * kPartLanes); }
    L3_INLINE Weight word(uint32_t channel, uint32_t i, uint32_t part) const {
      Lanes words[Self::kWeightWords];
      for (uint32_t j = 0; j < Self::kWeightWords; ++j) words[j] = load(lanes_[channel][i][j] + part * kPartLanes);
      if constexpr (Self::kWeightWords == 1)
        return {words[0]};
      else
        return {words[0], words[1]};
    }

    L3_INLINE Lanes activity_start(uint32_t channel) const { return splat(activity_start_[channel]); }
    L3_INLINE const typename Self::ActivityWeight& activity(uint32_t channel, uint32_t word) const {
      return activity_[channel][word];
    }

   private:
    struct OfClass {
      uint32_t start;
      Words words[kMaxTapWords];
    };
    OfClass classes_[kChannels][kMaxClasses];
    typename Self::ActivityWeight activity_[kChannels][kActivityWords];
    uint32_t activity_start_[kChannels];
    alignas(64) uint32_t starts_[kChannels][kLanes] = {};
    alignas(64) uint32_t lanes_[kChannels][kMaxTapWords][Self::kWeightWords][kLanes] = {};
  };

 private:
  template <uint32_t kPairs>
  L3_INLINE static Lanes multiply_pairs(Lanes a, Constant<kPairs> pairs) {
    return {(Vector)ShortVectors<kBytes>::multiply_pairs((Shorts)a.v, (Signed)Lanes::of(pairs))};
  }
  L3_INLINE static Lanes add_products(Vector a, Vector b, Lanes sum) {
    return {sum.v + (Vector)ShortVectors<kBytes>::multiply_pairs((Shorts)a, (Signed)b)};
  }
  L3_INLINE static Vector magnitudes(Vector a) {
    const Shorts negative = (Shorts)a >> 15;
    return (Vector)(((Shorts)a ^ negative) - negative);
  }
  template <int... kIndex>
  L3_INLINE static Lanes shift_up_with(Lanes a, Lanes before, std::integer_sequence<int, kIndex...>) {
    return {__builtin_shufflevector(before.v, a.v, (static_cast<int>(kPartLanes) - 1 + kIndex)...)};
  }
};

// The warp for any processor: eight parts of four lanes.
struct PortableWordWarp : WordWarp<PortableWordWarp, 16> {};

static_assert(DenseMethodWarp<PortableWordWarp>);

}  // namespace l3
