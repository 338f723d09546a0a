// A warp of the fast method on a processor. A lane variable is 32 numbers, stored in native vectors of kBytes each.
//
// Everything here uses the compiler's vector extension, so it works on any processor. VectorWarp<16> is the portable
// target (SSE2, NEON, ...). The AVX2 and AVX-512 targets derive from it and replace the functions that they can do
// faster. The decoder requires what FastMethodWarp lists (warp_concepts.h); vector_encode_warp.h adds what the encoder
// needs. kernels/ implements what the decoder requires with CUDA's registers.
#pragma once

#include <cstring>
#include <utility>

#include "container/block_reader.h"
#include "engine/vectors.h"

namespace l3 {

template <size_t kBytes>
struct VectorWarp {
  using Lanes = l3::Lanes<kBytes>;
  using Words = l3::Words<kBytes>;
  using Vector = typename Lanes::Vector;
  using Signed = typename Lanes::Signed;
  using Reader = PayloadReader;
  using Widths = BlockWidths;
  static constexpr int kPerVector = Lanes::kPerVector;
  static constexpr int kVectors = Lanes::kVectors;
  using Pairs = typename VectorTypes<kBytes>::U32;

  // The row above the current band: one lane variable per strip and channel.
  struct Line {
    Lanes lanes[kMaxTileEdge / kLanes][kMaxChannels];
    L3_INLINE Lanes load(uint32_t strip, uint32_t channel) const { return lanes[strip][channel]; }
    L3_INLINE void store(uint32_t strip, uint32_t channel, const Lanes& value) { lanes[strip][channel] = value; }
  };

  // ---- arithmetic

  L3_INLINE static Lanes splat(uint32_t value) {
    Lanes r;
    for (int i = 0; i < kVectors; ++i) r.v[i] = Vector{} + static_cast<uint16_t>(value);
    return r;
  }

  // (a + b + 1) / 2 without wrapping.
  L3_INLINE static Lanes average(Lanes a, const Lanes& b) {
    for (int i = 0; i < kVectors; ++i) a.v[i] = (a.v[i] | b.v[i]) - ((a.v[i] ^ b.v[i]) >> 1);
    return a;
  }

  L3_INLINE static Lanes shift_left(Lanes a, int count) {
    for (int i = 0; i < kVectors; ++i) a.v[i] <<= count;
    return a;
  }

  // Arithmetic shift: copies the sign bit.
  L3_INLINE static Lanes shift_right_signed(Lanes a, int count) {
    for (int i = 0; i < kVectors; ++i) a.v[i] = (Vector)((Signed)a.v[i] >> count);
    return a;
  }

  // All bits set in the first `count` lanes, none in the others.
  L3_INLINE static Lanes first_lanes(uint32_t count) {
    Lanes r;
    for (int i = 0; i < kVectors; ++i) {
      r.v[i] = (Vector)(lane_numbers(std::make_integer_sequence<int, kPerVector>{}, i * kPerVector) <
                        static_cast<uint16_t>(count));
    }
    return r;
  }

  L3_INLINE static uint32_t to_scalar(const Lanes& a) { return a.v[0][0]; }

  // ---- between lanes

  // Moves each lane's value to the next higher lane. Lane 0 gets lane 31 of `before`.
  L3_INLINE static Lanes shift_up(const Lanes& a, const Lanes& before) {
    return shift_up_with(a, before, std::make_integer_sequence<int, kPerVector>{});
  }

  // Moves each lane's value to the next lower lane. Lane 31 keeps its value.
  L3_INLINE static Lanes shift_down(const Lanes& a) {
    return shift_down_with(a, std::make_integer_sequence<int, kPerVector>{});
  }

  // Broadcasts lane 31, or lane 0, to all lanes.
  L3_INLINE static Lanes last(const Lanes& a) { return splat(a.v[kVectors - 1][kPerVector - 1]); }
  L3_INLINE static Lanes first(const Lanes& a) { return splat(a.v[0][0]); }

