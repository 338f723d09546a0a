// Decoded pixels to what a tensor holds. On a CPU; kernels/ does the same for a GPU, to the bit.
#pragma once

#include <cstdint>
#include <vector>

#include "l3/l3_loader.h"
#include "row_writer.h"

namespace loader {

// Nearest, ties to even; what is not a number stays one.
uint16_t to_f16(float value);
uint16_t to_bf16(float value);

// Bytes of a value.
uint32_t value_bytes(uint32_t type);

class TensorWriter {
 public:
  // For samples of `bits` bits in `channels` channels, which are bytes, or from 9 bits on two of them. The type that is
  // wanted is not L3_VALUE_STORED, and has room for the samples.
  TensorWriter(const l3_tensor_options& wanted, uint32_t bits, uint32_t channels);

  // Whether pixels are already what is wanted of them, but for mirroring.
  bool is_same() const { return is_same_; }
  // Rows of pixels without gaps to a tensor without gaps.
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
  const RowWriter* vectors_ = nullptr;  // where they can do it
  std::vector<uint32_t> table_;         // what each sample of each channel becomes
};

}  // namespace loader
