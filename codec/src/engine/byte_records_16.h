// Records of bytes of token tiles in vectors of 16 bytes, for little-endian processors: what compilers turn into single
// instructions of SSE and NEON.
#pragma once

#include "engine/token_warp.h"

namespace l3 {

// `Base` is a TokenWarp.
template <class Base>
struct ByteRecords16 : Base {
  using Base::wide_mask, Base::widen, Base::lane_mask;
  using typename Base::ByteRecords, typename Base::Lanes, typename Base::Mask, typename Base::Records;
  static_assert(Base::kByteRecords == 16 && Base::kPartLanes == 4);

  L3_INLINE static void widen(ByteRecords a, Lanes* words) {
    const Bytes low = zip_low(a.v, Bytes{}), high = zip_high(a.v, Bytes{});
    widen_halves(low, high, words);
  }
  L3_INLINE static void widen(ByteRecords a, ByteRecords b, Lanes* words) {
    const auto join = [](Bytes of_a, Bytes of_b) __attribute__((always_inline)) {
      return (Bytes)((Numbers)of_a << 5 | (Numbers)of_b);
    };
    widen_halves(join(zip_low(a.v, Bytes{}), zip_low(b.v, Bytes{})),
                 join(zip_high(a.v, Bytes{}), zip_high(b.v, Bytes{})), words);
  }
  L3_INLINE static ByteRecords narrow_to_bytes(const Lanes* words) {
    const auto halves = [&](int i) __attribute__((always_inline)) { return even_numbers(words[i].v, words[i + 1].v); };
    return {even_bytes(halves(0), halves(2))};
  }
  L3_INLINE static ByteRecords mask_bytes(const Mask* masks) { return narrow_to_bytes(masks); }
  L3_INLINE static ByteRecords packed(const Records* a) { return {even_bytes((Bytes)a[0].v, (Bytes)a[1].v)}; }
  L3_INLINE static Records wide_mask(const ByteRecords* masks, uint32_t part) {
    const Bytes m = masks[part / 2].v;
    return {(decltype(Records::v))(part % 2 == 0 ? zip_low(m, m) : zip_high(m, m))};
  }
  L3_INLINE static Mask lane_mask(const ByteRecords* masks, uint32_t part) {
    const Bytes m = masks[part / 4].v;
    const Numbers two = (Numbers)(part / 2 % 2 == 0 ? zip_low(m, m) : zip_high(m, m));
    return {(decltype(Mask::v))(part % 2 == 0 ? zip_low(two, two) : zip_high(two, two))};
  }
  L3_INLINE static void channels_of(const Lanes* words, ByteRecords* channels, uint32_t stride) {
    for (uint32_t part = 0; part < Base::kByteParts; ++part) {
      Bytes a[4], b[4];
      for (uint32_t i = 0; i < 4; ++i) a[i] = (Bytes)words[4 * part + i].v;
      // Two vectors that are zipped have the lanes of both in turn. After four times they have all lanes of a channel.
      const auto zip = [](const Bytes* from, Bytes* to) __attribute__((always_inline)) {
        for (int i = 0; i < 2; ++i) {
          to[2 * i] = zip_low(from[i], from[i + 2]);
          to[2 * i + 1] = zip_high(from[i], from[i + 2]);
        }
      };
      zip(a, b);
      zip(b, a);
      zip(a, b);
      zip(b, a);
      for (uint32_t c = 0; c < 4; ++c) channels[c * stride + part].v = a[c];
    }
  }
  L3_INLINE static void words_of(const ByteRecords* channels, uint32_t stride, uint32_t count, Lanes* words) {
    for (uint32_t part = 0; part < Base::kByteParts; ++part) {
      const auto of = [&](uint32_t c) __attribute__((always_inline)) {
        return c < count ? channels[c * stride + part].v : Bytes{};
      };
      const Bytes c0 = of(0), c1 = of(1), c2 = of(2), c3 = of(3);
      const auto put = [&](uint32_t i, Bytes low, Bytes high) __attribute__((always_inline)) {
        words[4 * part + i].v = (decltype(Lanes::v))zip_low((Numbers)low, (Numbers)high);
        words[4 * part + i + 1].v = (decltype(Lanes::v))zip_high((Numbers)low, (Numbers)high);
      };
      put(0, zip_low(c0, c1), zip_low(c2, c3));
      put(2, zip_high(c0, c1), zip_high(c2, c3));
    }
  }

 private:
  using Bytes = typename VectorTypes<16>::U8;
  using Numbers = typename VectorTypes<16>::U16;

  // The elements of the lower or upper halves of two vectors in turn.
  L3_INLINE static Bytes zip_low(Bytes a, Bytes b) {
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  }
  L3_INLINE static Bytes zip_high(Bytes a, Bytes b) {
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  }
  L3_INLINE static Numbers zip_low(Numbers a, Numbers b) {
    return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  }
  L3_INLINE static Numbers zip_high(Numbers a, Numbers b) {
    return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
  }
  // The lower halves of the elements of two vectors.
  L3_INLINE static Bytes even_bytes(Bytes a, Bytes b) {
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  }
  template <class V>
  L3_INLINE static Bytes even_numbers(V a, V b) {
    return (Bytes)__builtin_shufflevector((Numbers)a, (Numbers)b, 0, 2, 4, 6, 8, 10, 12, 14);
  }
  // Numbers of 16 bits as words.
  L3_INLINE static void widen_halves(Bytes low, Bytes high, Lanes* words) {
    const Numbers zero{};
    words[0].v = (decltype(Lanes::v))zip_low((Numbers)low, zero);
    words[1].v = (decltype(Lanes::v))zip_high((Numbers)low, zero);
    words[2].v = (decltype(Lanes::v))zip_low((Numbers)high, zero);
    words[3].v = (decltype(Lanes::v))zip_high((Numbers)high, zero);
  }
};

}  // namespace l3
