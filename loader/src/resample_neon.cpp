// For ARM64: NEON is part of every such processor.
#include <arm_neon.h>

#include "resample_rows.h"

namespace loader {
namespace {

void combine(const uint8_t* const* rows, const int16_t* weights, uint32_t taps, uint32_t shift, size_t width,
             int16_t* out) {
  const int32x4_t half = vdupq_n_s32(1 << (shift - 1)), by = vdupq_n_s32(-static_cast<int32_t>(shift));
  for (size_t x = 0; x < width; x += 16) {
    int32x4_t sums[4] = {half, half, half, half};
    for (uint32_t tap = 0; tap < taps; ++tap) {
      const uint8x16_t bytes = vld1q_u8(rows[tap] + x);
      const int16x8_t low = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(bytes)));
      const int16x8_t high = vreinterpretq_s16_u16(vmovl_high_u8(bytes));
      const int16_t weight = weights[tap];
      sums[0] = vmlal_n_s16(sums[0], vget_low_s16(low), weight);
      sums[1] = vmlal_high_n_s16(sums[1], low, weight);
      sums[2] = vmlal_n_s16(sums[2], vget_low_s16(high), weight);
      sums[3] = vmlal_high_n_s16(sums[3], high, weight);
    }
    const int16x4_t first = vqmovn_s32(vshlq_s32(sums[0], by)), third = vqmovn_s32(vshlq_s32(sums[2], by));
    vst1q_s16(out + x, vqmovn_high_s32(first, vshlq_s32(sums[1], by)));
    vst1q_s16(out + x + 8, vqmovn_high_s32(third, vshlq_s32(sums[3], by)));
  }
}

int32x4_t dot(const int16_t* row, const int16_t* weights, uint32_t groups) {
  int32x4_t sum = vdupq_n_s32(0);
  for (uint32_t group = 0; group < groups; ++group) {
    const int16x8_t samples = vld1q_s16(row + 8 * group), factors = vld1q_s16(weights + 8 * group);
    sum = vmlal_s16(sum, vget_low_s16(samples), vget_low_s16(factors));
    sum = vmlal_high_s16(sum, samples, factors);
  }
  return sum;
}

void pick(const int16_t* row, const uint32_t* first, const int16_t* weights, uint32_t groups, size_t count,
          int32_t* out) {
  const size_t step = size_t{groups} * 8;
  size_t i = 0;
  for (; i + 4 <= count; i += 4, weights += 4 * step) {
    const int32x4_t a = dot(row + first[i], weights, groups), b = dot(row + first[i + 1], weights + step, groups);
    const int32x4_t c = dot(row + first[i + 2], weights + 2 * step, groups);
    const int32x4_t d = dot(row + first[i + 3], weights + 3 * step, groups);
    vst1q_s32(out + i, vpaddq_s32(vpaddq_s32(a, b), vpaddq_s32(c, d)));
  }
  for (; i < count; ++i, weights += step) {
    out[i] = vaddvq_s32(dot(row + first[i], weights, groups));
  }
}

void combine_fine(const uint16_t* const* rows, const float* weights, uint32_t taps, size_t width, float* out) {
  for (size_t x = 0; x < width; x += 8) {
    float32x4_t low = vdupq_n_f32(0), high = low;
    for (uint32_t tap = 0; tap < taps; ++tap) {
      const uint16x8_t samples = vld1q_u16(rows[tap] + x);
      low = vfmaq_n_f32(low, vcvtq_f32_u32(vmovl_u16(vget_low_u16(samples))), weights[tap]);
      high = vfmaq_n_f32(high, vcvtq_f32_u32(vmovl_high_u16(samples)), weights[tap]);
    }
    vst1q_f32(out + x, low);
    vst1q_f32(out + x + 4, high);
  }
}

void pick_fine(const float* row, const uint32_t* first, const float* weights, uint32_t taps, size_t stride,
               size_t count, float* out) {
  size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const float* const from[4] = {row + first[i], row + first[i + 1], row + first[i + 2], row + first[i + 3]};
    float32x4_t sum = vdupq_n_f32(0);
    for (uint32_t tap = 0; tap < taps; ++tap) {
      float32x4_t samples = vdupq_n_f32(from[0][tap]);
      samples = vld1q_lane_f32(from[1] + tap, samples, 1);
      samples = vld1q_lane_f32(from[2] + tap, samples, 2);
      samples = vld1q_lane_f32(from[3] + tap, samples, 3);
      sum = vfmaq_f32(sum, samples, vld1q_f32(weights + tap * stride + i));
    }
    vst1q_f32(out + i, sum);
  }
  for (; i < count; ++i) {
    float sum = 0;
    for (uint32_t tap = 0; tap < taps; ++tap) {
      sum = __builtin_fmaf(row[first[i] + tap], weights[tap * stride + i], sum);
    }
    out[i] = sum;
  }
}

// Calls step(from, to) for four values at a time, and for the last ones, at most three, through a buffer.
template <class Out, class Step>
void by_four(const float* row, size_t count, Out* out, const Step& step) {
  size_t i = 0;
  for (; i + 4 <= count; i += 4) step(row + i, out + i);
  if (i == count) return;
  float rest[4] = {};
  Out results[4];
  for (size_t j = i; j < count; ++j) rest[j - i] = row[j];
  step(rest, results);
  for (size_t j = i; j < count; ++j) out[j] = results[j - i];
}

float32x4_t value_of(const float* row, float32x4_t scale, float32x4_t bias) {
  return vfmaq_f32(bias, vld1q_f32(row), scale);
}

void to_f16(const float* row, size_t count, float scale, float bias, uint16_t* out) {
  const float32x4_t scales = vdupq_n_f32(scale), biases = vdupq_n_f32(bias);
  by_four(row, count, out, [&](const float* from, uint16_t* to) {
    vst1_u16(to, vreinterpret_u16_f16(vcvt_f16_f32(value_of(from, scales, biases))));
  });
}

void to_bf16(const float* row, size_t count, float scale, float bias, uint16_t* out) {
  const float32x4_t scales = vdupq_n_f32(scale), biases = vdupq_n_f32(bias);
  by_four(row, count, out, [&](const float* from, uint16_t* to) {
    const float32x4_t value = value_of(from, scales, biases);
    const uint32x4_t bits = vreinterpretq_u32_f32(value);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t rounded = vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7FFF)), odd);
    const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
    vst1_u16(to, vshrn_n_u32(vbslq_u32(vceqq_f32(value, value), rounded, quiet), 16));
  });
}

void to_f32(const float* row, size_t count, float scale, float bias, float* out) {
  const float32x4_t scales = vdupq_n_f32(scale), biases = vdupq_n_f32(bias);
  by_four(row, count, out, [&](const float* from, float* to) { vst1q_f32(to, value_of(from, scales, biases)); });
}

void to_u8(const float* row, size_t count, uint8_t* out) {
  const float32x4_t most = vdupq_n_f32(255), zero = vdupq_n_f32(0);
  by_four(row, count, out, [&](const float* from, uint8_t* to) {
    const uint32x4_t wide = vcvtnq_u32_f32(vminq_f32(vmaxq_f32(vld1q_f32(from), zero), most));
    const uint16x4_t half = vmovn_u32(wide);
    const uint32_t bytes = vget_lane_u32(vreinterpret_u32_u8(vmovn_u16(vcombine_u16(half, half))), 0);
    __builtin_memcpy(to, &bytes, sizeof bytes);
  });
}

}  // namespace

const ResampleRows kNeonResampleRows = {combine, pick, combine_fine, pick_fine, to_f16, to_bf16, to_f32, to_u8};

}  // namespace loader
