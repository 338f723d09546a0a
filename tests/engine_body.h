// The functions of Primitives over a warp type. Included by one file for each target; includes nothing that could leave
// code compiled for one target behind for others.
#pragma once

#include "container/check.h"
#include "engine/fast.h"
#include "engine_primitives.h"

namespace engine {

template <class W>
struct PrimitivesBody {
  using Lanes = typename W::Lanes;

  L3_INLINE static Lanes load(const uint16_t* a) {
    Lanes r;
    __builtin_memcpy(r.v, a, sizeof(r.v));
    return r;
  }
  L3_INLINE static void store(uint16_t* out, const Lanes& a) { __builtin_memcpy(out, a.v, sizeof(a.v)); }

  static void splat(uint32_t value, uint16_t* out) { store(out, W::splat(value)); }
  static void add(const uint16_t* a, const uint16_t* b, uint16_t* out) { store(out, load(a) + load(b)); }
  static void subtract(const uint16_t* a, const uint16_t* b, uint16_t* out) { store(out, load(a) - load(b)); }
  static void bit_and(const uint16_t* a, const uint16_t* b, uint16_t* out) { store(out, load(a) & load(b)); }
  static void bit_or(const uint16_t* a, const uint16_t* b, uint16_t* out) { store(out, load(a) | load(b)); }
  static void bit_xor(const uint16_t* a, const uint16_t* b, uint16_t* out) { store(out, load(a) ^ load(b)); }
  static void average(const uint16_t* a, const uint16_t* b, uint16_t* out) { store(out, W::average(load(a), load(b))); }
  static void shift_up(const uint16_t* a, const uint16_t* before, uint16_t* out) {
    store(out, W::shift_up(load(a), load(before)));
  }
  static void shift_down(const uint16_t* a, uint16_t* out) { store(out, W::shift_down(load(a))); }
  static void scan_add(const uint16_t* a, uint16_t* out) { store(out, W::scan_add(load(a))); }
  static void last(const uint16_t* a, uint16_t* out) { store(out, W::last(load(a))); }
  static void first(const uint16_t* a, uint16_t* out) { store(out, W::first(load(a))); }
  static void shift_left(const uint16_t* a, int count, uint16_t* out) { store(out, W::shift_left(load(a), count)); }
  static void shift_right_signed(const uint16_t* a, int count, uint16_t* out) {
    store(out, W::shift_right_signed(load(a), count));
  }
  static void first_lanes(uint32_t count, uint16_t* out) { store(out, W::first_lanes(count)); }
  static void choose_lane(uint32_t lane, const uint16_t* a, const uint16_t* b, uint16_t* out) {
    store(out, W::choose_lane(lane, load(a), load(b)));
  }
  static bool differ(const uint16_t* a, const uint16_t* b) { return W::differ(load(a), load(b)); }
  static uint32_t to_scalar(const uint16_t* a) { return W::to_scalar(load(a)); }

  template <class Sample>
  static void residuals(const uint8_t* codes, const uint8_t* fields, uint32_t width_bits, uint32_t base,
                        uint32_t groups, uint32_t bits, uint32_t row, uint16_t* out) {
    const auto widths = W::Widths::parse(fields, width_bits, base, l3::kBandRows, groups, bits);
    store(out, W::template residuals<Sample>(codes, widths, row));
  }
  static void bit_fields(const uint8_t* bytes, uint64_t at, uint32_t step, uint32_t bits, uint32_t count,
                         uint16_t* out) {
    store(out, W::bit_fields(bytes, at, step, bits, count));
  }

  template <class Sample>
  L3_INLINE static typename W::GroupWidths widths_of(const uint16_t* residuals, uint32_t bits) {
    Lanes rows[l3::kBandRows];
    for (uint32_t r = 0; r < l3::kBandRows; ++r) rows[r] = load(residuals + kLaneCount * r);
    return W::template group_widths<Sample>(rows, bits);
  }
  L3_INLINE static typename W::GroupWidths any_widths_of(const uint16_t* residuals, uint32_t bits) {
    return bits <= 8 ? widths_of<uint8_t>(residuals, bits) : widths_of<uint16_t>(residuals, bits);
  }
  template <class Sample>
  static void group_widths(const uint16_t* residuals, uint32_t bits, uint8_t* widths) {
    uint64_t rows[l3::kBandRows];
    W::row_words(widths_of<Sample>(residuals, bits), rows);
    for (uint32_t r = 0; r < l3::kBandRows; ++r) l3::store_u64(widths + 8 * r, rows[r]);
  }
  static uint32_t sum(const uint16_t* residuals, uint32_t bits) { return W::sum(any_widths_of(residuals, bits)); }
  static uint32_t sum_raised(const uint16_t* residuals, uint32_t bits, uint32_t floor) {
    return W::sum_raised(any_widths_of(residuals, bits), floor);
  }
  static uint32_t greatest(const uint16_t* residuals, uint32_t bits) {
    return W::greatest(any_widths_of(residuals, bits));
  }
  static void join_codes(const uint16_t* residuals, const uint16_t* present, const uint8_t* widths, uint64_t* codes) {
    W::join_codes(load(residuals), load(present), l3::load_u64(widths), codes);
  }

