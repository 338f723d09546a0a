#include "tensor_writer.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace loader {

uint16_t to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

uint16_t to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude >= 0x47800000) {  // 2^16 and above, infinite, not a number
    const uint32_t payload = magnitude > 0x7F800000 ? 0x200 | ((magnitude >> 13) & 0x3FF) : 0;
    return static_cast<uint16_t>(sign | 0x7C00 | payload);
  }
  if (magnitude < 0x38800000) {                                      // below 2^-14: a multiple of 2^-24
    if (magnitude < 0x33000000) return static_cast<uint16_t>(sign);  // below 2^-25
    const uint32_t exponent = magnitude >> 23;
    const uint32_t mantissa = (magnitude & 0x7FFFFF) | 0x800000;
    const uint32_t shift = 126 - exponent;  // 14 to 24
    const uint32_t half = 1u << (shift - 1), rest = mantissa & ((1u << shift) - 1);
    uint32_t value16 = mantissa >> shift;
    if (rest > half || (rest == half && (value16 & 1) != 0)) ++value16;
    return static_cast<uint16_t>(sign | value16);
  }
  // Rounding up may carry into the exponent, up to infinity, which is as it should be.
  const uint32_t rounded = magnitude - 0x38000000 + 0xFFF + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | (rounded >> 13));
}

uint32_t value_bytes(uint32_t type) {
  switch (type) {
    case L3_VALUE_U8: return 1;
    case L3_VALUE_F32: return 4;
    default: return 2;
  }
}

TensorWriter::TensorWriter(const l3_wanted& wanted, uint32_t bits, uint32_t channels)
    : bits_(bits), channels_(channels), type_(wanted.type), planes_(wanted.layout == L3_LAYOUT_CHW && channels > 1) {
  const bool is_integer = type_ == L3_VALUE_U8 || type_ == L3_VALUE_U16;
  is_same_ = is_integer && !planes_ && value_bytes(type_) == (bits > 8 ? 2 : 1);
  if (is_integer) return;
  const bool no_scale = wanted.scale[0] == 0 && wanted.scale[1] == 0 && wanted.scale[2] == 0 && wanted.scale[3] == 0;
  table_.resize(size_t{channels} << bits);
  for (uint32_t c = 0; c < channels; ++c) {
    for (uint32_t sample = 0; sample < 1u << bits; ++sample) {
      const float value = std::fma(static_cast<float>(sample), no_scale ? 1.0f : wanted.scale[c], wanted.bias[c]);
      table_[(size_t{c} << bits) + sample] = type_ == L3_VALUE_F16    ? to_f16(value)
                                             : type_ == L3_VALUE_BF16 ? to_bf16(value)
                                                                      : std::bit_cast<uint32_t>(value);
    }
  }
}

template <class In, class Out, bool kFlip, bool kPlanes>
void TensorWriter::write_rows(const In* pixels, uint32_t width, uint32_t height, Out* out) const {
  const uint32_t channels = channels_;
  const uint32_t* table = table_.data();
  const bool looks_up = !table_.empty();
  for (uint32_t y = 0; y < height; ++y) {
    const In* row = pixels + size_t{y} * width * channels;
    for (uint32_t c = 0; c < channels; ++c) {
      const size_t step = kPlanes ? 1 : channels;
      Out* to = kPlanes ? out + (size_t{c} * height + y) * width : out + size_t{y} * width * channels + c;
      const uint32_t* of_channel = table + (looks_up ? size_t{c} << bits_ : 0);
      const In* from = row + c + (kFlip ? size_t{width - 1} * channels : 0);
      const ptrdiff_t back = kFlip ? -static_cast<ptrdiff_t>(channels) : static_cast<ptrdiff_t>(channels);
      if (looks_up) {
        for (uint32_t x = 0; x < width; ++x, from += back, to += step) *to = static_cast<Out>(of_channel[*from]);
      } else {
        for (uint32_t x = 0; x < width; ++x, from += back, to += step) *to = static_cast<Out>(*from);
      }
    }
  }
}

template <class In, class Out>
void TensorWriter::write_as(const In* pixels, uint32_t width, uint32_t height, bool flip, Out* out) const {
  if (flip) {
    planes_ ? write_rows<In, Out, true, true>(pixels, width, height, out)
            : write_rows<In, Out, true, false>(pixels, width, height, out);
  } else {
    planes_ ? write_rows<In, Out, false, true>(pixels, width, height, out)
            : write_rows<In, Out, false, false>(pixels, width, height, out);
  }
}

void TensorWriter::write(const uint8_t* pixels, uint32_t width, uint32_t height, bool flip, uint8_t* out) const {
  const auto with_input = [&](const auto* in) {
    switch (value_bytes(type_)) {
      case 1: return write_as(in, width, height, flip, out);
      case 2: return write_as(in, width, height, flip, reinterpret_cast<uint16_t*>(out));
      default: return write_as(in, width, height, flip, reinterpret_cast<uint32_t*>(out));
    }
  };
  bits_ > 8 ? with_input(reinterpret_cast<const uint16_t*>(pixels)) : with_input(pixels);
}

}  // namespace loader
