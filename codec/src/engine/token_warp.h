// What decoding tiles of token models adds to a DenseWarp on processors: records of values and errors, 16 bits for each
// lane; records of bytes, for values below 256; and sums of 32 bits.
//
// Everything here works on any processor. targets/token_warp_*.h replace what SSE, AVX2 and NEON do faster.
#pragma once

#include "engine/dense_warp.h"
#include "models/token.h"

namespace l3 {

// A pixel of several channels is one word if its values are bytes.
template <uint32_t kChannels, class Value>
constexpr bool kPixelsAreWords = kChannels > 1 && sizeof(Value) == 1;

// `Self` is the derived warp, whose replacements of functions are used here. `Base` is its DenseWarp.
template <class Self, class Base>
struct TokenWarp : Base {
  using Base::kParts, Base::kPartLanes, Base::kRecords, Base::kPartsOfRecords, Base::all_records;
  using typename Base::Lanes, typename Base::Mask, typename Base::Records;
  using Short = ShortVectors<Base::kBytes>;
  using Shorts = typename Short::Shorts;
  using Numbers = decltype(Records::v);
  using Sums = typename Short::InterleavedSums;

  // See FirstRecords.
  static constexpr bool kChoosesParts = false;

  // ---- records

  L3_INLINE static Records both(Records a, Records b) { return {a.v & b.v}; }
  L3_INLINE static Records either(Records a, Records b) { return {a.v | b.v}; }
  L3_INLINE static Records exclusive(Records a, Records b) { return {a.v ^ b.v}; }
  L3_INLINE static Records without(Records a, Records b) { return {a.v & ~b.v}; }
  L3_INLINE static Records sum(Records a, Records b) { return {a.v + b.v}; }
  L3_INLINE static Records difference(Records a, Records b) { return {a.v - b.v}; }
  L3_INLINE static Records times(Records a, uint16_t factor) { return {a.v * factor}; }
  using Base::both, Base::either, Base::select;
  // Adds the bias of values, or takes it away.
  L3_INLINE static Records flipped(Records a) { return {a.v ^ static_cast<uint16_t>(kValueBias)}; }
  // Masks: all bits of a record, or none.
  L3_INLINE static Records same(Records a, Records b) { return {(Numbers)(a.v == b.v)}; }
  L3_INLINE static Records not_less(Records a, Records b) { return {(Numbers)((Shorts)a.v >= (Shorts)b.v)}; }
  L3_INLINE static Records signs(Records a) { return {(Numbers)((Shorts)a.v >> 15)}; }
  L3_INLINE static Records select(Records mask, Records a, Records b) { return {(a.v & mask.v) | (b.v & ~mask.v)}; }
  L3_INLINE static bool any(Records mask) { return Short::any((Shorts)mask.v); }
  // Packs a mask into one bit for each record.
  L3_INLINE static uint32_t record_bits(Records mask) {
    uint32_t r = 0;
    for (uint32_t i = 0; i < kRecords; ++i) r |= (mask.v[i] & 1u) << i;
    return r;
  }
  L3_INLINE static Records at_most_255(Records a) {
    const Numbers above = (Numbers)(a.v > 255);
    return {((a.v & ~above) | above) & 255};
  }

  // A number in all records of a vector.
  template <class R>
  L3_INLINE static R filled(uint32_t value) {
    if constexpr (std::is_same_v<R, Records>) {
      return Base::all_records(value);
    } else {
      return {ByteNumbers{} + static_cast<uint8_t>(value)};
    }
  }

  // The records of two vectors in turn, in two vectors: 4 from each to 8 lanes of the first one, 4 to the second one.
  L3_INLINE static void interleave(Records a, Records b, Records* two) {
    const auto turns = Short::interleave((Shorts)a.v, (Shorts)b.v);
    two[0] = {(Numbers)turns.low};
    two[1] = {(Numbers)turns.high};
  }