  // `a` in the given lane, `b` in the others.
  L3_INLINE static Lanes choose_lane(uint32_t lane, const Lanes& a, const Lanes& b) {
    Lanes r;
    for (int i = 0; i < kVectors; ++i) {
      const Vector numbers = lane_numbers(std::make_integer_sequence<int, kPerVector>{}, i * kPerVector);
      const Vector mask = (Vector)(numbers == static_cast<uint16_t>(lane));
      r.v[i] = (a.v[i] & mask) | (b.v[i] & ~mask);
    }
    return r;
  }

  // Prefix sum: lane i gets the sum of lanes 0 to i.
  L3_INLINE static Lanes scan_add(Lanes a) {
    Vector carry{};
    for (int i = 0; i < kVectors; ++i) {
      scan_steps<1>(a.v[i]);
      a.v[i] += carry;
      carry = Vector{} + a.v[i][kPerVector - 1];
    }
    return a;
  }

  // ---- codes

  // The residuals of one row of a block: the code of column i, minus half its range, goes to lane i.
  template <class Sample>
  L3_INLINE static Lanes residuals(const uint8_t* codes, const Widths& widths, uint32_t row) {
    uint64_t values[kRowGroups];
    uint64_t halves[kRowGroups];
    const uint32_t at = widths.row_start[row];
    for (uint32_t k = 0; k < kRowGroups; ++k) {
      const uint32_t width = (widths.width[row] >> (8 * k)) & 0xFF;
      const uint32_t start = at + ((widths.start[row] >> (8 * k)) & 0xFF);
      values[k] = split_codes<Sample>(codes + start / 2, 4 * (start & 1), width);
      halves[k] = ((uint64_t{1} << width) >> 1) * 0x0001000100010001u;
    }
    Lanes r, half;
    load_groups(values, r);
    load_groups(halves, half);
    return r - half;
  }

  // Splits a group into its four codes of 16 bits each. Reads up to nine bytes.
  template <class Sample>
  L3_INLINE static uint64_t split_codes(const uint8_t* p, uint32_t shift, uint32_t width) {
    uint64_t window = load_u64(p) >> shift;
    if constexpr (sizeof(Sample) == 2) window |= load_u64(p + 1) >> shift << 8;  // up to 68 bits are needed
    const uint64_t two = (uint64_t{1} << (2 * width)) - 1;
    const uint64_t pairs = (window & two) | ((window >> (2 * width)) & two) << 32;
    const uint64_t one = ((uint64_t{1} << width) - 1) * 0x0000000100000001u;
    return (pairs & one) | ((pairs >> width) & one) << 16;
  }

  // Reads `count` fields of `bits` bits each, `step` bits apart, the first one at bit `at` of `bytes`. Loads the four
  // bytes that end where the field ends, so nothing after the field is read. Up to three bytes before `bytes` may be
  // read, which is safe since a payload never begins at the start of a file.
  L3_INLINE static Lanes bit_fields(const uint8_t* bytes, uint64_t at, uint32_t step, uint32_t bits, uint32_t count) {
    uint16_t values[kLanes] = {};
    const uint32_t mask = (1u << bits) - 1;
    for (uint32_t i = 0; i < count; ++i) {
      const uint64_t bit = at + uint64_t{i} * step;
      const uint64_t end = (bit + bits + 7) / 8;
      values[i] = static_cast<uint16_t>(load_u32(bytes + end - 4) >> (32 + bit - 8 * end) & mask);
    }
    Lanes r;
    std::memcpy(r.v, values, sizeof(values));
    return r;
  }

  // ---- pixels

