#include "loader/tensor_writer.h"

#ifdef L3_HAS_AVX2_ROWS
#include <cpuid.h>
#endif

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "row_writer.h"

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
  // Rounding up may carry into the exponent, and become infinity. That is correct.
  const uint32_t rounded = magnitude - 0x38000000 + 0xFFF + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | (rounded >> 13));
}

#ifdef L3_HAS_AVX2_ROWS
namespace {

// Clang 14 does not support this name in __builtin_cpu_supports.
bool has_f16c() {
  // In a virtual machine the instruction takes microseconds.
  static const bool has = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
  }();
  return has;
}

}  // namespace
#endif

const RowWriter* row_writer() {
#ifdef L3_HAS_AVX2_ROWS
  const char* target = l3_cpu_target();
  if (target != nullptr && std::strcmp(target, "portable") != 0 && __builtin_cpu_supports("avx2") &&
      __builtin_cpu_supports("fma") && has_f16c()) {
    return &kAvx2RowWriter;
  }
#endif
  return nullptr;
}

uint32_t value_bytes(uint32_t type) {
  switch (type) {
    case L3_VALUE_U8: return 1;
    case L3_VALUE_F32:
    case L3_VALUE_I32: return 4;
    case L3_VALUE_I64: return 8;
    default: return 2;
  }
}

TensorWriter::TensorWriter(const l3_tensor_options& wanted, uint32_t bits, uint32_t channels)
    : bits_(bits), channels_(channels), type_(wanted.type), planes_(wanted.layout == L3_LAYOUT_CHW && channels > 1) {
  const bool is_integer = type_ < L3_VALUE_F16 || type_ > L3_VALUE_F32;
  is_same_ = is_integer && !planes_ && value_bytes(type_) == (bits > 8 ? 2 : 1);
  const bool no_scale = std::all_of(wanted.scale, wanted.scale + 4, [](float scale) { return scale == 0; });
  for (uint32_t c = 0; c < 4; ++c) {
    scale_[c] = no_scale ? 1.0f : wanted.scale[c];
    bias_[c] = wanted.bias[c];
  }
  if (bits <= 8 && (type_ == L3_VALUE_U8 || !is_integer) && (channels == 1 || (planes_ && channels >= 3)))
    vectors_ = row_writer();
  if (is_integer) return;
  table_.resize(size_t{channels} << bits);
  for (uint32_t c = 0; c < channels; ++c) {
    for (uint32_t sample = 0; sample < 1u << bits; ++sample) {
      const float value = std::fma(static_cast<float>(sample), scale_[c], bias_[c]);
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

// Writes a row of one channel.
void TensorWriter::write_row_with_vectors(uint32_t channel, const uint8_t* row, uint32_t width, uint8_t* out) const {
  const float scale = scale_[channel], bias = bias_[channel];
  const uint32_t* table = table_.data() + (size_t{channel} << bits_);
  auto* wide = reinterpret_cast<uint16_t*>(out);
  auto* widest = reinterpret_cast<uint32_t*>(out);
  if (type_ == L3_VALUE_F32) {
    for (size_t x = vectors_->to_f32(row, width, scale, bias, widest); x < width; ++x) widest[x] = table[row[x]];
  } else {
    const auto convert = type_ == L3_VALUE_F16 ? vectors_->to_f16 : vectors_->to_bf16;
    for (size_t x = convert(row, width, scale, bias, wide); x < width; ++x)
      wide[x] = static_cast<uint16_t>(table[row[x]]);
  }
}

// Works row by row: splits into channels, mirrors, converts.
void TensorWriter::write_with_vectors(const uint8_t* pixels, uint32_t width, uint32_t height, bool flip,
                                      uint8_t* out) const {
  const uint32_t channels = channels_;
  const size_t value = value_bytes(type_);
  const bool converts = type_ != L3_VALUE_U8;
  std::vector<uint8_t> room(size_t{width} * (channels + 1));
  uint8_t* const turned = room.data() + size_t{width} * channels;
  for (uint32_t y = 0; y < height; ++y, pixels += size_t{width} * channels) {
    uint8_t* to[4] = {};
    uint8_t* rows[4] = {};
    for (uint32_t c = 0; c < channels; ++c) {
      to[c] = out + (size_t{c} * height + y) * width * value;
      rows[c] = converts || flip ? room.data() + size_t{c} * width : to[c];
    }
    if (channels > 1) {
      const size_t begun =
          channels == 3 ? vectors_->split3(pixels, width, rows) : vectors_->split4(pixels, width, rows);
      for (size_t x = begun; x < width; ++x) {
        for (uint32_t c = 0; c < channels; ++c) rows[c][x] = pixels[x * channels + c];
      }
    }
    for (uint32_t c = 0; c < channels; ++c) {
      const uint8_t* row = channels > 1 ? rows[c] : pixels;
      if (flip) {
        uint8_t* const back = converts ? turned : to[c];
        for (size_t x = vectors_->reverse(row, width, back); x < width; ++x) back[width - 1 - x] = row[x];
        row = back;
      }
      if (converts) write_row_with_vectors(c, row, width, to[c]);
    }
  }
}

void TensorWriter::write(const uint8_t* pixels, uint32_t width, uint32_t height, bool flip, uint8_t* out) const {
  if (is_same_ && !flip) {
    std::memcpy(out, pixels, size_t{width} * height * channels_ * value_bytes(type_));
    return;
  }
  if (vectors_ != nullptr) return write_with_vectors(pixels, width, height, flip, out);
  const auto with_input = [&](const auto* in) {
    switch (value_bytes(type_)) {
      case 1: return write_as(in, width, height, flip, out);
      case 2: return write_as(in, width, height, flip, reinterpret_cast<uint16_t*>(out));
      case 4: return write_as(in, width, height, flip, reinterpret_cast<uint32_t*>(out));
      default: return write_as(in, width, height, flip, reinterpret_cast<uint64_t*>(out));
    }
  };
  bits_ > 8 ? with_input(reinterpret_cast<const uint16_t*>(pixels)) : with_input(pixels);
}

}  // namespace loader
