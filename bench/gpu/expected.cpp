// What a case's output must be, computed from the pictures by the processor.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "case.h"

namespace gpu_bench {
namespace {

// The nearest half, ties to even. `value` is finite.
uint16_t half_of(float value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::fabs(static_cast<double>(value));
  if (size >= 65520) return sign | 0x7C00;
  int exponent = 0;
  std::frexp(size, &exponent);
  exponent = std::max(exponent - 1, -14);
  const auto steps = static_cast<uint32_t>(std::nearbyint(std::ldexp(size, 10 - exponent)));  // 1024 to 2048, or small
  return static_cast<uint16_t>(sign | (steps < 1024 ? steps : (static_cast<uint32_t>(exponent + 14) << 10) + steps));
}

uint16_t bfloat_of(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, 4);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

// A sample as it is written, in the low bytes.
uint32_t converted(const Case& a_case, uint32_t sample, uint32_t channel) {
  if (a_case.type == L3_CUDA_U8 || a_case.type == L3_CUDA_U16) return sample;
  const float value = std::fma(static_cast<float>(sample), a_case.scale, a_case.bias_of(channel));
  if (a_case.type == L3_CUDA_F16) return half_of(value);
  if (a_case.type == L3_CUDA_BF16) return bfloat_of(value);
  uint32_t bits = 0;
  std::memcpy(&bits, &value, 4);
  return bits;
}

bool item_is_right(const Case& a_case, const Item& item, const uint8_t* output) {
  const formats::Image& image = a_case.picture(item);
  const uint32_t channels = formats::channels(image.colour), in_bytes = formats::bytes_per_sample(image.bits);
  const uint32_t out_bytes = a_case.sample_bytes();
  const uint8_t* out = output + item.offset;
  const auto from = [&](uint32_t row) {
    return image.pixels.data() + ((size_t{item.y} + row) * image.width + item.x) * channels * in_bytes;
  };
  if (a_case.plain()) {
    const size_t row_bytes = size_t{item.width} * channels * in_bytes;
    for (uint32_t row = 0; row < item.height; ++row) {
      if (std::memcmp(out + row * row_bytes, from(row), row_bytes) != 0) return false;
    }
    return true;
  }
  // What each sample of 8 bits becomes, so that rounding need not be quick.
  std::vector<uint32_t> table;
  if (in_bytes == 1) {
    for (uint32_t i = 0; i < 256 * channels; ++i) table.push_back(converted(a_case, i % 256, i / 256));
  }
  const bool planes = a_case.layout == L3_CUDA_CHW;
  std::vector<uint8_t> line(size_t{item.width} * out_bytes * (planes ? 1 : channels));
  for (uint32_t row = 0; row < item.height; ++row) {
    const uint8_t* in = from(row);
    for (uint32_t channel = 0; channel < channels; ++channel) {
      for (uint32_t x = 0; x < item.width; ++x) {
        const size_t at = size_t{item.flip ? item.width - 1 - x : x} * channels + channel;
        uint32_t sample = 0;
        std::memcpy(&sample, in + at * in_bytes, in_bytes);  // GPUs' hosts are little-endian
        const uint32_t value = in_bytes == 1 ? table[256 * channel + sample] : converted(a_case, sample, channel);
        std::memcpy(&line[(planes ? x : size_t{x} * channels + channel) * out_bytes], &value, out_bytes);
      }
      if (!planes) continue;
      const uint8_t* there = out + (size_t{channel} * item.height + row) * line.size();
      if (std::memcmp(there, line.data(), line.size()) != 0) return false;
    }
    if (!planes && std::memcmp(out + row * line.size(), line.data(), line.size()) != 0) return false;
  }
  return true;
}

}  // namespace

uint64_t Case::decoded_bytes() const {
  uint64_t bytes = 0;
  for (const Item& item : items) {
    const formats::Image& image = picture(item);
    bytes +=
        uint64_t{item.width} * item.height * formats::channels(image.colour) * formats::bytes_per_sample(image.bits);
  }
  return bytes;
}

uint64_t Case::written_bytes() const {
  uint64_t bytes = 0;
  for (const Item& item : items) {
    bytes += uint64_t{item.width} * item.height * formats::channels(picture(item).colour) * sample_bytes();
  }
  return bytes;
}

bool Case::plain() const {
  bool plain = layout == L3_CUDA_HWC && (type == L3_CUDA_U8 || type == L3_CUDA_U16);
  for (const Item& item : items) plain = plain && !item.flip;
  return plain;
}

std::string difference(const Case& a_case, const uint8_t* output, uint8_t poison, base::Parallel& parallel) {
  std::atomic<uint64_t> wrong{UINT64_MAX};
  std::atomic<bool> outside{false};
  parallel.for_each(a_case.items.size(), [&](uint64_t i) {
    const Item& item = a_case.items[i];
    if (!item_is_right(a_case, item, output)) {
      uint64_t lowest = wrong;
      while (i < lowest && !wrong.compare_exchange_weak(lowest, i)) {
      }
    }
    const uint64_t bytes =
        uint64_t{item.width} * item.height * formats::channels(a_case.picture(item).colour) * a_case.sample_bytes();
    const uint64_t end = i + 1 < a_case.items.size() ? a_case.items[i + 1].offset : a_case.output_bytes;
    for (uint64_t at = item.offset + bytes; at < end; ++at) {
      if (output[at] != poison) outside = true;
    }
  });
  if (wrong != UINT64_MAX) return "image " + std::to_string(wrong) + " of the batch is not what it must be";
  return outside ? "something was written behind an image" : "";
}

}  // namespace gpu_bench
