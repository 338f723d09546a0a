// A thin C++20 wrapper of l3.h. It takes spans, returns vectors, and returns errors as values. See l3.h for the
// contracts.
#pragma once

#if defined(_MSVC_LANG) ? _MSVC_LANG < 202002L : __cplusplus < 202002L
#error "l3.hpp needs C++20: compile with -std=c++20, or use l3.h, which is C"
#endif

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
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

namespace detail {
// Resizes a vector, or sets the error and returns false.
inline bool resize(std::vector<uint8_t>& bytes, uint64_t size, l3_error& error) {
  try {
    bytes.resize(static_cast<size_t>(size));
    return true;
  } catch (const std::exception&) {
    error = {L3_ERROR_MEMORY, 0, L3_NO_TILE, "out of memory"};
    return false;
  }
}
}  // namespace detail

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

// An opened file: its head, index, sections and model are verified once, for any number of calls. The bytes, and the
// models in the options, must stay valid. Any number of threads may decode from it.
class File {
 public:
  static Result<File> open(std::span<const uint8_t> bytes,
                           const l3_decode_options& options = l3_decode_options_init()) {
    return open_with(bytes, options, sizeof(l3_info));
  }
  // The same for callers that need the pixels only: the digest in info(), and what comes after it, stay zero. The
  // digest of a tiny file is a SHA-256 of all its bytes.
  static Result<File> open_for_pixels(std::span<const uint8_t> bytes,
                                      const l3_decode_options& options = l3_decode_options_init()) {
    return open_with(bytes, options, offsetof(l3_info, digest));
  }

  std::span<const uint8_t> bytes() const { return bytes_; }
  const l3_info& info() const { return info_; }
  uint32_t pixel_bytes() const { return l3_file_pixel_bytes(file_.get()); }
  const l3_file* get() const { return file_.get(); }

  // Returns the bytes of a section. Empty if the file has no such section.
  Result<std::span<const uint8_t>> section(l3_section_type type) const {
    const uint8_t* bytes = nullptr;
    size_t size = 0;
    l3_error error{};
    if (l3_file_section(get(), static_cast<uint32_t>(type), &bytes, &size, &error) != L3_OK) return error;
    return std::span(bytes, size);
  }

  // Returns red, green and blue of each entry of the palette. Empty if there is no palette.
  Result<std::vector<uint8_t>> palette() const {
    std::vector<uint8_t> colours;
    uint32_t entries = 0;
    l3_error error{};
    if (!detail::resize(colours, size_t{3} * 256, error)) return error;
    if (l3_file_palette(get(), colours.data(), colours.size(), &entries, &error) != L3_OK) return error;
    colours.resize(size_t{3} * entries);
    return colours;
  }

  // Returns the unpacked metadata. Empty if there is none.
  Result<std::vector<uint8_t>> metadata() const {
    std::vector<uint8_t> bytes;
    size_t size = 0;
    l3_error error{};
    if (l3_file_metadata(get(), nullptr, 0, &size, &error) != L3_OK) return error;
    if (!detail::resize(bytes, size + 1, error)) return error;  // one more, so that the pointer is never null
    if (l3_file_metadata(get(), bytes.data(), size, &size, &error) != L3_OK) return error;
    bytes.resize(size);
    return bytes;
  }

  // Verifies the whole file, as l3_verify does.
  [[nodiscard]] l3_status verify(l3_error* error = nullptr) const { return l3_file_verify(get(), error); }

  // Decodes the whole image. The limits of the options apply to it.
  Result<Pixels> decode() const {
    return make_pixels(info_.width, info_.height, [this](uint8_t* out, size_t size, l3_error* error) {
      return l3_file_decode(file_.get(), out, size, 0, error);
    });
  }

  // Decodes the region of `width` by `height` pixels whose upper left pixel is (x, y). The limits apply to the region.
  Result<Pixels> decode_region(uint32_t x, uint32_t y, uint32_t width, uint32_t height) const {
    return make_pixels(width, height, [=, this](uint8_t* out, size_t size, l3_error* error) {
      return l3_file_decode_region(file_.get(), x, y, width, height, out, size, 0, error);
    });
  }

 private:
  struct Close {
    void operator()(l3_file* file) const { l3_close(file); }
  };

  File() = default;

  static Result<File> open_with(std::span<const uint8_t> bytes, const l3_decode_options& options, size_t info_bytes) {
    File file;
    l3_error error{};
    l3_file* opened = nullptr;
    if (l3_open(bytes.data(), bytes.size(), &options, nullptr, 0, &opened, &error) != L3_OK) return error;
    file.file_.reset(opened);
    file.bytes_ = bytes;
    file.info_.struct_size = static_cast<uint32_t>(info_bytes);
    if (l3_file_info(opened, &file.info_, &error) != L3_OK) return error;
    return file;
  }

  template <class Decode>
  Result<Pixels> make_pixels(uint32_t width, uint32_t height, const Decode& decode) const {
    l3_error error{};
    // Without room for pixels the call verifies the region and the limits. Nothing is allocated before that.
    uint8_t none = 0;
    if (decode(&none, 0, &error) != L3_ERROR_BUFFER) return error;
    Pixels pixels{info_, {}};
    if (!detail::resize(pixels.bytes, uint64_t{width} * height * pixel_bytes(), error)) return error;
    if (decode(pixels.bytes.data(), pixels.bytes.size(), &error) != L3_OK) return error;
    return pixels;
  }

  std::unique_ptr<l3_file, Close> file_;
  std::span<const uint8_t> bytes_;
  l3_info info_ = l3_info_init();
};

// Decodes a region of a file, as File::decode_region does. Allocates memory for the pixels only after the file has
// passed l3_check.
inline Result<Pixels> decode_region(std::span<const uint8_t> file, uint32_t x, uint32_t y, uint32_t width,
                                    uint32_t height, const l3_decode_options& options = l3_decode_options_init()) {
  const Result<File> opened = File::open(file, options);
  if (!opened) return opened.error();
  return opened->decode_region(x, y, width, height);
}

// Decodes a whole image. `options.limits` applies to the image.
inline Result<Pixels> decode(std::span<const uint8_t> file,
                             const l3_decode_options& options = l3_decode_options_init()) {
  const Result<File> opened = File::open(file, options);
  if (opened) return opened->decode();
  // If an image above the limits is damaged too, the limit is the reason.
  const Result<l3_info> info = read_info(file, options.limits);
  return info ? opened.error() : info.error();
}

// Encodes an image and returns the file.
inline Result<std::vector<uint8_t>> encode(const l3_image& image,
                                           const l3_encode_options& options = l3_encode_options_init()) {
  const uint64_t bound = l3_encode_bound(&image, &options);
  l3_error error{};
  size_t written = 0;
  std::vector<uint8_t> file;
  // If the bound is 0, l3_encode reports the reason.
  if (!detail::resize(file, bound != 0 ? bound : 1, error)) return error;
  if (l3_encode(&image, &options, file.data(), file.size(), &written, &error) != L3_OK) return error;
  file.resize(written);
  return file;
}

}  // namespace l3
