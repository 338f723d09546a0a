// PNG by libpng, through formats/.
#include <png.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "codec.h"
#include "png_files.h"

namespace bench {
namespace {

std::string version() { return std::string("libpng ") + png_get_libpng_ver(nullptr); }

std::optional<formats::Error> decode(std::span<const uint8_t> file, formats::Image& image) {
  formats::ReadOptions unlimited;
  unlimited.max_pixels = UINT64_MAX;
  unlimited.max_bytes = UINT64_MAX;
  formats::Result<formats::Image> read = formats::read(file, unlimited);
  if (!read) return read.error();
  image = std::move(*read);
  return std::nullopt;
}

constexpr Adapter kSupplied = {version, png_cannot_hold, encode_png, decode, is_png, true, false};
constexpr Adapter kAtLevel = {version, png_cannot_hold, encode_png, decode, nullptr, true, false};

}  // namespace

std::optional<formats::Error> encode_png(const formats::Image& image, int level, bridge::Buffer& file) {
  formats::WriteOptions options;
  options.png_level = level;
  const formats::Result<std::vector<uint8_t>> written = formats::write(formats::Format::png, image, options);
  if (!written) return written.error();
  // This copy takes less than a thousandth of libpng's time.
  std::memcpy(file.reset(written->size()), written->data(), written->size());
  return std::nullopt;
}

std::string png_cannot_hold(const formats::Image& image) {
  const uint32_t bits = image.bits;
  const bool few_channels = image.colour == formats::Colour::gray || image.colour == formats::Colour::palette;
  if (bits == 8 || bits == 16 || (few_channels && (bits == 1 || bits == 2 || bits == 4))) return "";
  return std::to_string(bits) + (bits == 1 ? " bit" : " bits");
}

bool is_png(std::span<const uint8_t> supplied) {
  constexpr std::array<uint8_t, 4> kStart = {0x89, 'P', 'N', 'G'};
  return supplied.size() >= kStart.size() && std::equal(kStart.begin(), kStart.end(), supplied.begin());
}

const Adapter* png_adapter() { return &kSupplied; }
const Adapter* png_level_adapter() { return &kAtLevel; }

}  // namespace bench
