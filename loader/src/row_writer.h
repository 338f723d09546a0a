// Rows of bytes to values, by a processor's vectors.
#pragma once

#include <cstddef>
#include <cstdint>

namespace loader {

// Each takes as many of `count` as are a multiple of 16, and says how many that is.
struct RowWriter {
  // Pixels of three or four channels to a row for each channel.
  size_t (*split3)(const uint8_t* pixels, size_t count, uint8_t* const rows[3]);
  size_t (*split4)(const uint8_t* pixels, size_t count, uint8_t* const rows[4]);
  // The first bytes to the end of `out`, the last one first.
  size_t (*reverse)(const uint8_t* row, size_t count, uint8_t* out);
  // sample * scale + bias, rounded as TensorWriter says.
  size_t (*to_f16)(const uint8_t* row, size_t count, float scale, float bias, uint16_t* out);
  size_t (*to_bf16)(const uint8_t* row, size_t count, float scale, float bias, uint16_t* out);
  size_t (*to_f32)(const uint8_t* row, size_t count, float scale, float bias, uint32_t* out);
};

// Null where this processor has none, or where L3_CPU asks for none.
const RowWriter* row_writer();

// For processors with AVX2, FMA and F16C.
extern const RowWriter kAvx2RowWriter;

}  // namespace loader
