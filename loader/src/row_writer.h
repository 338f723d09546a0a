// Converts rows of bytes to values with vector instructions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace loader {

// Each function processes the largest multiple of 16 not above `count`, and returns that number.
struct RowWriter {
  // Splits pixels of three or four channels into one row per channel.
  size_t (*split3)(const uint8_t* pixels, size_t count, uint8_t* const rows[3]);
  size_t (*split4)(const uint8_t* pixels, size_t count, uint8_t* const rows[4]);
  // Writes the first bytes of the row to the end of `out`, in reverse order.
  size_t (*reverse)(const uint8_t* row, size_t count, uint8_t* out);
  // Computes sample * scale + bias, rounded as in TensorWriter.
  size_t (*to_f16)(const uint8_t* row, size_t count, float scale, float bias, uint16_t* out);
  size_t (*to_bf16)(const uint8_t* row, size_t count, float scale, float bias, uint16_t* out);
  size_t (*to_f32)(const uint8_t* row, size_t count, float scale, float bias, uint32_t* out);
};

// Returns null if this processor has no such instructions, or if L3_CPU excludes them.
const RowWriter* row_writer();

// For processors with AVX2, FMA and F16C.
extern const RowWriter kAvx2RowWriter;

}  // namespace loader