  // How far biased values are apart, at most 32767.
  L3_INLINE static Records value_distances(Records a, Records b) {
    const Shorts x = (Shorts)a.v, y = (Shorts)b.v;
    const Numbers distance = (Numbers)Short::larger(x, y) - (Numbers)Short::lesser(x, y);
    const Numbers over = (Numbers)((Shorts)distance >> 15);
    return {(distance & ~over) | (over & 32767)};
  }
  L3_INLINE static Records error_magnitudes(Records a) { return {(Numbers)Short::magnitude((Shorts)a.v)}; }
  // value - p, at least -32767 and at most 32767.
  L3_INLINE static Records token_errors(Records value, Records p) {
    const Numbers a = flipped(value).v, b = flipped(p).v, wrapped = a - b;
    const Numbers overflows = (Numbers)((Shorts)((a ^ b) & (a ^ wrapped)) >> 15);
    const Numbers end = (Numbers)((Shorts)a >> 15) ^ 0x7FFF;
    const Shorts error = (Shorts)((end & overflows) | (wrapped & ~overflows));
    return {(Numbers)Short::larger(error, Shorts{} - int16_t{kMaxTokenError})};
  }

  // ---- records of bytes

  static constexpr uint32_t kByteRecords = Base::kBytes < kLanes ? Base::kBytes : kLanes;  // in a vector
  static constexpr uint32_t kByteParts = kLanes / kByteRecords, kPartsOfBytes = kParts / kByteParts;
  using ByteNumbers = typename VectorTypes<kByteRecords>::U8;
  struct ByteRecords {
    ByteNumbers v;
  };
  using Base::load_records, Base::store_records, Base::repeat_two, Base::shift_up_one, Base::shift_up_two;
  L3_INLINE static ByteRecords load_records(const uint8_t* from) {
    ByteRecords r;
    std::memcpy(&r.v, from, kByteRecords);
    return r;
  }
  L3_INLINE static void store_records(uint8_t* to, ByteRecords a) { std::memcpy(to, &a.v, kByteRecords); }
  L3_INLINE static ByteRecords repeat_two(const uint8_t* two) {
    typename VectorTypes<kByteRecords>::U16 v{};
    uint16_t both;
    std::memcpy(&both, two, 2);
    return {(ByteNumbers)(v + both)};
  }
  L3_INLINE static ByteRecords shift_up_one(ByteRecords a, ByteRecords before) {
    return shift_up_by<1>(a, before, std::make_integer_sequence<int, static_cast<int>(kByteRecords)>{});
  }
  L3_INLINE static ByteRecords shift_up_two(ByteRecords a, ByteRecords before) {
    return shift_up_by<2>(a, before, std::make_integer_sequence<int, static_cast<int>(kByteRecords)>{});
  }
  L3_INLINE static ByteRecords both(ByteRecords a, ByteRecords b) { return {a.v & b.v}; }
  L3_INLINE static ByteRecords either(ByteRecords a, ByteRecords b) { return {a.v | b.v}; }
  L3_INLINE static ByteRecords without(ByteRecords a, ByteRecords b) { return {a.v & ~b.v}; }
  L3_INLINE static ByteRecords sum(ByteRecords a, ByteRecords b) { return {a.v + b.v}; }
  // Masks, as those of records.
  L3_INLINE static ByteRecords same(ByteRecords a, ByteRecords b) { return {(ByteNumbers)(a.v == b.v)}; }
  L3_INLINE static ByteRecords not_less(ByteRecords a, ByteRecords b) { return {(ByteNumbers)(a.v >= b.v)}; }
  L3_INLINE static ByteRecords select(ByteRecords mask, ByteRecords a, ByteRecords b) {
    return {(a.v & mask.v) | (b.v & ~mask.v)};
  }
  L3_INLINE static bool any(ByteRecords mask) {
    const auto words = (typename VectorTypes<kByteRecords>::U64)mask.v;
    uint64_t all = 0;
    for (uint32_t i = 0; i < kByteRecords / 8; ++i) all |= words[i];
    return all != 0;
  }
  L3_INLINE static uint32_t record_bits(ByteRecords mask) {
    uint32_t r = 0;
    for (uint32_t i = 0; i < kByteRecords; ++i) r |= (mask.v[i] & 1u) << i;
    return r;
  }
  // The lower bytes of records.
  L3_INLINE static ByteRecords packed(const Records* a) {
    ByteRecords r;
    for (uint32_t i = 0; i < kByteRecords; ++i) r.v[i] = static_cast<uint8_t>(a[i / kRecords].v[i % kRecords]);
    return r;
  }
  // Masks of bytes as masks of records.
  L3_INLINE static Records wide_mask(const ByteRecords* masks, uint32_t part) {
    Records r;
    for (uint32_t i = 0; i < kRecords; ++i) {
      const uint32_t lane = part * kRecords + i;
      r.v[i] = static_cast<uint16_t>(masks[lane / kByteRecords].v[lane % kByteRecords] * 0x101);
    }
    return r;
  }
  L3_INLINE static Records wide_mask(const Records* masks, uint32_t part) { return masks[part]; }
  // Four channels of pixels from a word for each pixel, the first one in the lowest byte, and the other way round.
  L3_INLINE static void channels_of(const Lanes* words, ByteRecords* channels, uint32_t stride) {
    for (uint32_t i = 0; i < kLanes; ++i) {
      for (uint32_t c = 0; c < 4; ++c) {
        channels[c * stride + i / kByteRecords].v[i % kByteRecords] =
            static_cast<uint8_t>(words[i / kPartLanes].v[i % kPartLanes] >> (8 * c));
      }
    }
  }
  L3_INLINE static void words_of(const ByteRecords* channels, uint32_t stride, uint32_t count, Lanes* words) {
    for (uint32_t i = 0; i < kLanes; ++i) {
      uint32_t word = 0;
      for (uint32_t c = 0; c < count; ++c) {
        word |= uint32_t{channels[c * stride + i / kByteRecords].v[i % kByteRecords]} << (8 * c);
      }
      words[i / kPartLanes].v[i % kPartLanes] = word;
    }
  }

