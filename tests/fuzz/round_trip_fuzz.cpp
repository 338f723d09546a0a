// The first bytes choose an image's shape, type and sections, the rest are its samples: what was encoded comes back,
// and every processor target and every order of tiles makes the same file.
#include <cstring>

#include "any_bit_tile.h"
#include "any_model.h"
#include "any_token_model.h"
#include "harness.h"
#include "l3/l3.hpp"

namespace {

using fuzz::Bytes;

constexpr size_t kShapeBytes = 8;

// An image and the memory behind it.
struct Subject {
  Bytes pixels, palette, transparency, space, icc, records, model;
  l3_image image = l3_image_init();
  l3_encode_options options = l3_encode_options_init();
};

void choose_shape(const uint8_t* data, Subject& subject) {
  l3_image& image = subject.image;
  image.width = 1u + data[0] + 4u * (data[1] & 7);
  image.bits = data[2] >= 128 ? 8u : 1u + data[2] % 16;
  image.colour = static_cast<l3_colour>(data[3] % (image.bits > 8 ? 4 : 5));
  const bool has_alpha = image.colour == L3_COLOUR_GRAY_ALPHA || image.colour == L3_COLOUR_RGB_ALPHA;
  if (has_alpha) image.alpha = (data[3] & 0x80) != 0 ? L3_ALPHA_PREMULTIPLIED : L3_ALPHA_STRAIGHT;
  subject.options.tile_width = 32u * (1 + data[4] % 5);
  subject.options.tile_height = 32u * (1 + data[5] % 5);
  // Fitting a model takes long: mostly there is none, or any model is used.
  const uint32_t method = data[4] >> 4;
  subject.options.method = method < 8 ? L3_METHOD_FAST : method == 8 ? L3_METHOD_AUTO : L3_METHOD_DENSE;
  subject.options.effort = data[5] < 232 ? 1 : 1 + data[5] % 9;
  if (method >= 10) {
    by_hand::Dice dice(data[5] + 256u * data[7]);
    const uint32_t channels = image.colour == L3_COLOUR_PALETTE ? 1 : static_cast<uint32_t>(image.colour) + 1;
    const bool codes_all = dice.chance(2);
    subject.model = dice.chance(4) ? by_hand::any_bit_model(dice, channels, image.bits, 0, 0).section
                    : image.bits == 8 && dice.chance(2)
                        ? by_hand::any_model(dice, channels, codes_all)
                        : by_hand::any_token_model(dice, channels, image.bits, codes_all).section.bytes();
    subject.options.model = subject.model.data();
    subject.options.model_size = subject.model.size();
  }
}

void choose_sections(uint8_t choice, uint8_t size, Subject& subject) {
  l3_image& image = subject.image;
  const uint32_t entries = 1 + size % (1u << image.bits);
  if (image.colour == L3_COLOUR_PALETTE) {
    // What either rule has, and what none has.
    subject.palette = drawing::class_colours((choice & 16) != 0 ? entries : entries / 2 + 1);
    while (subject.palette.size() < size_t{3} * entries) {
      subject.palette.push_back((choice & 32) != 0 ? choice : *(subject.palette.end() - 3));
    }
    image.palette = subject.palette.data();
    image.palette_entries = entries;
  }
  if ((choice & 1) != 0 && image.alpha == L3_ALPHA_NONE) {
    const uint32_t key = image.colour == L3_COLOUR_RGB ? 6 : 2;
    subject.transparency.assign(image.colour == L3_COLOUR_PALETTE ? entries : key, size);
    image.transparency = subject.transparency.data();
    image.transparency_size = static_cast<uint32_t>(subject.transparency.size());
  }
  if ((choice & 2) != 0) {
    drawing::Dice dice(size);
    subject.space = drawing::colour_space(dice, 1 + size % 15);
    image.colour_space = subject.space.data();
  }
  if ((choice & 4) != 0) {
    subject.icc.assign(1u + size, choice);
    image.icc = image.exif = subject.icc.data();
    image.icc_size = image.exif_size = subject.icc.size();
  }
  if ((choice & 8) != 0) {
    subject.records = {'t', 'E', 'X', 't', 2, 0, 0, 0, size, 0, 0, 0};
    subject.records.resize(12u + size, choice);
    image.metadata = subject.records.data();
    image.metadata_size = subject.records.size();
  }
}

// The samples repeat where the input is too short for a row.
void choose_samples(const uint8_t* data, size_t size, Subject& subject) {
  l3_image& image = subject.image;
  const uint32_t channels = image.colour == L3_COLOUR_PALETTE ? 1 : static_cast<uint32_t>(image.colour) + 1;
  const size_t sample_bytes = image.bits > 8 ? 2 : 1;
  const size_t samples_in = size / sample_bytes;
  image.height = static_cast<uint32_t>(samples_in / (size_t{image.width} * channels)) + 1;
  const size_t count = size_t{image.width} * image.height * channels;
  subject.pixels.resize(count * sample_bytes);
  for (size_t i = 0; i < count && samples_in != 0; ++i) {
    const uint8_t* from = data + i % samples_in * sample_bytes;
    const uint32_t all = sample_bytes == 2 ? 256u * from[0] + from[1] : from[0];
    const uint16_t sample = static_cast<uint16_t>(all & ((1u << image.bits) - 1));
    if (sample_bytes == 2) {
      std::memcpy(&subject.pixels[2 * i], &sample, 2);
    } else {
      subject.pixels[i] = static_cast<uint8_t>(sample);
    }
  }
  image.pixels = subject.pixels.data();
}

Bytes encode(const Subject& subject, const l3_parallel& parallel) {
  l3_encode_options options = subject.options;
  options.parallel = parallel;
  auto file = l3::encode(subject.image, options);
  FUZZ_EXPECT(static_cast<bool>(file));
  return *file;
}

void expect_section(const Bytes& file, uint32_t type, const Bytes& wanted) {
  const uint8_t* bytes = nullptr;
  size_t size = 0;
  FUZZ_EXPECT(l3_find_section(file.data(), file.size(), type, &bytes, &size, nullptr) == L3_OK);
  FUZZ_EXPECT(size == wanted.size() && (size == 0 || std::memcmp(bytes, wanted.data(), size) == 0));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < kShapeBytes) return 0;
  Subject subject;
  choose_shape(data, subject);
  choose_sections(data[6], data[7], subject);
  choose_samples(data + kShapeBytes, size - kShapeBytes, subject);

