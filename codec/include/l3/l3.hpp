// A thin C++20 wrapper of l3.h. It takes spans, returns vectors, and returns errors as values. See l3.h for the
// contracts.
#pragma once

#if __cplusplus < 202002L
#error "l3.hpp needs C++20: compile with -std=c++20, or use l3.h, which is C"
#endif

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "l3/l3.h"

namespace l3 {

// Describes an error in words: "offset 44: the check of the head does not match".
inline std::string message(const l3_error& error) {
  std::string text;
  if (error.status != L3_ERROR_ARGUMENT && error.status != L3_ERROR_BUFFER && error.status != L3_ERROR_MEMORY &&
      error.status != L3_ERROR_DEVICE) {
    text = "offset " + std::to_string(error.offset) + ": ";
  }
  text += error.reason;
  if (error.tile != L3_NO_TILE) text += " (tile " + std::to_string(error.tile) + ")";
  return text;
}

// A value or an error. Test it with `if (result)` first: * and -> are valid only if it is true, error() only if it is
// false.
template <class Value>
class [[nodiscard]] Result {
 public:
  Result(Value value) : value_(std::move(value)) {}
  Result(const l3_error& error) : value_(error) {}

  explicit operator bool() const { return value_.index() == 0; }
  Value& operator*() { return *std::get_if<0>(&value_); }
  const Value& operator*() const { return *std::get_if<0>(&value_); }
  Value* operator->() { return std::get_if<0>(&value_); }
  const Value* operator->() const { return std::get_if<0>(&value_); }
  const l3_error& error() const { return *std::get_if<1>(&value_); }

 private:
  std::variant<Value, l3_error> value_;
};

// A decoded image: interleaved samples without padding, uint8_t, or uint16_t in native byte order above 8 bits.
struct Pixels {
  l3_info info;
  std::vector<uint8_t> bytes;
};

inline l3_limits no_limits() { return {UINT64_MAX, UINT64_MAX, UINT64_MAX}; }

inline Result<l3_info> read_info(std::span<const uint8_t> file, const l3_limits& limits = {}) {
  l3_info info = l3_info_init();
  l3_error error{};
  if (l3_read_info(file.data(), file.size(), &limits, &info, &error) != L3_OK) return error;
  return info;
}

// Decodes into the caller's memory. l3_decode, with rows that have no padding.
[[nodiscard]] inline l3_status decode_into(std::span<const uint8_t> file, std::span<uint8_t> out,
                                           const l3_decode_options& options = l3_decode_options_init(),
                                           l3_error* error = nullptr) {
  return l3_decode(file.data(), file.size(), &options, out.data(), out.size(), 0, error);
}

// Decodes the region of `width` by `height` pixels whose upper left pixel is (x, y). Allocates memory for the pixels
// only after the file has passed l3_check.
inline Result<Pixels> decode_region(std::span<const uint8_t> file, uint32_t x, uint32_t y, uint32_t width,
                                    uint32_t height, const l3_decode_options& options = l3_decode_options_init()) {
  l3_error error{};
  l3_info info = l3_info_init();
  // The limits apply to the region, not to the image. l3_decode_region checks them.
  const l3_limits any = no_limits();
  if (l3_read_info(file.data(), file.size(), &any, &info, &error) != L3_OK) return error;
  if (width > info.width || height > info.height) {
    return l3_error{L3_ERROR_ARGUMENT, 0, L3_NO_TILE, "the region is not inside the image"};
  }
  const uint64_t maximum =
      options.limits.max_output_bytes != 0 ? options.limits.max_output_bytes : L3_DEFAULT_MAX_OUTPUT_BYTES;
  // A hostile header can claim a huge image. Make sure that a whole file follows before allocating anything.
  if (l3_check(file.data(), file.size(), &any, &error) != L3_OK) return error;
  const uint64_t size = uint64_t{width} * height * l3_pixel_bytes(&info, file.data(), file.size(), &options);
  if (size > maximum) return l3_error{L3_ERROR_LIMIT, 20, L3_NO_TILE, "more bytes of samples than the limit allows"};
  Pixels pixels{info, {}};
  try {
    pixels.bytes.resize(static_cast<size_t>(size));
  } catch (const std::bad_alloc&) {
    return l3_error{L3_ERROR_MEMORY, 0, L3_NO_TILE, "out of memory"};
  }
  const l3_status status = l3_decode_region(file.data(), file.size(), x, y, width, height, &options,
                                            pixels.bytes.data(), pixels.bytes.size(), 0, &error);
  if (status != L3_OK) return error;
  return pixels;
}

// Decodes a whole image. `options.limits` applies to the image.
inline Result<Pixels> decode(std::span<const uint8_t> file,
                             const l3_decode_options& options = l3_decode_options_init()) {
  const Result<l3_info> info = read_info(file, options.limits);
  if (!info) return info.error();
  return decode_region(file, 0, 0, info->width, info->height, options);
}

// Encodes an image and returns the file.
inline Result<std::vector<uint8_t>> encode(const l3_image& image,
                                           const l3_encode_options& options = l3_encode_options_init()) {
  const uint64_t bound = l3_encode_bound(&image, &options);
  l3_error error{};
  size_t written = 0;
  std::vector<uint8_t> file;
  try {
    file.resize(static_cast<size_t>(bound != 0 ? bound : 1));  // if the bound is 0, l3_encode reports the reason
  } catch (const std::bad_alloc&) {
    return l3_error{L3_ERROR_MEMORY, 0, L3_NO_TILE, "out of memory"};
  }
  if (l3_encode(&image, &options, file.data(), file.size(), &written, &error) != L3_OK) return error;
  file.resize(written);
  return file;
}

}  // namespace l3
