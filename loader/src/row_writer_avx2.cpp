// Compiled for AVX2, FMA and F16C. It uses no inline function of the standard library: the linker could take this copy
// for other files, which run on processors without AVX2.
#include <immintrin.h>

#include "row_writer.h"

namespace loader {
namespace {

constexpr size_t kStep = 16;

__m128i load(const uint8_t* at) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)); }
void store(void* at, __m128i value) { _mm_storeu_si128(static_cast<__m128i*>(at), value); }

// Shuffle masks for 16 pixels in three vectors: the positions of the bytes of `channel` in vector `part`; -1 for bytes
// in other vectors.
struct Places {
  alignas(16) int8_t at[3][3][16];
};
constexpr Places find_places() {
  Places places{};
  for (int channel = 0; channel < 3; ++channel) {
    for (int part = 0; part < 3; ++part) {
      for (int i = 0; i < 16; ++i) {
        const int byte = 3 * i + channel;
        places.at[channel][part][i] = static_cast<int8_t>(byte / 16 == part ? byte % 16 : -1);
      }
    }
  }
  return places;
}
constexpr Places kPlaces = find_places();

size_t split3(const uint8_t* pixels, size_t count, uint8_t* const rows[3]) {
  size_t i = 0;
  for (; i + kStep <= count; i += kStep, pixels += 3 * kStep) {
    const __m128i parts[3] = {load(pixels), load(pixels + 16), load(pixels + 32)};
    for (int channel = 0; channel < 3; ++channel) {
      __m128i row = _mm_setzero_si128();
      for (int part = 0; part < 3; ++part) {
        const __m128i places = _mm_load_si128(reinterpret_cast<const __m128i*>(kPlaces.at[channel][part]));
        row = _mm_or_si128(row, _mm_shuffle_epi8(parts[part], places));
      }
      store(rows[channel] + i, row);
    }
  }
  return i;
}

size_t split4(const uint8_t* pixels, size_t count, uint8_t* const rows[4]) {
  const __m128i by_channel = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  size_t i = 0;
  for (; i + kStep <= count; i += kStep, pixels += 4 * kStep) {
    const __m128i a = _mm_shuffle_epi8(load(pixels), by_channel);
    const __m128i b = _mm_shuffle_epi8(load(pixels + 16), by_channel);
    const __m128i c = _mm_shuffle_epi8(load(pixels + 32), by_channel);
    const __m128i d = _mm_shuffle_epi8(load(pixels + 48), by_channel);
    const __m128i ab01 = _mm_unpacklo_epi32(a, b), ab23 = _mm_unpackhi_epi32(a, b);
    const __m128i cd01 = _mm_unpacklo_epi32(c, d), cd23 = _mm_unpackhi_epi32(c, d);
    store(rows[0] + i, _mm_unpacklo_epi64(ab01, cd01));
    store(rows[1] + i, _mm_unpackhi_epi64(ab01, cd01));
    store(rows[2] + i, _mm_unpacklo_epi64(ab23, cd23));
    store(rows[3] + i, _mm_unpackhi_epi64(ab23, cd23));
  }
  return i;
}

size_t reverse(const uint8_t* row, size_t count, uint8_t* out) {
  const __m128i backwards = _mm_setr_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  size_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    store(out + count - i - kStep, _mm_shuffle_epi8(load(row + i), backwards));
  }
  return i;
}

__m256 values_of(const uint8_t* eight, __m256 scale, __m256 bias) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(eight));
  return _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)), scale, bias);
}

size_t to_f16(const uint8_t* row, size_t count, float scale, float bias, uint16_t* out) {
  const __m256 scales = _mm256_set1_ps(scale), biases = _mm256_set1_ps(bias);
  size_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    store(out + i, _mm256_cvtps_ph(values_of(row + i, scales, biases), _MM_FROUND_TO_NEAREST_INT));
    store(out + i + 8, _mm256_cvtps_ph(values_of(row + i + 8, scales, biases), _MM_FROUND_TO_NEAREST_INT));
  }
  return i;
}

__m256i bf16_of(__m256 value) {
  const __m256i bits = _mm256_castps_si256(value);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFF)), odd);
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i none = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
  return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, none), 16);
}

size_t to_bf16(const uint8_t* row, size_t count, float scale, float bias, uint16_t* out) {
  const __m256 scales = _mm256_set1_ps(scale), biases = _mm256_set1_ps(bias);
  size_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    const __m256i both = _mm256_packus_epi32(bf16_of(values_of(row + i, scales, biases)),
                                             bf16_of(values_of(row + i + 8, scales, biases)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), _mm256_permute4x64_epi64(both, 0xD8));
  }
  return i;
}

size_t to_f32(const uint8_t* row, size_t count, float scale, float bias, uint32_t* out) {
  const __m256 scales = _mm256_set1_ps(scale), biases = _mm256_set1_ps(bias);
  size_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), _mm256_castps_si256(values_of(row + i, scales, biases)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i + 8),
                        _mm256_castps_si256(values_of(row + i + 8, scales, biases)));
  }
  return i;
}

}  // namespace

const RowWriter kAvx2RowWriter = {split3, split4, reverse, to_f16, to_bf16, to_f32};

}  // namespace loader
