// Tests of libl3: palettes as indices and as colours, transparency, colour space, ICC, EXIF and metadata.
#include "by_hand.h"
#include "codec_testing.h"

namespace {

using namespace codec_testing;
using drawing::Dice;
using drawing::draw;
using drawing::Pattern;
using drawing::Size;
using drawing::Type;

Bytes section(const Bytes& file, uint32_t type) {
  const uint8_t* bytes = nullptr;
  size_t size = 0;
  l3_error error{};
  EXPECT_EQ(l3_find_section(file.data(), file.size(), type, &bytes, &size, &error), L3_OK) << error.reason;
  EXPECT_EQ(bytes == nullptr, size == 0);
  return bytes == nullptr ? Bytes{} : Bytes(bytes, bytes + size);
}

Bytes metadata(const Bytes& file) {
  size_t needed = 0;
  EXPECT_EQ(l3_unpack_metadata(file.data(), file.size(), nullptr, nullptr, 0, &needed, nullptr), L3_OK);
  const Exact out(needed);
  l3_error error{};
  EXPECT_EQ(l3_unpack_metadata(file.data(), file.size(), nullptr, out.data(), needed, &needed, &error), L3_OK)
      << error.reason;
  return Bytes(out.data(), out.data() + needed);
}

Bytes colours_of(const Drawing& d) {
  Bytes colours;
  for (const uint8_t index : d.pixels) {
    const bool known = 3u * index < d.palette.size();
    for (uint32_t c = 0; c < 3; ++c) colours.push_back(known ? d.palette[3u * index + c] : 0);
    if (!d.transparency.empty()) colours.push_back(index < d.transparency.size() ? d.transparency[index] : 255);
  }
  return colours;
}

TEST(Palette, AsColoursOnEveryTarget) {
  for (const uint32_t bits : {1u, 2u, 3u, 4u, 8u}) {
    for (const Pattern pattern : drawing::kPatterns) {
      for (const bool transparent : {false, true}) {
        Drawing d = draw({70, 41}, {L3_COLOUR_PALETTE, bits}, pattern);
        if (transparent) d.transparency = Dice(4).bytes(d.palette.size() / 6 + 1);
        const Bytes file = encode(d, tiles_of(64, 32));
        l3_decode_options options = l3_decode_options_init();
        options.as_colours = 1;
        for (const char* target : targets()) {
          const ForcedTarget forced(target);
          EXPECT_EQ(decode(file), d.pixels) << bits << target;
          EXPECT_EQ(decode(file, options), colours_of(d)) << bits << target << transparent;
        }
      }
    }
  }
}

TEST(Palette, AnIndexBeyondItIsOpaqueBlack) {
  Drawing d = drawing::blank({256, 1}, {L3_COLOUR_PALETTE, 8});
  for (uint32_t i = 0; i < 256; ++i) d.pixels[i] = static_cast<uint8_t>(i);
  d.palette = {10, 20, 30, 40, 50, 60};
  d.transparency = {7};
  const Bytes file = encode(d);
  l3_decode_options options = l3_decode_options_init();
  options.as_colours = 1;
  const Bytes colours = decode(file, options);
  ASSERT_EQ(colours.size(), 1024);
  EXPECT_EQ(Bytes(colours.begin(), colours.begin() + 8), (Bytes{10, 20, 30, 7, 40, 50, 60, 255}));
  for (size_t i = 2; i < 256; ++i) {
    ASSERT_EQ(Bytes(&colours[4 * i], &colours[4 * i] + 4), (Bytes{0, 0, 0, 255}));
  }
}

TEST(Palette, ARegionAsColoursIsTheCropOfTheWhole) {
  Drawing d = draw({100, 50}, {L3_COLOUR_PALETTE, 4}, Pattern::labels);
  d.transparency = {0, 128};
  const Bytes file = encode(d, tiles_of(32, 32));
  const Bytes whole = colours_of(d);
  l3_decode_options options = l3_decode_options_init();
  options.as_colours = 1;
  Dice dice(2);
  for (int round = 0; round < 100; ++round) {
    const uint32_t x = dice.roll(100), y = dice.roll(50);
    const uint32_t w = 1 + dice.roll(100 - x), h = 1 + dice.roll(50 - y);
    const Exact out(size_t{w} * h * 4);
    ASSERT_EQ(l3_decode_region(file.data(), file.size(), x, y, w, h, &options, out.data(), out.size(), 0, nullptr),
              L3_OK);
    for (uint32_t r = 0; r < h; ++r) {
      ASSERT_EQ(std::memcmp(out.data() + size_t{r} * w * 4, &whole[((y + r) * 100 + x) * size_t{4}], w * size_t{4}), 0);
    }
  }
}

TEST(Palette, OtherImagesIgnoreTheWishForColours) {
  const Drawing d = draw({9, 9}, {L3_COLOUR_RGB, 8}, Pattern::noise);
  l3_decode_options options = l3_decode_options_init();
  options.as_colours = 1;
  EXPECT_EQ(decode(encode(d), options), d.pixels);
}

// Room for the pixels is made before they are decoded: a transparency that is not sound must not make that room too
// small, or decoding would blame the buffer. Found by fuzzing.
TEST(Palette, PixelBytesDoNotDependOnASoundTransparency) {
  Drawing d = draw({9, 9}, {L3_COLOUR_PALETTE, 4}, Pattern::noise);
  d.transparency = {1, 2, 3};
  Bytes file = by_hand::put_together(by_hand::take_apart(encode(d)));  // not tiny
  const l3_info info = codec_testing::info_of(file);
  l3_decode_options colours = l3_decode_options_init();
  colours.as_colours = 1;
  EXPECT_EQ(l3_pixel_bytes(&info, file.data(), info.head_bytes, &colours), 4);
  const uint8_t* transparency = nullptr;
  size_t size = 0;
  ASSERT_EQ(l3_find_section(file.data(), file.size(), L3_SECTION_TRANSPARENCY, &transparency, &size, nullptr), L3_OK);
  file[static_cast<size_t>(transparency - file.data())] ^= 1;
  EXPECT_EQ(l3_pixel_bytes(&info, file.data(), file.size(), &colours), 4);
  Bytes out(9 * 9 * 4);
  l3_error error{};
  EXPECT_EQ(l3_decode(file.data(), file.size(), &colours, out.data(), out.size(), 0, &error), L3_ERROR_CORRUPT);
  EXPECT_STREQ(error.reason, "the check of a section does not match");
}

TEST(Palette, PixelBytesAreThoseOfTheWish) {
  Drawing d = draw({9, 9}, {L3_COLOUR_PALETTE, 4}, Pattern::noise);
  const Bytes opaque = encode(d);
  d.transparency = {1};
  const Bytes transparent = encode(d);
  const Bytes deep = encode(draw({9, 9}, {L3_COLOUR_RGB_ALPHA, 9}, Pattern::noise));
  l3_decode_options colours = l3_decode_options_init();
  colours.as_colours = 1;
  const auto pixel_bytes = [](const Bytes& file, const l3_decode_options* options) {
    const l3_info info = info_of(file);
    return l3_pixel_bytes(&info, file.data(), file.size(), options);
  };
  EXPECT_EQ(pixel_bytes(opaque, nullptr), 1);
  EXPECT_EQ(pixel_bytes(opaque, &colours), 3);
  EXPECT_EQ(pixel_bytes(transparent, nullptr), 1);
  EXPECT_EQ(pixel_bytes(transparent, &colours), 4);
  EXPECT_EQ(pixel_bytes(deep, nullptr), 8);
  EXPECT_EQ(pixel_bytes(deep, &colours), 8);
}

struct ReadPalette {
  l3_status status;
  uint32_t entries;
  Bytes colours;
};

ReadPalette read_palette(const Bytes& file, size_t room = 768) {
  const Exact out(room);
  ReadPalette palette{};
  palette.status = l3_read_palette(file.data(), file.size(), out.data(), room, &palette.entries, nullptr);
  if (palette.status == L3_OK) palette.colours.assign(out.data(), out.data() + size_t{3} * palette.entries);
  return palette;
}

// The palette comes back, also as colours of pixels, and its section gives so many entries, by that rule.
void expect_palette(const Bytes& colours, uint32_t bits, uint8_t rule, size_t given) {
  Drawing d = drawing::blank({1u << bits, 1}, {L3_COLOUR_PALETTE, bits});
  for (uint32_t i = 0; i < 1u << bits; ++i) d.set_sample(i, 0, 0, i);
  d.palette = colours;
  const Bytes file = encode(d);
  const Bytes stored = section(file, L3_SECTION_PALETTE);
  ASSERT_GE(stored.size(), 2);
  EXPECT_EQ(stored[0], rule);
  EXPECT_EQ(stored[1] + 1u, colours.size() / 3);
  EXPECT_EQ(stored.size(), 2 + (rule == 2 ? 1 : 3) * given);
  const ReadPalette palette = read_palette(file, colours.size());
  EXPECT_EQ(palette.status, L3_OK);
  EXPECT_EQ(palette.colours, colours);
  l3_decode_options options = l3_decode_options_init();
  options.as_colours = 1;
  EXPECT_EQ(decode(file, options), colours_of(d));
}

TEST(Palette, EntriesThatARuleHasAreNotStored) {
  const Bytes all = drawing::class_colours(256);
  EXPECT_EQ(by_hand::check(all.data(), all.size()), 0xF1366C5Bu);  // as the spec has it
  for (const uint32_t entries : {1u, 2u, 22u, 255u, 256u}) {
    SCOPED_TRACE(entries);
    const Bytes classes = drawing::class_colours(entries);
    expect_palette(classes, 8, entries > 1, 0);  // entry 0 is black by either rule
    if (entries < 22) continue;
    Bytes other_start = classes;
    other_start[3 * 4 + 2] ^= 1;
    expect_palette(other_start, 8, 1, 5);
    Bytes other_end = classes;
    other_end[3 * (entries - 1)] ^= 1;
    expect_palette(other_end, 8, 0, entries);
  }
  const Bytes black(size_t{3} * 16, 0), white(size_t{3} * 16, 255);
  expect_palette(black, 4, 0, 0);
  expect_palette(white, 4, 2, 1);
  expect_palette(drawing::joined(drawing::class_colours(9), Bytes(size_t{3} * 247, 77)), 8, 0, 10);
  expect_palette({1, 1, 1, 0, 0, 0, 9, 9, 9, 9, 9, 9}, 2, 2, 3);
  for (const uint32_t bits : {1u, 3u, 8u}) {
    const Bytes drawn = drawing::blank({1, 1}, {L3_COLOUR_PALETTE, bits}).palette;
    expect_palette(drawn, bits, 0, drawn.size() / 3);
  }
}

TEST(Palette, IsReadWhereThereIsOne) {
  Drawing d = draw({9, 9}, {L3_COLOUR_PALETTE, 4}, Pattern::noise);
  d.palette = drawing::class_colours(16);
  const Bytes file = encode(d);
  const ReadPalette enough = read_palette(file, 48), too_small = read_palette(file, 47);
  EXPECT_EQ(enough.status, L3_OK);
  EXPECT_EQ(enough.colours, d.palette);
  EXPECT_EQ(too_small.status, L3_ERROR_BUFFER);
  EXPECT_EQ(too_small.entries, 16);
  uint32_t entries = 0;
  EXPECT_EQ(l3_read_palette(file.data(), file.size(), nullptr, 0, &entries, nullptr), L3_OK);
  EXPECT_EQ(entries, 16);
  EXPECT_EQ(l3_read_palette(file.data(), file.size(), nullptr, 0, nullptr, nullptr), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_read_palette(nullptr, 0, nullptr, 0, &entries, nullptr), L3_ERROR_ARGUMENT);
  EXPECT_EQ(entries, 0);
  EXPECT_EQ(l3_read_palette(file.data(), info_of(file).head_bytes, nullptr, 0, &entries, nullptr), L3_ERROR_TRUNCATED);
  const ReadPalette none = read_palette(encode(draw({9, 9}, {L3_COLOUR_GRAY, 8}, Pattern::noise)));
  EXPECT_EQ(none.status, L3_OK);
  EXPECT_EQ(none.entries, 0);
  by_hand::Parts parts = by_hand::take_apart(file);
  parts.sections[0].bytes[0] = 3;
  EXPECT_EQ(read_palette(by_hand::put_together(parts)).status, L3_ERROR_UNSUPPORTED);
  parts.sections[0].bytes = {0};
  EXPECT_EQ(read_palette(by_hand::put_together(parts)).status, L3_ERROR_CORRUPT);
}

TEST(Sections, ComeBackAsTheyWent) {
  for (const Type& type : drawing::common_types()) {
    const Drawing d = drawing::with_sections(draw({40, 30}, type, Pattern::natural));
    const Bytes file = encode(d);
    EXPECT_EQ(read_palette(file).colours, d.palette) << d.name();
    EXPECT_EQ(section(file, L3_SECTION_TRANSPARENCY), d.transparency) << d.name();
    EXPECT_EQ(section(file, L3_SECTION_COLOUR_SPACE), d.colour_space) << d.name();
    EXPECT_EQ(section(file, L3_SECTION_ICC), d.icc) << d.name();
    EXPECT_EQ(section(file, L3_SECTION_EXIF), d.exif) << d.name();
    EXPECT_EQ(metadata(file), d.metadata) << d.name();
    EXPECT_EQ(section(file, 77), Bytes{});
    EXPECT_EQ(decode(file), d.pixels);
    EXPECT_EQ(l3_verify(file.data(), file.size(), nullptr, nullptr), L3_OK);
  }
}

TEST(Sections, EachOnItsOwnAndEachLength) {
  const Drawing plain = draw({8, 8}, {L3_COLOUR_GRAY, 8}, Pattern::noise);
  for (size_t size = 1; size <= 33; ++size) {
    Drawing icc = plain, exif = plain, text = plain;
    icc.icc = Dice(size).bytes(size);
    exif.exif = Dice(size).bytes(size);
    text.metadata = drawing::record("zTXt", 2, Dice(size).bytes(size - 1));
    EXPECT_EQ(section(encode(icc), L3_SECTION_ICC), icc.icc);
    EXPECT_EQ(section(encode(icc), L3_SECTION_EXIF), Bytes{});
    EXPECT_EQ(section(encode(exif), L3_SECTION_EXIF), exif.exif);
    EXPECT_EQ(metadata(encode(text)), text.metadata);
    for (const Drawing* d : {&icc, &exif, &text}) {
      const Bytes file = encode(*d);
      EXPECT_EQ(l3_verify(file.data(), file.size(), nullptr, nullptr), L3_OK);
    }
  }
}

TEST(Sections, WithoutAnyThereIsNothing) {
  const Bytes file = encode(draw({8, 8}, {L3_COLOUR_RGB, 8}, Pattern::noise));
  for (const uint32_t type : {1u, 2u, 3u, 4u, 5u, 0x8001u, 0u, 0xFFFFu, 70000u}) {
    EXPECT_EQ(section(file, type), Bytes{});
  }
  EXPECT_EQ(metadata(file), Bytes{});
}

TEST(Metadata, OfManyMebibytesComesBack) {
  Drawing d = draw({8, 8}, {L3_COLOUR_GRAY, 8}, Pattern::noise);
  Dice dice(6);
  Bytes text;
  for (int i = 0; i < 40000; ++i) {
    text.insert(text.end(), 200, static_cast<uint8_t>(dice.roll(3)));
    text.push_back(dice.byte());
  }
  d.metadata = drawing::joined(drawing::record("iTXt", 0, text), drawing::record("abcd", 2, dice.bytes(300000)));
  const Bytes file = encode(d);
  EXPECT_EQ(metadata(file), d.metadata);
  EXPECT_EQ(l3_verify(file.data(), file.size(), nullptr, nullptr), L3_OK);
}

TEST(Metadata, NeedsRoomAndSaysHowMuch) {
  const Drawing d = drawing::with_sections(draw({8, 8}, {L3_COLOUR_GRAY, 8}, Pattern::noise));
  const Bytes file = encode(d);
  const Exact out(d.metadata.size() - 1);
  size_t needed = 0;
  l3_error error{};
  EXPECT_EQ(l3_unpack_metadata(file.data(), file.size(), nullptr, out.data(), out.size(), &needed, &error),
            L3_ERROR_BUFFER);
  EXPECT_EQ(needed, d.metadata.size());
}

TEST(Metadata, DamageTouchesNoPixels) {
  const Drawing d = drawing::with_sections(draw({40, 30}, {L3_COLOUR_RGB, 8}, Pattern::natural));
  Bytes file = encode(d, codec_testing::tiles_of(32, 32));
  const uint8_t* bytes = nullptr;
  size_t size = 0;
  ASSERT_EQ(l3_find_section(file.data(), file.size(), L3_SECTION_METADATA, &bytes, &size, nullptr), L3_OK);
  file[static_cast<size_t>(bytes - file.data()) + 9] ^= 0x10;
  EXPECT_EQ(decode(file), d.pixels);
  l3_error error{};
  EXPECT_EQ(l3_verify(file.data(), file.size(), nullptr, &error), L3_ERROR_CORRUPT);
  EXPECT_STREQ(error.reason, "the check of a section does not match");
  size_t needed = 0;
  EXPECT_EQ(l3_unpack_metadata(file.data(), file.size(), nullptr, nullptr, 0, &needed, nullptr), L3_ERROR_CORRUPT);
}

}  // namespace
