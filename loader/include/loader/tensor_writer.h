// Converts decoded pixels to the values of a tensor, on a CPU. kernels/ does the same on a GPU, with the same bits.
#pragma once

#include <cstdint>
#include <vector>

#include "l3/l3_loader.h"

namespace loader {

// Rounds to nearest, ties to even. NaN stays NaN.
uint16_t to_f16(float value);
uint16_t to_bf16(float value);

// The size of a value in bytes.
uint32_t value_bytes(uint32_t type);

struct RowWriter;

class TensorWriter {
 public:
  // For `channels` channels of samples of `bits` bits, in one byte each up to 8 bits, else in two. The requested type
  // must not be L3_VALUE_STORED, and must have room for the samples.
  TensorWriter(const l3_tensor_options& wanted, uint32_t bits, uint32_t channels);

  // Whether the pixels need no conversion, apart from mirroring.
  bool is_same() const { return is_same_; }
  // Converts contiguous rows of pixels to a contiguous tensor.
  void write(const uint8_t* pixels, uint32_t width, uint32_t height, bool flip, uint8_t* out) const;

 private:
  template <class In, class Out>
  void write_as(const In* pixels, uint32_t width, uint32_t height, bool flip, Out* out) const;
  template <class In, class Out, bool kFlip, bool kPlanes>
  void write_rows(const In* pixels, uint32_t width, uint32_t height, Out* out) const;

  void write_with_vectors(const uint8_t* pixels, uint32_t width, uint32_t height, bool flip, uint8_t* out) const;
  void write_row_with_vectors(uint32_t channel, const uint8_t* row, uint32_t width, uint8_t* out) const;

  uint32_t bits_, channels_, type_;
  float scale_[4], bias_[4];
  bool planes_;
  bool is_same_;
  const RowWriter* vectors_ = nullptr;  // null if vector instructions cannot do this conversion
  std::vector<uint32_t> table_;         // the value of each sample of each channel
};

}  // namespace loader
