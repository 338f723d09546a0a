// The primitives of a warp as plain functions over arrays, so that the tests of the engine are compiled for any
// processor and only engine_<target>.cpp for that target.
#pragma once

#include <cstdint>

namespace engine {

constexpr int kLaneCount = 32;

struct Primitives {
  // 32 numbers of 16 bits in, 32 out.
  void (*splat)(uint32_t value, uint16_t* out);
  void (*add)(const uint16_t* a, const uint16_t* b, uint16_t* out);
  void (*subtract)(const uint16_t* a, const uint16_t* b, uint16_t* out);
  void (*bit_and)(const uint16_t* a, const uint16_t* b, uint16_t* out);
  void (*bit_or)(const uint16_t* a, const uint16_t* b, uint16_t* out);
  void (*bit_xor)(const uint16_t* a, const uint16_t* b, uint16_t* out);
  void (*average)(const uint16_t* a, const uint16_t* b, uint16_t* out);
  void (*shift_up)(const uint16_t* a, const uint16_t* before, uint16_t* out);
  void (*shift_down)(const uint16_t* a, uint16_t* out);
  void (*scan_add)(const uint16_t* a, uint16_t* out);
  void (*last)(const uint16_t* a, uint16_t* out);
  void (*first)(const uint16_t* a, uint16_t* out);
  void (*shift_left)(const uint16_t* a, int count, uint16_t* out);
  void (*shift_right_signed)(const uint16_t* a, int count, uint16_t* out);
  void (*first_lanes)(uint32_t count, uint16_t* out);
  void (*choose_lane)(uint32_t lane, const uint16_t* a, const uint16_t* b, uint16_t* out);
  bool (*differ)(const uint16_t* a, const uint16_t* b);
  uint32_t (*to_scalar)(const uint16_t* a);
  // The residuals of a row of a block whose fields of widths are at `fields`, for samples of 1 and of 2 bytes.
  void (*residuals[2])(const uint8_t* codes, const uint8_t* fields, uint32_t width_bits, uint32_t base, uint32_t groups,
                       uint32_t bits, uint32_t row, uint16_t* out);
  void (*bit_fields)(const uint8_t* bytes, uint64_t at, uint32_t step, uint32_t bits, uint32_t count, uint16_t* out);
  // Eight rows of residuals in; a byte for each group out, row after row.
  void (*group_widths[2])(const uint16_t* residuals, uint32_t bits, uint8_t* widths);
  // Sums of those widths, each raised to at least `floor`, and the greatest of them.
  uint32_t (*sum)(const uint16_t* residuals, uint32_t bits);
  uint32_t (*sum_raised)(const uint16_t* residuals, uint32_t bits, uint32_t floor);
  uint32_t (*greatest)(const uint16_t* residuals, uint32_t bits);
  void (*join_codes)(const uint16_t* residuals, const uint16_t* present, const uint8_t* widths, uint64_t* codes);
  // By bytes of a sample - 1 and channels - 1; channels one after the other, 32 numbers each.
  void (*store_pixels[2][4])(uint8_t* out, const uint16_t* channels);
  void (*store_some_pixels[2][4])(uint8_t* out, const uint16_t* channels, uint32_t from, uint32_t to);
  void (*load_pixels[2][4])(const uint8_t* in, uint16_t* channels);
  void (*store_colours)(uint8_t* out, const uint16_t* indices, uint32_t from, uint32_t to, const uint8_t* colours,
                        uint32_t colour_bytes);
  // Section 7.2 and its reverse, on three channels.
  void (*to_image)(uint32_t transform, uint32_t bits, uint16_t* channels);
  void (*from_image)(uint32_t transform, uint32_t bits, uint16_t* channels);
  uint32_t (*check)(const uint8_t* bytes, uint64_t words);
};

extern const Primitives kPortable;
#if defined(__x86_64__)
extern const Primitives kAvx2;
extern const Primitives kAvx512;
#endif

}  // namespace engine