  const Bytes file = fuzz::same_on_all_targets([&] {
    Bytes made = encode(subject, {});
    const auto back = l3::decode(made);
    FUZZ_EXPECT(back && back->bytes == subject.pixels);
    FUZZ_EXPECT(l3_verify(made.data(), made.size(), nullptr, nullptr) == L3_OK);
    return made;
  });
  FUZZ_EXPECT(encode(subject, fuzz::backwards()) == file);
  uint32_t entries = 0;
  Bytes colours(subject.palette.size() + 1);
  FUZZ_EXPECT(l3_read_palette(file.data(), file.size(), colours.data(), colours.size(), &entries, nullptr) == L3_OK);
  colours.resize(size_t{3} * entries);
  FUZZ_EXPECT(colours == subject.palette);
  expect_section(file, L3_SECTION_TRANSPARENCY, subject.transparency);
  expect_section(file, L3_SECTION_COLOUR_SPACE, subject.space);
  expect_section(file, L3_SECTION_ICC, subject.icc);
  expect_section(file, L3_SECTION_EXIF, subject.icc);
  Bytes records(subject.records.size() + 1);
  size_t needed = 0;
  FUZZ_EXPECT(l3_unpack_metadata(file.data(), file.size(), nullptr, records.data(), records.size(), &needed, nullptr) ==
              L3_OK);
  records.resize(needed);
  FUZZ_EXPECT(records == subject.records);
  return 0;
}
