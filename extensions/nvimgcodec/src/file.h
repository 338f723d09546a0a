// An L3 file in a stream of nvImageCodec, and what its decoded pixels are.
#pragma once

#include <span>

#include "l3/l3.h"
#include "stream.h"

namespace l3_nvimgcodec {

// Palette images count as what their colours are: 8-bit RGB, or RGBA if there is transparency.
class File {
 public:
  explicit File(const nvimgcodecIoStreamDesc_t& stream) : bytes_(stream) {}
  ~File() { l3_close(file_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  // Verifies all but the payloads. No other function may be called before it has succeeded. `limits` are for the whole
  // image; null: there are none.
  bool open(const l3_limits* limits, l3_error& error);

  std::span<const uint8_t> bytes() const { return {bytes_.data(), bytes_.size()}; }
  const l3_info& info() const { return info_; }

  uint32_t width() const { return info_.width; }
  uint32_t height() const { return info_.height; }
  uint32_t channels() const { return channels_; }
  uint32_t bits() const { return bits_; }                // significant bits of a sample
  uint32_t orientation() const { return orientation_; }  // as in EXIF: 1 to 8

  // Decodes a region to interleaved samples, uint16_t if there are more than 8 bits.
  bool decode(uint32_t x, uint32_t y, uint32_t width, uint32_t height, void* out, size_t out_size, size_t stride,
              l3_error& error) const {
    return l3_file_decode_region(file_, x, y, width, height, out, out_size, stride, &error) == L3_OK;
  }

 private:
  StreamBytes bytes_;
  l3_decode_options options_ = l3_decode_options_init();
  l3_file* file_ = nullptr;
  l3_info info_ = l3_info_init();
  uint32_t channels_ = 0, bits_ = 0, orientation_ = 1;
};

}  // namespace l3_nvimgcodec