  // ---- sums: of the products of two records each and their weights, in an order of the processor's

  // Weights of two records, the first one in the lower half.
  L3_INLINE static uint32_t pair(uint32_t weights) {
    return static_cast<uint32_t>(
        Short::pair_of(static_cast<int16_t>(weights & 0xFFFF), static_cast<int16_t>(weights >> 16)));
  }
  // Where a lane's weights are among those that add_pairs() loads for all lanes.
  L3_INLINE static uint32_t place_in_sums(uint32_t lane) {
    const uint32_t of_part = lane % kRecords;
    return lane - of_part + of_part % 8 / 4 * kPartLanes + of_part / 8 * 4 + of_part % 4;
  }
  L3_INLINE static Sums all_sums(uint32_t value) {
    const typename Short::Sums all = Short::all_pairs(static_cast<int32_t>(value));
    return {all, all};
  }
  L3_INLINE static void add_pairs(Records a, Records b, const uint32_t* weights, Sums& sums) {
    typename Short::Sums low, high;
    std::memcpy(&low, weights, sizeof(low));
    std::memcpy(&high, weights + kPartLanes, sizeof(high));
    const auto turns = Short::interleave((Shorts)a.v, (Shorts)b.v);
    sums.low += Short::multiply_pairs(turns.low, low);
    sums.high += Short::multiply_pairs(turns.high, high);
  }
  L3_INLINE static void add_pairs(Records a, Records b, uint32_t weights, Sums& sums) {
    sums.add(Short::interleave((Shorts)a.v, (Shorts)b.v), Short::all_pairs(static_cast<int32_t>(weights)));
  }
  // The lower halves of sums, which need not fit 16 bits.
  L3_INLINE static Records lower_halves_of(const Sums& sums) {
    return {(Numbers)Short::narrow({sums.low << 16 >> 16, sums.high << 16 >> 16})};
  }
  // The predictions, clamped to 0 to `max_value`, and a mask of the lanes in which they lean upwards.
  L3_INLINE static void split(Sums sums, uint32_t max_value, Records& p, Records& up) {
    const auto most = Short::all_pairs(static_cast<int32_t>((max_value << kWeightShift) + (1u << kWeightShift) - 1));
    const auto within = [&](const auto& v) __attribute__((always_inline)) {
      return Self::lesser_words(Self::larger_words(v, typename Short::Sums{}), most);
    };
    const Sums in{within(sums.low), within(sums.high)};
    p = Self::lower_halves_of({in.low >> kWeightShift, in.high >> kWeightShift});
    up = {(Numbers)Short::narrow({in.low << (32 - kWeightShift) >> 31, in.high << (32 - kWeightShift) >> 31})};
  }
  template <class V>
  L3_INLINE static V larger_words(const V& a, const V& b) {
    return a > b ? a : b;
  }
  template <class V>
  L3_INLINE static V lesser_words(const V& a, const V& b) {
    return a < b ? a : b;
  }
  // The levels of activities.
  L3_INLINE static Records levels(const Sums& activities) {
    const auto most = Short::all_pairs(static_cast<int32_t>(kMaxActivity));
    return {(Numbers)Short::levels_of(
        Sums{Self::lesser_words(activities.low, most), Self::lesser_words(activities.high, most)})};
  }
  // The number of bits that numbers take, at most 15: the exponents of 2 a + 1.
  L3_INLINE static Records bit_lengths(Records a) {
    using Floats = typename Short::Floats;
    const Numbers over = (Numbers)((Shorts)a.v >> 15);
    const auto turns = Short::interleave((Shorts)((a.v & ~over) | (over & 32767)), Shorts{});
    const auto two = Short::all_pairs(Short::pair_of(2, 0));
    const auto exponents = [&](const Shorts& half) __attribute__((always_inline)) {
      const auto odd = Short::multiply_pairs(half, two) + 1;
      return ((typename Short::Sums) __builtin_convertvector(odd, Floats) >> 23) - 127;
    };
    return {(Numbers)Short::narrow({exponents(turns.low), exponents(turns.high)})};
  }

