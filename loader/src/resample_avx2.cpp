// Compiled for AVX2, FMA and F16C. It uses no inline function of the standard library: the linker could take this copy
// for other files, which run on processors without AVX2.
#include <immintrin.h>

#include "resample_rows.h"

namespace loader {
namespace {

void combine(const uint8_t* const* rows, const int16_t* weights, uint32_t taps, uint32_t shift, size_t width,
             int16_t* out) {
  const __m256i half = _mm256_set1_epi32(1 << (shift - 1));
  const __m128i by = _mm_cvtsi32_si128(static_cast<int>(shift));
  const __m128i none = _mm_setzero_si128();
  for (size_t x = 0; x < width; x += 16) {
    __m256i low = half, high = half;
    for (uint32_t tap = 0; tap < taps; tap += 2) {
      const bool has_second = tap + 1 < taps;
      const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[tap] + x));
      const __m128i b = has_second ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[tap + 1] + x)) : none;
      const uint32_t pair = static_cast<uint16_t>(weights[tap]) |
                            (has_second ? static_cast<uint32_t>(static_cast<uint16_t>(weights[tap + 1])) << 16 : 0);
      const __m256i both = _mm256_set1_epi32(static_cast<int>(pair));
      low = _mm256_add_epi32(low, _mm256_madd_epi16(_mm256_cvtepu8_epi16(_mm_unpacklo_epi8(a, b)), both));
      high = _mm256_add_epi32(high, _mm256_madd_epi16(_mm256_cvtepu8_epi16(_mm_unpackhi_epi8(a, b)), both));
    }
    const __m256i packed = _mm256_packs_epi32(_mm256_sra_epi32(low, by), _mm256_sra_epi32(high, by));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + x), _mm256_permute4x64_epi64(packed, 0xD8));
  }
}

__m128i dot(const int16_t* row, const int16_t* weights, uint32_t groups) {
  __m128i sum = _mm_madd_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(row)),
                               _mm_loadu_si128(reinterpret_cast<const __m128i*>(weights)));
  for (uint32_t group = 1; group < groups; ++group) {
    sum = _mm_add_epi32(sum, _mm_madd_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(row + 8 * group)),
                                            _mm_loadu_si128(reinterpret_cast<const __m128i*>(weights + 8 * group))));
  }
  return sum;
}

void pick(const int16_t* row, const uint32_t* first, const int16_t* weights, uint32_t groups, size_t count,
          int32_t* out) {
  const size_t step = size_t{groups} * 8;
  size_t i = 0;
  for (; i + 4 <= count; i += 4, weights += 4 * step) {
    const __m128i a = dot(row + first[i], weights, groups), b = dot(row + first[i + 1], weights + step, groups);
    const __m128i c = dot(row + first[i + 2], weights + 2 * step, groups);
    const __m128i d = dot(row + first[i + 3], weights + 3 * step, groups);
    const __m128i sums = _mm_hadd_epi32(_mm_hadd_epi32(a, b), _mm_hadd_epi32(c, d));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), sums);
  }
  for (; i < count; ++i, weights += step) {
    __m128i sum = dot(row + first[i], weights, groups);
    sum = _mm_hadd_epi32(sum, sum);
    sum = _mm_hadd_epi32(sum, sum);
    out[i] = _mm_cvtsi128_si32(sum);
  }
}

void combine_fine(const uint16_t* const* rows, const float* weights, uint32_t taps, size_t width, float* out) {
  for (size_t x = 0; x < width; x += 8) {
    __m256 sum = _mm256_setzero_ps();
    for (uint32_t tap = 0; tap < taps; ++tap) {
      const __m128i samples = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[tap] + x));
      sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(samples)), _mm256_set1_ps(weights[tap]), sum);
    }
    _mm256_storeu_ps(out + x, sum);
  }
}

void pick_fine(const float* row, const uint32_t* first, const float* weights, uint32_t taps, size_t stride,
               size_t count, float* out) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    __m256i places = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(first + i));
    __m256 sum = _mm256_setzero_ps();
    for (uint32_t tap = 0; tap < taps; ++tap) {
      const __m256 samples = _mm256_i32gather_ps(row, places, 4);
      sum = _mm256_fmadd_ps(samples, _mm256_loadu_ps(weights + tap * stride + i), sum);
      places = _mm256_add_epi32(places, _mm256_set1_epi32(1));
    }
    _mm256_storeu_ps(out + i, sum);
  }
  for (; i < count; ++i) {
    float sum = 0;
    for (uint32_t tap = 0; tap < taps; ++tap) {
      sum = _mm_cvtss_f32(
          _mm_fmadd_ss(_mm_set_ss(row[first[i] + tap]), _mm_set_ss(weights[tap * stride + i]), _mm_set_ss(sum)));
    }
    out[i] = sum;
  }
}

__m256 values(const float* row, __m256 scale, __m256 bias) {
  return _mm256_fmadd_ps(_mm256_loadu_ps(row), scale, bias);
}

// The last values of a row, at most seven, through a buffer.
template <class Out, class Step>
void with_rest(const float* row, size_t count, Out* out, const Step& step) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8) step(row + i, out + i);
  if (i == count) return;
  float rest[8] = {};
  Out results[8];
  for (size_t j = i; j < count; ++j) rest[j - i] = row[j];
  step(rest, results);
  for (size_t j = i; j < count; ++j) out[j] = results[j - i];
}

void to_f16(const float* row, size_t count, float scale, float bias, uint16_t* out) {
  const __m256 scales = _mm256_set1_ps(scale), biases = _mm256_set1_ps(bias);
  with_rest(row, count, out, [&](const float* from, uint16_t* to) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                     _mm256_cvtps_ph(values(from, scales, biases), _MM_FROUND_TO_NEAREST_INT));
  });
}

void to_bf16(const float* row, size_t count, float scale, float bias, uint16_t* out) {
  const __m256 scales = _mm256_set1_ps(scale), biases = _mm256_set1_ps(bias);
  with_rest(row, count, out, [&](const float* from, uint16_t* to) {
    const __m256 value = values(from, scales, biases);
    const __m256i bits = _mm256_castps_si256(value);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFF)), odd);
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i none = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    const __m256i wide = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, none), 16);
    const __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), packed);
  });
}

void to_f32(const float* row, size_t count, float scale, float bias, float* out) {
  const __m256 scales = _mm256_set1_ps(scale), biases = _mm256_set1_ps(bias);
  with_rest(row, count, out, [&](const float* from, float* to) { _mm256_storeu_ps(to, values(from, scales, biases)); });
}

void to_u8(const float* row, size_t count, uint8_t* out) {
  const __m256 most = _mm256_set1_ps(255), zero = _mm256_setzero_ps();
  with_rest(row, count, out, [&](const float* from, uint8_t* to) {
    const __m256 value = _mm256_min_ps(_mm256_max_ps(_mm256_loadu_ps(from), zero), most);
    const __m256i wide = _mm256_cvtps_epi32(value);
    const __m128i half = _mm_packus_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(half, half));
  });
}

}  // namespace

const ResampleRows kAvx2ResampleRows = {combine, pick, combine_fine, pick_fine, to_f16, to_bf16, to_f32, to_u8};

}  // namespace loader
