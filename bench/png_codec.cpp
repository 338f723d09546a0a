// PNG by libpng, at its default level.
#include <algorithm>
#include <cstring>
#include <utility>

#include "codec.h"

namespace bench {
namespace {

std::optional<formats::Error> encode(const formats::Image& image, bridge::Buffer& file) {
  const formats::Result<std::vector<uint8_t>> written = formats::write(formats::Format::png, image);
  if (!written) return written.error();
  // Less than a thousandth of the time that libpng takes.
  std::memcpy(file.reset(written->size()), written->data(), written->size());
  return std::nullopt;
}

std::optional<formats::Error> decode(std::span<const uint8_t> file, formats::Image& image) {
  formats::ReadOptions unlimited;
  unlimited.max_pixels = UINT64_MAX;
  unlimited.max_bytes = UINT64_MAX;
  formats::Result<formats::Image> read = formats::read(file, unlimited);
  if (!read) return read.error();
  image = std::move(*read);
  return std::nullopt;
}

bool is_png(std::span<const uint8_t> supplied) {
  constexpr std::array<uint8_t, 4> kStart = {0x89, 'P', 'N', 'G'};
  return supplied.size() >= kStart.size() && std::equal(kStart.begin(), kStart.end(), supplied.begin());
}

}  // namespace

const Codec kPngCodec = {"png", encode, decode, is_png};

}  // namespace bench
