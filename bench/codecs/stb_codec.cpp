// PNG decoding by stb_image, which many small programs use. It returns colours instead of palette indices, and scales
// samples of fewer than 8 bits.
#include <climits>
#include <cstring>
#include <memory>

#include "codec.h"
#include "png_files.h"

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#define STBI_NO_STDIO
#define STBI_MAX_DIMENSIONS INT_MAX
#include <stb/stb_image.h>

namespace bench {
namespace {

struct Free {
  void operator()(void* pixels) const { stbi_image_free(pixels); }
};

std::string version() { return "stb_image.h of libstb-dev"; }  // the header has no version

std::string cannot_hold(const formats::Image& image) {
  if (image.colour == formats::Colour::palette) return "palette";
  if (image.bits < 8) return std::to_string(image.bits) + (image.bits == 1 ? " bit" : " bits");
  return png_cannot_hold(image);
}

std::optional<formats::Error> decode(std::span<const uint8_t> file, formats::Image& image) {
  if (file.size() > INT_MAX) return failed("the file is too large");
  const int size = static_cast<int>(file.size());
  const int channels = static_cast<int>(formats::channels(image.colour));
  int width = 0, height = 0, found = 0;
  const std::unique_ptr<void, Free> pixels(
      image.bits > 8
          ? static_cast<void*>(stbi_load_16_from_memory(file.data(), size, &width, &height, &found, channels))
          : stbi_load_from_memory(file.data(), size, &width, &height, &found, channels));
  if (pixels == nullptr) return failed(stbi_failure_reason());
  if (width != static_cast<int>(image.width) || height != static_cast<int>(image.height))
    return failed("the decoded image has another size");
  make_room(image);
  std::memcpy(image.pixels.data(), pixels.get(), image.pixels.size());
  return std::nullopt;
}

constexpr Adapter kAdapter = {version, cannot_hold, encode_png, decode, is_png, false, true};

}  // namespace

const Adapter* stb_adapter() { return &kAdapter; }

}  // namespace bench
