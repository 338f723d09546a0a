// WebP by libwebp: lossless as with `cwebp -z 6`, and lossy.
#include <webp/decode.h>
#include <webp/encode.h>

#include <cstring>

#include "codec.h"
#include "gray_as_colours.h"

namespace bench {
namespace {

std::string version() {
  const int number = WebPGetEncoderVersion();
  return "libwebp " + std::to_string(number >> 16) + "." + std::to_string(number >> 8 & 255) + "." +
         std::to_string(number & 255);
}

std::string cannot_hold(const formats::Image& image) { return not_eight_bits(image, WEBP_MAX_DIMENSION); }

std::string cannot_hold_lossy(const formats::Image& image) {
  // A changed index is a different colour, not a similar one, so lossy coding makes no sense.
  return image.colour == formats::Colour::palette ? "palette" : cannot_hold(image);
}

// Owns what libwebp allocates for one image.
struct Picture {
  WebPPicture picture;
  WebPMemoryWriter writer;
  bool valid;

  Picture() : picture(), writer(), valid(WebPPictureInit(&picture) != 0) {
    WebPMemoryWriterInit(&writer);
    picture.writer = WebPMemoryWrite;
    picture.custom_ptr = &writer;
  }
  ~Picture() {
    WebPPictureFree(&picture);
    WebPMemoryWriterClear(&writer);
  }
  Picture(const Picture&) = delete;
  Picture& operator=(const Picture&) = delete;
};

std::optional<formats::Error> encode_with(const WebPConfig& config, const formats::Image& image, bridge::Buffer& file) {
  thread_local bridge::Buffer room;
  Picture owned;
  if (!owned.valid) return failed("libwebp does not fit its headers");
  WebPPicture& picture = owned.picture;
  picture.use_argb = config.lossless;
  picture.width = static_cast<int>(image.width);
  picture.height = static_cast<int>(image.height);
  const int channels = static_cast<int>(colour_channels(image));
  const int stride = picture.width * channels;
  const uint8_t* const pixels = as_colours(image, room);
  const int taken =
      channels == 3 ? WebPPictureImportRGB(&picture, pixels, stride) : WebPPictureImportRGBA(&picture, pixels, stride);
  if (taken == 0) return failed("out of memory");
  if (WebPEncode(&config, &picture) == 0) {
    return failed("libwebp gives up with its error " + std::to_string(picture.error_code));
  }
  std::memcpy(file.reset(owned.writer.size), owned.writer.mem, owned.writer.size);
  return std::nullopt;
}

std::optional<formats::Error> encode(const formats::Image& image, int level, bridge::Buffer& file) {
  WebPConfig config;
  if (WebPConfigInit(&config) == 0 || WebPConfigLosslessPreset(&config, level) == 0) return failed("a wrong level");
  config.exact = 1;  // keep the colours of transparent pixels
  return encode_with(config, image, file);
}

std::optional<formats::Error> encode_lossy(const formats::Image& image, int level, bridge::Buffer& file) {
  WebPConfig config;
  if (WebPConfigPreset(&config, WEBP_PRESET_DEFAULT, static_cast<float>(level)) == 0) return failed("a wrong quality");
  return encode_with(config, image, file);
}

std::optional<formats::Error> decode(std::span<const uint8_t> file, formats::Image& image) {
  thread_local bridge::Buffer room;
  int width = 0, height = 0;
  if (WebPGetInfo(file.data(), file.size(), &width, &height) == 0) return failed("no WebP file");
  if (width != static_cast<int>(image.width) || height != static_cast<int>(image.height)) return failed("another size");
  uint8_t* const out = colours_of(image, room);
  const uint32_t channels = colour_channels(image);
  const size_t size = size_t{image.width} * image.height * channels;
  const int stride = width * static_cast<int>(channels);
  const uint8_t* const done = channels == 3 ? WebPDecodeRGBInto(file.data(), file.size(), out, size, stride)
                                            : WebPDecodeRGBAInto(file.data(), file.size(), out, size, stride);
  if (done == nullptr) return failed("damaged");
  take_colours(image, room);
  return std::nullopt;
}

constexpr Adapter kLossless = {version, cannot_hold, encode, decode};
constexpr Adapter kLossy = {version, cannot_hold_lossy, encode_lossy, decode};

}  // namespace

const Adapter* webp_adapter() { return &kLossless; }
const Adapter* webp_lossy_adapter() { return &kLossy; }

}  // namespace bench
