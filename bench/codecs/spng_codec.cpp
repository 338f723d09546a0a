// PNG by libspng. This adapter writes only samples, and for indices the palette that PNG requires.
#include <spng.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "codec.h"
#include "png_files.h"

namespace bench {
namespace {

struct FreeContext {
  void operator()(spng_ctx* context) const { spng_ctx_free(context); }
};
using Context = std::unique_ptr<spng_ctx, FreeContext>;

std::string version() { return std::string("libspng ") + spng_version_string(); }

uint8_t colour_type(formats::Colour colour) {
  switch (colour) {
    case formats::Colour::gray: return SPNG_COLOR_TYPE_GRAYSCALE;
    case formats::Colour::gray_alpha: return SPNG_COLOR_TYPE_GRAYSCALE_ALPHA;
    case formats::Colour::rgb: return SPNG_COLOR_TYPE_TRUECOLOR;
    case formats::Colour::rgb_alpha: return SPNG_COLOR_TYPE_TRUECOLOR_ALPHA;
    case formats::Colour::palette: return SPNG_COLOR_TYPE_INDEXED;
  }
  return SPNG_COLOR_TYPE_GRAYSCALE;
}

// PNG packs samples of fewer than 8 bits, from the highest bit of a byte on; rows begin with a byte.
size_t packed_row(const formats::Image& image) { return (size_t{image.width} * image.bits + 7) / 8; }

void pack(const formats::Image& image, uint8_t* out) {
  const uint8_t* in = image.pixels.data();
  std::memset(out, 0, packed_row(image) * image.height);
  for (uint32_t y = 0; y < image.height; ++y, in += image.width, out += packed_row(image)) {
    for (uint32_t x = 0, bit = 0; x < image.width; ++x, bit += image.bits) {
      out[bit / 8] = static_cast<uint8_t>(out[bit / 8] | uint32_t{in[x]} << (8 - image.bits - bit % 8));
    }
  }
}

void unpack(const uint8_t* in, formats::Image& image) {
  uint8_t* out = image.pixels.data();
  const uint32_t mask = (1U << image.bits) - 1;
  for (uint32_t y = 0; y < image.height; ++y, out += image.width, in += packed_row(image)) {
    for (uint32_t x = 0, bit = 0; x < image.width; ++x, bit += image.bits) {
      out[x] = static_cast<uint8_t>(uint32_t{in[bit / 8]} >> (8 - image.bits - bit % 8) & mask);
    }
  }
}

std::optional<formats::Error> encode(const formats::Image& image, int, bridge::Buffer& file) {
  thread_local bridge::Buffer room;
  const Context context(spng_ctx_new(SPNG_CTX_ENCODER));
  if (context == nullptr) return failed("out of memory");
  spng_ihdr header{};
  header.width = image.width;
  header.height = image.height;
  header.bit_depth = static_cast<uint8_t>(image.bits);
  header.color_type = colour_type(image.colour);
  int error = spng_set_option(context.get(), SPNG_ENCODE_TO_BUFFER, 1);
  if (error == 0) error = spng_set_ihdr(context.get(), &header);
  if (error == 0 && image.colour == formats::Colour::palette) {
    spng_plte palette{};
    palette.n_entries = static_cast<uint32_t>(std::clamp<size_t>(image.palette.size() / 3, 1, 256));
    for (size_t i = 0; i < image.palette.size() / 3; ++i) {
      palette.entries[i] = {image.palette[3 * i], image.palette[3 * i + 1], image.palette[3 * i + 2], 0};
    }
    error = spng_set_plte(context.get(), &palette);
  }
  const uint8_t* pixels = image.pixels.data();
  size_t size = image.pixels.size();
  if (image.bits < 8) {
    size = packed_row(image) * image.height;
    uint8_t* const packed = room.reset(size);
    pack(image, packed);
    pixels = packed;
  }
  if (error == 0) error = spng_encode_image(context.get(), pixels, size, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
  size_t written = 0;
  const std::unique_ptr<void, void (*)(void*)> bytes(
      error == 0 ? spng_get_png_buffer(context.get(), &written, &error) : nullptr, std::free);
  if (error != 0) return failed(spng_strerror(error));
  std::memcpy(file.reset(written), bytes.get(), written);
  return std::nullopt;
}

std::optional<formats::Error> decode(std::span<const uint8_t> file, formats::Image& image) {
  thread_local bridge::Buffer room;
  const Context context(spng_ctx_new(0));
  if (context == nullptr) return failed("out of memory");
  make_room(image);
  size_t size = 0;
  int error = spng_set_png_buffer(context.get(), file.data(), file.size());
  if (error == 0) error = spng_decoded_image_size(context.get(), SPNG_FMT_PNG, &size);
  if (error != 0) return failed(spng_strerror(error));
  const bool packed = image.bits < 8;
  if (size != (packed ? packed_row(image) * image.height : image.pixels.size()))
    return failed("the decoded image has another size");
  uint8_t* const out = packed ? room.reset(size) : image.pixels.data();
  error = spng_decode_image(context.get(), out, size, SPNG_FMT_PNG, 0);
  if (error != 0) return failed(spng_strerror(error));
  if (packed) unpack(out, image);
  return std::nullopt;
}

constexpr Adapter kAdapter = {version, png_cannot_hold, encode, decode, is_png};

}  // namespace

const Adapter* spng_adapter() { return &kAdapter; }

}  // namespace bench
