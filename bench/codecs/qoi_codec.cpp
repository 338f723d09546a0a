// QOI by the reference implementation, a header in Debian's libqoi-dev. It stores RGB and RGBA of 8 bits.
#include <cstdlib>
#include <cstring>
#include <memory>

#include "codec.h"
#include "gray_as_colours.h"

#define QOI_IMPLEMENTATION
#define QOI_NO_STDIO
#include <qoi.h>

namespace bench {
namespace {

struct Free {
  void operator()(void* bytes) const { std::free(bytes); }
};

std::string version() { return "qoi.h, format 1"; }  // the header has no version

std::string cannot_hold(const formats::Image& image) {
  if (uint64_t{image.width} * image.height >= QOI_PIXELS_MAX) return "so many pixels";
  return not_eight_bits(image, UINT32_MAX);
}

std::optional<formats::Error> encode(const formats::Image& image, int, bridge::Buffer& file) {
  thread_local bridge::Buffer room;
  const qoi_desc shape = {image.width, image.height, static_cast<unsigned char>(colour_channels(image)), QOI_SRGB};
  int size = 0;
  const std::unique_ptr<void, Free> bytes(qoi_encode(as_colours(image, room), &shape, &size));
  if (bytes == nullptr) return failed("qoi_encode fails");
  // This copy takes far less time than the encoding.
  std::memcpy(file.reset(static_cast<size_t>(size)), bytes.get(), static_cast<size_t>(size));
  return std::nullopt;
}

std::optional<formats::Error> decode(std::span<const uint8_t> file, formats::Image& image) {
  thread_local bridge::Buffer room;
  qoi_desc shape{};
  const uint32_t channels = colour_channels(image);
  if (file.size() > INT32_MAX) return failed("too large");
  const std::unique_ptr<void, Free> pixels(
      qoi_decode(file.data(), static_cast<int>(file.size()), &shape, static_cast<int>(channels)));
  if (pixels == nullptr) return failed("damaged");
  if (shape.width != image.width || shape.height != image.height) return failed("another size");
  std::memcpy(colours_of(image, room), pixels.get(), size_t{image.width} * image.height * channels);
  take_colours(image, room);
  return std::nullopt;
}

constexpr Adapter kAdapter = {version, cannot_hold, encode, decode};

}  // namespace

const Adapter* qoi_adapter() { return &kAdapter; }

}  // namespace bench