  template <class Sample, uint32_t kChannels>
  static void store_pixels(uint8_t* out, const uint16_t* channels) {
    Lanes c[kChannels];
    for (uint32_t i = 0; i < kChannels; ++i) c[i] = load(channels + kLaneCount * i);
    W::template store_pixels<Sample, kChannels>(out, c);
  }
  template <class Sample, uint32_t kChannels>
  static void store_some_pixels(uint8_t* out, const uint16_t* channels, uint32_t from, uint32_t to) {
    Lanes c[kChannels];
    for (uint32_t i = 0; i < kChannels; ++i) c[i] = load(channels + kLaneCount * i);
    W::template store_some_pixels<Sample, kChannels>(out, c, from, to);
  }
  template <class Sample, uint32_t kChannels>
  static void load_pixels(const uint8_t* in, uint16_t* channels) {
    Lanes c[kChannels];
    W::template load_pixels<Sample, kChannels>(in, c);
    for (uint32_t i = 0; i < kChannels; ++i) store(channels + kLaneCount * i, c[i]);
  }
  static void store_colours(uint8_t* out, const uint16_t* indices, uint32_t from, uint32_t to, const uint8_t* colours,
                            uint32_t colour_bytes) {
    W::store_colours(out, load(indices), from, to, colours, colour_bytes);
  }

  template <bool kBack>
  static void transform(uint32_t transform, uint32_t bits, uint16_t* channels) {
    Lanes c[3];
    for (uint32_t i = 0; i < 3; ++i) c[i] = load(channels + kLaneCount * i);
    const Lanes mask = W::splat((1u << bits) - 1);
    if constexpr (kBack) {
      l3::from_image<W>(transform, bits, mask, c);
    } else {
      l3::to_image<W>(transform, bits, mask, c);
    }
    for (uint32_t i = 0; i < 3; ++i) store(channels + kLaneCount * i, c[i]);
  }

  static uint32_t check(const uint8_t* bytes, uint64_t words) { return l3::check_of<W>(bytes, words); }

  static constexpr Primitives all() {
    return {
        splat,
        add,
        subtract,
        bit_and,
        bit_or,
        bit_xor,
        average,
        shift_up,
        shift_down,
        scan_add,
        last,
        first,
        shift_left,
        shift_right_signed,
        first_lanes,
        choose_lane,
        differ,
        to_scalar,
        {residuals<uint8_t>, residuals<uint16_t>},
        bit_fields,
        {group_widths<uint8_t>, group_widths<uint16_t>},
        sum,
        sum_raised,
        greatest,
        join_codes,
        {{store_pixels<uint8_t, 1>, store_pixels<uint8_t, 2>, store_pixels<uint8_t, 3>, store_pixels<uint8_t, 4>},
         {store_pixels<uint16_t, 1>, store_pixels<uint16_t, 2>, store_pixels<uint16_t, 3>, store_pixels<uint16_t, 4>}},
        {{store_some_pixels<uint8_t, 1>, store_some_pixels<uint8_t, 2>, store_some_pixels<uint8_t, 3>,
          store_some_pixels<uint8_t, 4>},
         {store_some_pixels<uint16_t, 1>, store_some_pixels<uint16_t, 2>, store_some_pixels<uint16_t, 3>,
          store_some_pixels<uint16_t, 4>}},
        {{load_pixels<uint8_t, 1>, load_pixels<uint8_t, 2>, load_pixels<uint8_t, 3>, load_pixels<uint8_t, 4>},
         {load_pixels<uint16_t, 1>, load_pixels<uint16_t, 2>, load_pixels<uint16_t, 3>, load_pixels<uint16_t, 4>}},
        store_colours,
        transform<false>,
        transform<true>,
        check,
    };
  }
};

}  // namespace engine
