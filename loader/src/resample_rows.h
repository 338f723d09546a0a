// The inner loops of resizing and of writing values.
#pragma once

#include <cstddef>
#include <cstdint>

namespace loader {

constexpr uint32_t kGroup = 8;  // weights of one step of ResampleRows::pick

// `width` is a multiple of 16. All rows may be read and written that far.
struct ResampleRows {
  // Combines rows of bytes: the sum of weight * sample, divided by 2^shift, rounded half up.
  void (*combine)(const uint8_t* const* rows, const int16_t* weights, uint32_t taps, uint32_t shift, size_t width,
                  int16_t* out);
  // For each of `count` results, sums `groups` * 8 products of weights and samples from `first` on. Up to 8 samples
  // after the row may be read.
  void (*pick)(const int16_t* row, const uint32_t* first, const int16_t* weights, uint32_t groups, size_t count,
               int32_t* out);
  // The same for floats, in the order of the taps: each step is one fused multiply-add.
  void (*combine_fine)(const uint16_t* const* rows, const float* weights, uint32_t taps, size_t width, float* out);
  // The weights of one tap of all results are adjacent: that of tap t and result i is at t * stride + i.
  void (*pick_fine)(const float* row, const uint32_t* first, const float* weights, uint32_t taps, size_t stride,
                    size_t count, float* out);
  // Values of floats: value * scale + bias.
  void (*to_f16)(const float* row, size_t count, float scale, float bias, uint16_t* out);
  void (*to_bf16)(const float* row, size_t count, float scale, float bias, uint16_t* out);
  void (*to_f32)(const float* row, size_t count, float scale, float bias, float* out);
  // The nearest integer, ties to even, from 0 to 255.
  void (*to_u8)(const float* row, size_t count, uint8_t* out);
};

// The fastest one of this processor that L3_CPU allows.
const ResampleRows& resample_rows();

extern const ResampleRows kAvx2ResampleRows, kNeonResampleRows;

}  // namespace loader