  // ---- contexts and places

  L3_INLINE static Records look_up_16(const uint8_t* table, Records index) {
    Records r;
    for (uint32_t i = 0; i < kRecords; ++i) r.v[i] = table[index.v[i]];
    return r;
  }
  L3_INLINE static Records look_up_64(const uint8_t* table, Records index) { return Self::look_up_16(table, index); }
  L3_INLINE static Records context(Records level, Records row_of_zone, Records row_of_pattern) {
    return {level.v + (row_of_zone.v + row_of_pattern.v) * static_cast<uint16_t>(kTokenLevels)};
  }
  // As DenseWarp::store_places does, for contexts of a part of records.
  L3_INLINE static void store_places(Records contexts, const Lanes* states, uint32_t* places) {
    Lanes words[kPartsOfRecords];
    Self::widen(contexts, words);
    for (uint32_t i = 0; i < kPartsOfRecords; ++i) store_place(words[i], states[i], places + i * kPartLanes);
  }
  L3_INLINE static void store_places(ByteRecords contexts, const Lanes* states, uint32_t* places) {
    Lanes words[kPartsOfBytes];
    Self::widen(contexts, words);
    for (uint32_t i = 0; i < kPartsOfBytes; ++i) store_place(words[i], states[i], places + i * kPartLanes);
  }
  // The same for contexts that are pairs of a pattern and a number below 32.
  L3_INLINE static void store_places(Records patterns, Records numbers, const Lanes* states, uint32_t* places) {
    store_places(either(patterns << 5, numbers), states, places);
  }
  L3_INLINE static void store_places(ByteRecords patterns, ByteRecords numbers, const Lanes* states, uint32_t* places) {
    Lanes words[kPartsOfBytes];
    Self::widen(patterns, numbers, words);
    for (uint32_t i = 0; i < kPartsOfBytes; ++i) store_place(words[i], states[i], places + i * kPartLanes);
  }
  L3_INLINE static void store_place(Lanes context, Lanes state, uint32_t* to) {
    const Lanes bucket = (state & constant<kProbabilities - kProbabilities / kTokenBuckets>) << 10;
    Base::store(to, context | bucket);
  }

  // ---- between records and lanes

