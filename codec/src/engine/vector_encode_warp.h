// What the encoder of the method fast needs beyond VectorWarp: the widths of groups, and their codes.
#pragma once

#include "engine/vector_warp.h"

namespace l3 {

// The number of significant bits of each byte.
template <size_t kBytes>
struct ByteLengths {
  using Bytes = typename VectorTypes<kBytes>::U8;
  using SignedBytes = typename VectorTypes<kBytes>::I8;

  L3_INLINE static Bytes of(const Bytes& v) {
    const SignedBytes top = (SignedBytes)v < 0;
    const SignedBytes rest = ((SignedBytes)v | top) & 0x7F;
    SignedBytes length = top;  // comparisons give -1
    constexpr int8_t kPowers[] = {1, 2, 4, 8, 16, 32, 64};
    for (const int8_t power : kPowers) length += rest >= power;
    return (Bytes)-length;
  }
};

template <size_t kBytes>
struct VectorEncodeWarp : VectorWarp<kBytes> {
  using Base = VectorWarp<kBytes>;
  using Base::kVectors, Base::load_groups, Base::splat, Base::store_groups;
  using typename Base::Lanes, typename Base::Vector, typename Base::Signed;
  using Bytes = typename VectorTypes<kBytes>::U8;
  using SignedBytes = typename VectorTypes<kBytes>::I8;
  using Pairs = typename VectorTypes<kBytes>::U32;
  using SignedPairs = typename VectorTypes<kBytes>::I32;
  using Quads = typename VectorTypes<kBytes>::U64;
  using Floats = typename VectorTypes<kBytes>::F32;

  // The widths of a block's 64 groups: eight bytes for each group k of a row, one byte per row.
  struct GroupWidths {
    Quads groups[64 / kBytes];
  };

  // The width that each group of four residuals needs. The residuals are in eight rows, modulo 2^bits. Each one is
  // mapped to a non-negative number with as many bits as its code (0, -1, 1, -2 ... to 0, 1, 2, 3 ...). The numbers of
  // a group are then combined with or.
  template <class Sample>
  L3_INLINE static GroupWidths group_widths(const Lanes* residuals, uint32_t bits) {
    GroupWidths widths;
    for (int i = 0; i < kVectors; ++i) {
      if constexpr (sizeof(Sample) == 1) {
        Pairs two[4];  // two rows each, in the lower and the upper byte of a lane
        for (int r = 0; r < 4; ++r) {
          Vector lower = residuals[2 * r].v[i];
          Vector upper = residuals[2 * r + 1].v[i];
          if (bits != 8) {
            lower <<= static_cast<int>(8 - bits);
            upper <<= static_cast<int>(8 - bits);
          }
          const Bytes both = (Bytes)((lower & 0xFF) | upper << 8);
          two[r] = (Pairs)((both + both) ^ (Bytes)((SignedBytes)both < 0));
        }
        Bytes any = (Bytes)either(either(two[0], two[1]), either(two[2], two[3]));
        if (bits != 8) {
          const Lanes own = splat(((1u << bits) - 1) * 0x0101);
          any = (Bytes)(((Vector)any >> static_cast<int>(8 - bits)) & own.v[i]);
        }
        widths.groups[i] = (Quads)ByteLengths<kBytes>::of(any);
      } else {
        Quads half[2];
        for (int q = 0; q < 2; ++q) {
          Pairs folded[4];
          for (int r = 0; r < 4; ++r) {
            const Vector top = residuals[4 * q + r].v[i] << static_cast<int>(16 - bits);
            folded[r] = (Pairs)((top + top) ^ (Vector)((Signed)top < 0));
          }
          const Vector any = (Vector)either(either(folded[0], folded[1]), either(folded[2], folded[3]));
          half[q] = (Quads)lane_lengths(any >> static_cast<int>(16 - bits));
          // Pack one byte per row instead of 16 bits.
          half[q] = (half[q] | half[q] >> 8) & 0x0000FFFF0000FFFFu;
          half[q] = (half[q] | half[q] >> 16) & 0xFFFFFFFFu;
        }
        widths.groups[i] = half[0] | half[1] << 32;
      }
    }
    return widths;
  }

  // greatest(): the greatest width. sum_raised(): the sum of the widths, each raised to at least `floor`.
  L3_INLINE static uint32_t greatest(const GroupWidths& widths) {
    uint8_t bytes[64];
    std::memcpy(bytes, widths.groups, sizeof(bytes));
    uint8_t maximum = 0;
    for (uint32_t i = 0; i < 64; ++i) maximum = bytes[i] > maximum ? bytes[i] : maximum;
    return maximum;
  }
  L3_INLINE static uint32_t sum_raised(const GroupWidths& widths, uint32_t floor) {
    const SignedBytes minimum = SignedBytes{} + static_cast<int8_t>(floor);
    Bytes sum{};
    for (int i = 0; i < kVectors; ++i) {
      const SignedBytes v = (SignedBytes)widths.groups[i];
      const SignedBytes above = v > minimum;
      sum += (Bytes)((v & above) | (minimum & ~above));
    }
    return sum_bytes(sum);
  }
  L3_INLINE static uint32_t sum(const GroupWidths& widths) {
    Bytes sum = (Bytes)widths.groups[0];
    for (int i = 1; i < kVectors; ++i) sum += (Bytes)widths.groups[i];
    return sum_bytes(sum);
  }