  // Writes 32 pixels of kChannels interleaved samples.
  template <class Sample, uint32_t kChannels>
  L3_INLINE static void store_pixels(uint8_t* out, const Lanes* channels) {
    if constexpr (sizeof(Sample) == 1 && kChannels == 3 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) {
      // Stores two pixels (six bytes) at a time. The first store of a group writes eight bytes; the second one
      // overwrites the last two.
      uint64_t even[kRowGroups], odd[kRowGroups];  // pixels 0 and 2, 1 and 3 of each group
      for (int i = 0; i < kVectors; ++i) {
        const Pairs low = (Pairs)(channels[0].v[i] | channels[1].v[i] << 8);
        const Pairs high = (Pairs)channels[2].v[i];
        const Pairs even_pixels = (low & 0xFFFF) | high << 16;
        const Pairs odd_pixels = low >> 16 | (high & 0xFFFF0000);
        std::memcpy(even + i * kPerVector / 4, &even_pixels, kBytes);
        std::memcpy(odd + i * kPerVector / 4, &odd_pixels, kBytes);
      }
      for (uint32_t k = 0; k < kRowGroups; ++k) {
        const uint64_t first = (even[k] & 0xFFFFFFFFu) | odd[k] << 32 >> 8;
        const uint64_t second = even[k] >> 32 | odd[k] >> 32 << 24;
        std::memcpy(out + 12 * k, &first, 8);
        std::memcpy(out + 12 * k + 6, &second, 6);
      }
    } else {
      uint16_t values[kChannels][kLanes];
      for (uint32_t c = 0; c < kChannels; ++c) std::memcpy(values[c], channels[c].v, sizeof(values[c]));
      Sample pixels[kLanes * kChannels];
      for (uint32_t i = 0; i < kLanes; ++i) {
        for (uint32_t c = 0; c < kChannels; ++c) pixels[i * kChannels + c] = static_cast<Sample>(values[c][i]);
      }
      std::memcpy(out, pixels, sizeof(pixels));
    }
  }

  // Writes pixels `from` to `to` - 1 of the 32.
  template <class Sample, uint32_t kChannels>
  L3_INLINE static void store_some_pixels(uint8_t* out, const Lanes* channels, uint32_t from, uint32_t to) {
    uint8_t pixels[kLanes * kChannels * sizeof(Sample)];
    store_pixels<Sample, kChannels>(pixels, channels);
    constexpr uint32_t kPixel = kChannels * sizeof(Sample);
    std::memcpy(out, pixels + from * kPixel, (to - from) * kPixel);
  }

  // Writes the colours of the indices in lanes `from` to `to` - 1. Each entry of `colours` has four bytes, of which
  // the first `colour_bytes` are written.
  L3_INLINE static void store_colours(uint8_t* out, const Lanes& indices, uint32_t from, uint32_t to,
                                      const uint8_t* colours, uint32_t colour_bytes) {
    uint16_t values[kLanes];
    std::memcpy(values, indices.v, sizeof(values));
    for (uint32_t i = from; i < to; ++i, out += colour_bytes) std::memcpy(out, colours + 4 * values[i], colour_bytes);
  }

  // Reads 32 pixels of kChannels interleaved samples.
  template <class Sample, uint32_t kChannels>
  L3_INLINE static void load_pixels(const uint8_t* in, Lanes* channels) {
    Sample pixels[kLanes * kChannels];
    std::memcpy(pixels, in, sizeof(pixels));
    uint16_t values[kChannels][kLanes];
    for (uint32_t i = 0; i < kLanes; ++i) {
      for (uint32_t c = 0; c < kChannels; ++c) values[c][i] = pixels[i * kChannels + c];
    }
    for (uint32_t c = 0; c < kChannels; ++c) std::memcpy(channels[c].v, values[c], sizeof(values[c]));
  }

  // Four lanes per number, 16 bits each, the lowest lane in the lowest bits.
  L3_INLINE static void store_groups(const Lanes& a, uint64_t* groups) {
    if constexpr (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) {
      std::memcpy(groups, a.v, 64);
    } else {
      uint16_t values[kLanes];
      std::memcpy(values, a.v, sizeof(values));
      for (uint32_t k = 0; k < kRowGroups; ++k) {
        groups[k] = 0;
        for (uint32_t i = 4; i-- > 0;) groups[k] = groups[k] << 16 | values[4 * k + i];
      }
    }
  }
  L3_INLINE static void load_groups(const uint64_t* groups, Lanes& a) {
    if constexpr (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) {
      std::memcpy(a.v, groups, 64);
    } else {
      uint16_t values[kLanes];
      for (uint32_t i = 0; i < kLanes; ++i) values[i] = static_cast<uint16_t>(groups[i / 4] >> (16 * (i % 4)));
      std::memcpy(a.v, values, sizeof(values));
    }
  }