  L3_INLINE static void widen(Records a, Lanes* words) {
    for (uint32_t i = 0; i < kRecords; ++i) words[i / kPartLanes].v[i % kPartLanes] = a.v[i];
  }
  // The lower halves of lanes.
  L3_INLINE static Records narrow(const Lanes* words) {
    Records r;
    for (uint32_t i = 0; i < kRecords; ++i) r.v[i] = static_cast<uint16_t>(words[i / kPartLanes].v[i % kPartLanes]);
    return r;
  }
  L3_INLINE static Records mask_records(const Mask* masks) { return Self::narrow(masks); }
  L3_INLINE static void widen(ByteRecords a, Lanes* words) {
    for (uint32_t i = 0; i < kByteRecords; ++i) words[i / kPartLanes].v[i % kPartLanes] = a.v[i];
  }
  // 32 a + b
  L3_INLINE static void widen(ByteRecords a, ByteRecords b, Lanes* words) {
    for (uint32_t i = 0; i < kByteRecords; ++i) words[i / kPartLanes].v[i % kPartLanes] = a.v[i] << 5 | b.v[i];
  }
  // Lanes that are below 256.
  L3_INLINE static ByteRecords narrow_to_bytes(const Lanes* words) {
    ByteRecords r;
    for (uint32_t i = 0; i < kByteRecords; ++i) {
      r.v[i] = static_cast<uint8_t>(words[i / kPartLanes].v[i % kPartLanes]);
    }
    return r;
  }
  L3_INLINE static ByteRecords mask_bytes(const Mask* masks) { return Self::narrow_to_bytes(masks); }
  // The same for either kind of records.
  template <class R>
  L3_INLINE static R narrowed(const Lanes* words) {
    if constexpr (std::is_same_v<R, Records>) {
      return Self::narrow(words);
    } else {
      return Self::narrow_to_bytes(words);
    }
  }
  template <class R>
  L3_INLINE static R masks(const Mask* of) {
    if constexpr (std::is_same_v<R, Records>) {
      return Self::mask_records(of);
    } else {
      return Self::mask_bytes(of);
    }
  }
  L3_INLINE static Mask lane_mask(const ByteRecords* masks, uint32_t part) {
    Lanes mask;
    for (uint32_t i = 0; i < kPartLanes; ++i) {
      const uint32_t lane = part * kPartLanes + i;
      mask.v[i] = masks[lane / kByteRecords].v[lane % kByteRecords] != 0 ? UINT32_MAX : 0;
    }
    return mask;
  }
  // The mask of a part of lanes, among the masks of all records.
  L3_INLINE static Mask lane_mask(const Records* masks, uint32_t part) {
    Lanes words[kPartsOfRecords];
    Self::widen(masks[part / kPartsOfRecords], words);
    const Lanes mask = words[part % kPartsOfRecords];
    return mask | mask << 16;
  }

  L3_INLINE static Records load_bytes(const uint8_t* from) {
    typedef uint8_t Bytes __attribute__((vector_size(kRecords)));
    Bytes bytes;
    std::memcpy(&bytes, from, kRecords);
    return {__builtin_convertvector(bytes, Numbers)};
  }
  // Looks up bytes, which are less than 16.
  L3_INLINE static void look_up_bytes(const uint8_t* table, const uint8_t* bytes, uint32_t count, uint8_t* to) {
    for (uint32_t i = 0; i < count; ++i) to[i] = table[bytes[i]];
  }
  // Store the lower bytes of records, or the records.
  L3_INLINE static void store_samples(uint8_t* to, Records a) {
    typedef uint8_t Bytes __attribute__((vector_size(kRecords)));
    const Bytes bytes = __builtin_convertvector(a.v, Bytes);
    std::memcpy(to, &bytes, kRecords);
  }
  L3_INLINE static void store_samples(uint16_t* to, Records a) { Base::store_records(to, a); }

  // ---- lanes

  // Words at these places.
  L3_INLINE static Lanes gather(const uint32_t* words, const uint32_t* at) {
    Lanes r;
    for (uint32_t i = 0; i < kPartLanes; ++i) r.v[i] = words[at[i]];
    return r;
  }
  L3_INLINE static Lanes shifted_left(Lanes a, Lanes count) { return {a.v << count.v}; }
  L3_INLINE static Lanes shifted_right(Lanes a, Lanes count) { return {a.v >> count.v}; }

 private:
  template <int kBy, int... kIndex>
  L3_INLINE static ByteRecords shift_up_by(ByteRecords a, ByteRecords before, std::integer_sequence<int, kIndex...>) {
    return {__builtin_shufflevector(before.v, a.v, (static_cast<int>(kByteRecords) - kBy + kIndex)...)};
  }
};

// A warp for tiles whose lanes all fit the first kCount vectors of records. Loops over parts have as many turns as the
// warp has parts, so that compilers can unroll them.
template <class W, uint32_t kCount>
struct FirstRecords : W {
  static constexpr uint32_t kRecordParts = kCount, kParts = kCount * W::kPartsOfRecords,
                            kByteParts = (kCount * W::kRecords + W::kByteRecords - 1) / W::kByteRecords;
};

}  // namespace l3