  // The widths of each row, a byte for each of its eight groups: `widths` transposed.
  L3_INLINE static void row_words(const GroupWidths& widths, uint64_t* rows) {
    std::memcpy(rows, widths.groups, 64);
    exchange<1>(rows, 0x00FF00FF00FF00FFu);
    exchange<2>(rows, 0x0000FFFF0000FFFFu);
    exchange<4>(rows, 0x00000000FFFFFFFFu);
  }

  // Joins the four codes of each of a row's eight groups to one number. Codes are zero in lanes that are not
  // `present`.
  L3_INLINE static void join_codes(const Lanes& residuals, const Lanes& present, uint64_t widths, uint64_t* codes) {
    uint64_t halves[kRowGroups], masks[kRowGroups];
    for (uint32_t k = 0; k < kRowGroups; ++k) {
      const uint64_t range = uint64_t{1} << (widths >> (8 * k) & 0xFF);
      halves[k] = (range >> 1) * 0x0001000100010001u;
      masks[k] = (range - 1) * 0x0001000100010001u;
    }
    Lanes half, mask;
    load_groups(halves, half);
    load_groups(masks, mask);
    store_groups((residuals + half) & mask & present, codes);
    for (uint32_t k = 0; k < kRowGroups; ++k) {
      const uint32_t width = widths >> (8 * k) & 0xFF;
      const uint64_t pairs = (codes[k] & 0x0000FFFF0000FFFFu) | (codes[k] >> 16 & 0x0000FFFF0000FFFFu) << width;
      codes[k] = (pairs & 0xFFFFFFFFu) | pairs >> 32 << (2 * width);
    }
  }

  // Whether any lane differs.
  L3_INLINE static bool differ(const Lanes& a, const Lanes& b) {
    uint64_t all[8];
    Lanes d = a ^ b;
    std::memcpy(all, d.v, sizeof(all));
    return (all[0] | all[1] | all[2] | all[3] | all[4] | all[5] | all[6] | all[7]) != 0;
  }

 private:
  // Combines halves of numbers with or, in numbers of twice the size: those of `a` in the lower half, those of `b` in
  // the upper.
  L3_INLINE static Quads either(const Pairs& a, const Pairs& b) {
    return (Quads)(((a | a >> 16) & 0xFFFF) | ((b | b << 16) & 0xFFFF0000));
  }
  L3_INLINE static Quads either(const Quads& a, const Quads& b) {
    return ((a | a >> 32) & 0xFFFFFFFFu) | ((b | b << 32) & 0xFFFFFFFF00000000u);
  }
  // The number of significant bits in each lane, from the exponent of a float.
  L3_INLINE static Vector lane_lengths(const Vector& v) {
    const SignedPairs low = (SignedPairs)((Pairs)v & 0xFFFF);
    const SignedPairs high = (SignedPairs)((Pairs)v >> 16);
    const Pairs even = (Pairs) __builtin_convertvector(low, Floats) >> 23;
    const Pairs odd = (Pairs) __builtin_convertvector(high, Floats) >> 23;
    const Vector exponents = (Vector)(even | odd << 16);
    return (exponents - 126) & (Vector)(exponents != 0);
  }
  // The sum of all bytes. Each is at most 255 / 4, so intermediate sums fit 16 bits.
  L3_INLINE static uint32_t sum_bytes(const Bytes& v) {
    uint64_t quads[kBytes / 8];
    std::memcpy(quads, &v, kBytes);
    constexpr uint64_t kEven = 0x00FF00FF00FF00FFu;
    uint64_t words = 0;
    for (const uint64_t quad : quads) words += (quad & kEven) + (quad >> 8 & kEven);
    return static_cast<uint32_t>(words * 0x0001000100010001u >> 48);
  }
  // One step of transposing an 8 by 8 matrix of bytes: swaps the off-diagonal blocks of kStep by kStep bytes. `low`
  // masks the bytes of the lower columns.
  template <int kStep>
  L3_INLINE static void exchange(uint64_t* rows, uint64_t low) {
    for (int r = 0; r < 8; ++r) {
      if ((r & kStep) != 0) continue;
      const uint64_t a = rows[r], b = rows[r + kStep];
      rows[r] = (a & low) | (b & low) << (8 * kStep);
      rows[r + kStep] = (a >> (8 * kStep) & low) | (b & ~low);
    }
  }
};

}  // namespace l3
