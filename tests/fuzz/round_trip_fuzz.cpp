// The first bytes choose an image's shape, the rest are its samples: what was encoded comes back, on every target, from
// the same bytes.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "l3/l3.hpp"

namespace {

void expect(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kShapeBytes = 6;
  if (size < kShapeBytes) return 0;
  l3_image image = l3_image_init();
  image.width = 1u + data[0] + 4u * (data[1] & 7);
  image.bits = 1u + data[2] % 16;
  image.colour = static_cast<l3_colour>(data[3] % (image.bits > 8 ? 4 : 5));
  const bool has_alpha = image.colour == L3_COLOUR_GRAY_ALPHA || image.colour == L3_COLOUR_RGB_ALPHA;
  image.alpha = has_alpha ? L3_ALPHA_STRAIGHT : L3_ALPHA_NONE;
  const uint32_t channels = image.colour == L3_COLOUR_PALETTE ? 1 : static_cast<uint32_t>(image.colour) + 1;
  const std::vector<uint8_t> palette(3u << image.bits, 7);
  if (image.colour == L3_COLOUR_PALETTE) {
    image.palette = palette.data();
    image.palette_entries = 1u << image.bits;
  }
  l3_encode_options options = l3_encode_options_init();
  options.tile_width = 32u * (1 + data[4] % 5);
  options.tile_height = 32u * (1 + data[5] % 5);

  // The samples repeat where the input is too short for a row.
  const size_t sample_bytes = image.bits > 8 ? 2 : 1;
  const size_t samples_in = (size - kShapeBytes) / sample_bytes;
  image.height = static_cast<uint32_t>(samples_in / (size_t{image.width} * channels)) + 1;
  const size_t count = size_t{image.width} * image.height * channels;
  std::vector<uint8_t> pixels(count * sample_bytes);
  for (size_t i = 0; i < count; ++i) {
    uint16_t sample = samples_in == 0 ? uint16_t{0} : data[kShapeBytes + i % samples_in * sample_bytes];
    if (sample_bytes == 2 && samples_in != 0) {
      sample = static_cast<uint16_t>(sample << 8 | data[kShapeBytes + i % samples_in * 2 + 1]);
    }
    sample = static_cast<uint16_t>(sample & ((1u << image.bits) - 1));
    if (sample_bytes == 2) {
      std::memcpy(&pixels[2 * i], &sample, 2);
    } else {
      pixels[i] = static_cast<uint8_t>(sample);
    }
  }
  image.pixels = pixels.data();

  std::vector<uint8_t> first;
  for (const char* target : {"portable", "avx2", "avx512"}) {
    setenv("L3_CPU", target, 1);
    if (l3_cpu_target() == nullptr) continue;
    const auto file = l3::encode(image, options);
    expect(static_cast<bool>(file));
    if (first.empty()) first = *file;
    expect(*file == first);
    const auto back = l3::decode(*file);
    expect(back && back->bytes == pixels);
    expect(l3_verify(file->data(), file->size(), nullptr, nullptr) == L3_OK);
  }
  return 0;
}