  // ---- words, for the check

  L3_INLINE static Words word_lane_numbers() {
    uint32_t numbers[kLanes];
    for (uint32_t i = 0; i < kLanes; ++i) numbers[i] = i + 1;
    Words r;
    std::memcpy(r.v, numbers, sizeof(numbers));
    return r;
  }
  L3_INLINE static Words load_words(const uint8_t* p) {
    Words r;
    if constexpr (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) {
      std::memcpy(r.v, p, sizeof(r.v));
    } else {
      uint32_t words[kLanes];
      for (uint32_t i = 0; i < kLanes; ++i) words[i] = load_u32(p + 4 * i);
      std::memcpy(r.v, words, sizeof(words));
    }
    return r;
  }
  L3_INLINE static Words load_words_part(const uint8_t* p, uint32_t count) {
    uint8_t bytes[4 * kLanes] = {};
    std::memcpy(bytes, p, 4 * count);
    return load_words(bytes);
  }
  L3_INLINE static Words first_words(uint32_t count, const Words& a, const Words& b) {
    uint32_t x[kLanes], y[kLanes];
    std::memcpy(x, a.v, sizeof(x));
    std::memcpy(y, b.v, sizeof(y));
    for (uint32_t i = 0; i < kLanes; ++i) x[i] = i < count ? x[i] : y[i];
    Words r;
    std::memcpy(r.v, x, sizeof(x));
    return r;
  }
  L3_INLINE static Words rotate_left_15(Words a) {
    for (int i = 0; i < Words::kVectors; ++i) a.v[i] = a.v[i] << 15 | a.v[i] >> 17;
    return a;
  }
  L3_INLINE static uint32_t sum_words(const Words& a) {
    uint32_t words[kLanes];
    std::memcpy(words, a.v, sizeof(words));
    uint32_t sum = 0;
    for (uint32_t i = 0; i < kLanes; ++i) sum += words[i];
    return sum;
  }

 private:
  template <int... kIndex>
  L3_INLINE static Lanes shift_up_with(const Lanes& a, const Lanes& before, std::integer_sequence<int, kIndex...>) {
    Lanes r;
    for (int i = 0; i < kVectors; ++i) {
      const Vector left = i == 0 ? before.v[kVectors - 1] : a.v[i - 1];
      r.v[i] = __builtin_shufflevector(left, a.v[i], (kPerVector - 1 + kIndex)...);
    }
    return r;
  }
  template <int... kIndex>
  L3_INLINE static Lanes shift_down_with(const Lanes& a, std::integer_sequence<int, kIndex...>) {
    Lanes r;
    for (int i = 0; i + 1 < kVectors; ++i) r.v[i] = __builtin_shufflevector(a.v[i], a.v[i + 1], (1 + kIndex)...);
    r.v[kVectors - 1] = __builtin_shufflevector(a.v[kVectors - 1], a.v[kVectors - 1],
                                                (kIndex + 1 < kPerVector ? kIndex + 1 : kIndex)...);
    return r;
  }
  template <int... kIndex>
  L3_INLINE static Vector lane_numbers(std::integer_sequence<int, kIndex...>, int from) {
    return Vector{static_cast<uint16_t>(kIndex)...} + static_cast<uint16_t>(from);
  }
  template <int kStep>
  L3_INLINE static void scan_steps(Vector& v) {
    if constexpr (kStep < kPerVector) {
      v += shifted_in_zeros<kStep>(v, std::make_integer_sequence<int, kPerVector>{});
      scan_steps<2 * kStep>(v);
    }
  }
  template <int kStep, int... kIndex>
  L3_INLINE static Vector shifted_in_zeros(const Vector& v, std::integer_sequence<int, kIndex...>) {
    return __builtin_shufflevector(Vector{}, v, (kPerVector - kStep + kIndex)...);
  }
};

}  // namespace l3
