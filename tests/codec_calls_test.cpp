// Tests of libl3: wrong calls, limits, and structures of other versions.
#include "by_hand.h"
#include "codec_testing.h"
#include "l3/l3.hpp"

namespace {

using namespace codec_testing;
using drawing::draw;
using drawing::Pattern;

const Drawing& rgb() {
  static const Drawing d = draw({50, 40}, {L3_COLOUR_RGB, 8}, Pattern::natural);
  return d;
}
const Bytes& rgb_file() {
  static const Bytes file = encode(rgb(), tiles_of(32, 32));
  return file;
}

// ---- encode

// Expects both l3_encode and l3_encode_bound to refuse.
void expect_encode_refused(const l3_image& image, const l3_encode_options& options, l3_status status,
                           const char* reason) {
  Bytes room(1 << 18);
  size_t written = 0;
  l3_error error{};
  EXPECT_EQ(l3_encode(&image, &options, room.data(), room.size(), &written, &error), status) << reason;
  EXPECT_EQ(error.status, status);
  EXPECT_STREQ(error.reason, reason);
  EXPECT_EQ(error.tile, L3_NO_TILE);
  EXPECT_EQ(l3_encode_bound(&image, &options), 0) << reason;
}
void expect_image_refused(const Drawing& drawing, const std::function<void(l3_image&)>& spoil, const char* reason) {
  l3_image image = drawing.image();
  spoil(image);
  expect_encode_refused(image, l3_encode_options_init(), L3_ERROR_ARGUMENT, reason);
}
void expect_options_refused(const std::function<void(l3_encode_options&)>& spoil, l3_status status,
                            const char* reason) {
  l3_encode_options options = l3_encode_options_init();
  spoil(options);
  expect_encode_refused(rgb().image(), options, status, reason);
}

TEST(EncodeCall, RefusesNullPointers) {
  const l3_image image = rgb().image();
  Bytes room(1 << 18);
  size_t written = 0;
  l3_error error{};
  EXPECT_EQ(l3_encode(nullptr, nullptr, room.data(), room.size(), &written, &error), L3_ERROR_ARGUMENT);
  EXPECT_STREQ(error.reason, "a pointer that must not be null is null");
  EXPECT_EQ(l3_encode(&image, nullptr, nullptr, room.size(), &written, nullptr), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_encode(&image, nullptr, room.data(), room.size(), nullptr, nullptr), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_encode_bound(nullptr, nullptr), 0);
  expect_image_refused(
      rgb(), [](l3_image& i) { i.pixels = nullptr; }, "a pointer that must not be null is null");
}

TEST(EncodeCall, RefusesStructuresWithoutTheirSize) {
  constexpr const char* kReason = "struct_size is not set: use the _init function";
  expect_image_refused(
      rgb(), [](l3_image& i) { i.struct_size = 0; }, kReason);
  expect_options_refused([](l3_encode_options& o) { o.struct_size = 0; }, L3_ERROR_ARGUMENT, kReason);
}

TEST(EncodeCall, RefusesImpossibleSizes) {
  constexpr const char* kReason = "width and height must be 1 to 1048576";
  expect_image_refused(
      rgb(), [](l3_image& i) { i.width = 0; }, kReason);
  expect_image_refused(
      rgb(), [](l3_image& i) { i.height = 0; }, kReason);
  expect_image_refused(
      rgb(), [](l3_image& i) { i.width = (1 << 20) + 1; }, kReason);
  expect_image_refused(
      rgb(), [](l3_image& i) { i.height = (1 << 20) + 1; }, kReason);
}

TEST(EncodeCall, RefusesTypesThatDoNotFitEachOther) {
  constexpr const char* kReason = "bits, colour and alpha do not match";
  expect_image_refused(
      rgb(), [](l3_image& i) { i.bits = 0; }, kReason);
  expect_image_refused(
      rgb(), [](l3_image& i) { i.bits = 17; }, kReason);
  expect_image_refused(
      rgb(), [](l3_image& i) { i.colour = static_cast<l3_colour>(5); }, kReason);
  expect_image_refused(
      rgb(), [](l3_image& i) { i.alpha = L3_ALPHA_STRAIGHT; }, kReason);
  const Drawing rgba = draw({5, 5}, {L3_COLOUR_RGB_ALPHA, 8}, Pattern::noise);
  expect_image_refused(
      rgba, [](l3_image& i) { i.alpha = L3_ALPHA_NONE; }, kReason);
  expect_image_refused(
      rgba, [](l3_image& i) { i.alpha = static_cast<l3_alpha>(3); }, kReason);
  const Drawing palette = draw({5, 5}, {L3_COLOUR_PALETTE, 8}, Pattern::noise);
  expect_image_refused(
      palette, [](l3_image& i) { i.bits = 9; }, kReason);
}

TEST(EncodeCall, RefusesPalettesThatDoNotFit) {
  constexpr const char* kReason = "a palette must have 1 to 2^bits entries, and only palette images may have one";
  const Drawing palette = draw({5, 5}, {L3_COLOUR_PALETTE, 4}, Pattern::noise);
  expect_image_refused(
      palette, [](l3_image& i) { i.palette = nullptr; }, kReason);
  expect_image_refused(
      palette, [](l3_image& i) { i.palette_entries = 0; }, kReason);
  expect_image_refused(
      palette, [](l3_image& i) { i.palette_entries = 17; }, kReason);
  Drawing both = rgb();
  both.palette = {1, 2, 3};
  expect_image_refused(
      both, [](l3_image&) {}, kReason);
}

TEST(EncodeCall, RefusesColourSpacesOfOtherParts) {
  Drawing d = rgb();
  for (const uint8_t parts : Bytes{0, 16, 17, 128, 255}) {
    d.colour_space = {parts};
    expect_image_refused(
        d, [](l3_image&) {}, "the colour space has no part, or an unknown one");
  }
}

TEST(EncodeCall, RefusesTransparenciesThatDoNotFit) {
  constexpr const char* kReason = "the size of the transparency is wrong for this image";
  Drawing palette = draw({5, 5}, {L3_COLOUR_PALETTE, 2}, Pattern::noise);
  palette.transparency.resize(4);
  expect_image_refused(
      palette, [](l3_image& i) { i.transparency_size = 0; }, kReason);
  expect_image_refused(
      palette, [](l3_image& i) { i.transparency_size = 5; }, kReason);
  Drawing gray = draw({5, 5}, {L3_COLOUR_GRAY, 2}, Pattern::noise);
  gray.transparency.resize(6);
  expect_image_refused(
      gray, [](l3_image& i) { i.transparency_size = 1; }, kReason);
  expect_image_refused(
      gray, [](l3_image& i) { i.transparency_size = 6; }, kReason);
  Drawing colour = rgb();
  colour.transparency.resize(2);
  expect_image_refused(
      colour, [](l3_image&) {}, kReason);
  for (const l3_colour has_alpha : {L3_COLOUR_GRAY_ALPHA, L3_COLOUR_RGB_ALPHA}) {
    Drawing d = draw({5, 5}, {has_alpha, 8}, Pattern::noise);
    for (const size_t size : {2u, 6u}) {
      d.transparency.resize(size);
      expect_image_refused(
          d, [](l3_image&) {}, kReason);
    }
  }
}

TEST(EncodeCall, RefusesSectionsOfImpossibleSizes) {
  constexpr const char* kReason = "a section is empty or larger than 1 GiB";
  const Drawing d = drawing::with_sections(rgb());
  expect_image_refused(
      d, [](l3_image& i) { i.icc_size = 0; }, kReason);
  expect_image_refused(
      d, [](l3_image& i) { i.exif_size = 0; }, kReason);
  expect_image_refused(
      d, [](l3_image& i) { i.icc_size = (1u << 30) + 1; }, kReason);
  expect_image_refused(
      d, [](l3_image& i) { i.metadata_size = (1u << 30) + 1; }, kReason);
  expect_image_refused(
      d, [](l3_image& i) { i.metadata_size = SIZE_MAX; }, kReason);
}

TEST(EncodeCall, RefusesMetadataThatIsNotRecords) {
  constexpr const char* kReason = "the records of the metadata are damaged";
  const Drawing d = drawing::with_sections(rgb());
  expect_image_refused(
      d, [](l3_image& i) { i.metadata_size = 0; }, kReason);
  for (const size_t cut : {1u, 3u, 11u, 13u}) {
    expect_image_refused(
        d, [&](l3_image& i) { i.metadata_size -= cut; }, kReason);
  }
  Drawing place = d, reserved = d;
  place.metadata[4] = 3;
  reserved.metadata[7] = 1;
  expect_image_refused(
      place, [](l3_image&) {}, kReason);
  expect_image_refused(
      reserved, [](l3_image&) {}, kReason);
}

TEST(EncodeCall, RefusesAStrideBelowARowOrBeyondMemory) {
  constexpr const char* kReason = "the stride is smaller than a row, or the rows would exceed the address space";
  for (const size_t stride : {size_t{149}, SIZE_MAX, SIZE_MAX - 149, SIZE_MAX / 2, SIZE_MAX / 39}) {
    expect_image_refused(
        rgb(), [&](l3_image& i) { i.stride = stride; }, kReason);
    l3_training* training = nullptr;
    ASSERT_EQ(l3_start_training(nullptr, &training, nullptr), L3_OK);
    const drawing::Drawing drawn = rgb();
    l3_image image = drawn.image();
    image.stride = stride;
    l3_error error{};
    EXPECT_EQ(l3_add_to_training(training, &image, &error), L3_ERROR_ARGUMENT);
    EXPECT_STREQ(error.reason, kReason);
    l3_close_training(training);
  }
}

// What is read must not be written by the same call.
TEST(Calls, RefuseInputAndOutputThatOverlap) {
  const drawing::Drawing drawn = drawing::with_sections(drawing::draw_mixed({50, 40}, {L3_COLOUR_RGB, 8}));
  const Bytes file = codec_testing::encode(drawn, codec_testing::fast_options());
  const size_t pixels = drawn.pixels.size(), room = file.size() + pixels;
  Bytes memory(file.size() + 2 * pixels);
  l3_error error{};
  const auto expect_refused = [&](l3_status status) {
    EXPECT_EQ(status, L3_ERROR_ARGUMENT);
    EXPECT_STREQ(error.reason, "input and output overlap in memory");
  };
  for (const size_t at : {size_t{0}, size_t{1}, pixels - 1, pixels, pixels + file.size() - 1, pixels + file.size()}) {
    // The file lies behind room for the pixels.
    std::copy(file.begin(), file.end(), memory.begin() + static_cast<ptrdiff_t>(pixels));
    const bool overlaps = at + pixels > pixels && at < room;
    const l3_status whole =
        l3_decode(memory.data() + pixels, file.size(), nullptr, memory.data() + at, pixels, 0, &error);
    if (overlaps) {
      expect_refused(whole);
      EXPECT_TRUE(std::equal(file.begin(), file.end(), memory.begin() + static_cast<ptrdiff_t>(pixels)));
    } else {
      EXPECT_EQ(whole, L3_OK);
    }
  }
  std::copy(file.begin(), file.end(), memory.begin());
  expect_refused(l3_decode_region(memory.data(), file.size(), 1, 1, 1, 1, nullptr, memory.data() + 9, 3, 0, &error));
  size_t needed = 0;
  expect_refused(
      l3_unpack_metadata(memory.data(), file.size(), nullptr, memory.data(), memory.size(), &needed, &error));
  l3_image image = drawn.image();
  Bytes place(l3_encode_bound(&image, nullptr) + drawn.pixels.size());
  std::copy(drawn.pixels.begin(), drawn.pixels.end(), place.begin());
  image.pixels = place.data();
  size_t written = 0;
  expect_refused(l3_encode(&image, nullptr, place.data() + drawn.pixels.size() - 1,
                           place.size() - drawn.pixels.size() + 1, &written, &error));
  EXPECT_EQ(l3_encode(&image, nullptr, place.data() + drawn.pixels.size(), place.size() - drawn.pixels.size(), &written,
                      &error),
            L3_OK);
}

TEST(EncodeCall, RefusesOptionsThatDoNotExist) {
  expect_options_refused([](l3_encode_options& o) { o.method = static_cast<l3_method>(3); }, L3_ERROR_ARGUMENT,
                         "unknown method");
  expect_options_refused([](l3_encode_options& o) { o.effort = 10; }, L3_ERROR_ARGUMENT, "effort must be 1 to 9");
  static const Bytes model(131073);
  for (const size_t size : {size_t{0}, model.size(), SIZE_MAX}) {
    expect_options_refused(
        [&](l3_encode_options& o) {
          o.model = model.data();
          o.model_size = size;
        },
        L3_ERROR_ARGUMENT, "the size of a model must be 1 to 131072 bytes");
  }
}

TEST(EncodeCall, RefusesTileEdgesThatDoNotExist) {
  constexpr const char* kReason =
      "tile edges must be multiples of 32 from 32 to 1024, and the samples of a tile less than 1 MiB";
  for (const uint32_t edge : {1u, 31u, 33u, 1056u, 0xFFFFFFE0u}) {
    expect_options_refused([&](l3_encode_options& o) { o.tile_width = edge; }, L3_ERROR_ARGUMENT, kReason);
    expect_options_refused([&](l3_encode_options& o) { o.tile_height = edge; }, L3_ERROR_ARGUMENT, kReason);
  }
  expect_options_refused([](l3_encode_options& o) { o.tile_width = o.tile_height = 1024; }, L3_ERROR_ARGUMENT, kReason);
}

TEST(EncodeCall, EveryEffortAndMethodGivesAFile) {
  for (uint32_t effort = 0; effort <= 9; ++effort) {
    EXPECT_EQ(encode(rgb(), options_of(L3_METHOD_FAST, 32, 32, effort)), rgb_file());
    for (const l3_method method : {L3_METHOD_AUTO, L3_METHOD_DENSE}) {
      EXPECT_EQ(decode(encode(rgb(), options_of(method, 32, 32, effort))), rgb().pixels) << method << " " << effort;
    }
  }
}

TEST(EncodeCall, NeedsNoOptionsAndNoError) {
  const l3_image image = rgb().image();
  Bytes room(l3_encode_bound(&image, nullptr));
  size_t written = 0;
  ASSERT_EQ(l3_encode(&image, nullptr, room.data(), room.size(), &written, nullptr), L3_OK);
  room.resize(written);
  EXPECT_EQ(decode(room), rgb().pixels);
  EXPECT_EQ(info_of(room).tile_count, 1);
}

// ---- decode

Said decode_region_said(uint32_t x, uint32_t y, uint32_t width, uint32_t height, size_t out_size, size_t stride,
                        const l3_decode_options* options = nullptr) {
  const Exact out(out_size);
  l3_error error{};
  return said(l3_decode_region(rgb_file().data(), rgb_file().size(), x, y, width, height, options, out.data(),
                               out.size(), stride, &error),
              error);
}

TEST(DecodeCall, RefusesNullPointers) {
  Bytes out(6000);
  l3_error error{};
  EXPECT_EQ(l3_decode(nullptr, 0, nullptr, out.data(), out.size(), 0, &error), L3_ERROR_ARGUMENT);
  EXPECT_STREQ(error.reason, "a pointer that must not be null is null");
  EXPECT_EQ(l3_decode(rgb_file().data(), rgb_file().size(), nullptr, nullptr, 6000, 0, &error), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_verify(nullptr, 0, nullptr, &error), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_read_info(nullptr, 0, nullptr, nullptr, &error), L3_ERROR_ARGUMENT);
  l3_info info = l3_info_init();
  EXPECT_EQ(l3_read_info(nullptr, 0, nullptr, &info, &error), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_read_info(rgb_file().data(), rgb_file().size(), nullptr, nullptr, &error), L3_ERROR_ARGUMENT);
  const uint8_t* bytes = nullptr;
  size_t size = 0;
  EXPECT_EQ(l3_find_section(nullptr, 0, 1, &bytes, &size, &error), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_find_section(rgb_file().data(), rgb_file().size(), 1, nullptr, &size, &error), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_find_section(rgb_file().data(), rgb_file().size(), 1, &bytes, nullptr, &error), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_unpack_metadata(nullptr, 0, nullptr, nullptr, 0, &size, &error), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_unpack_metadata(rgb_file().data(), rgb_file().size(), nullptr, nullptr, 0, nullptr, &error),
            L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_pixel_bytes(nullptr, nullptr, 0, nullptr), 0);
}

TEST(DecodeCall, RefusesRegionsThatAreNotInside) {
  const Said wanted{L3_ERROR_ARGUMENT, "the region is empty or not inside the image", 0, L3_NO_TILE};
  const uint32_t regions[][4] = {{0, 0, 0, 1},  {0, 0, 1, 0},   {50, 0, 1, 1},        {0, 40, 1, 1},
                                 {1, 0, 50, 1}, {0, 1, 1, 40},  {49, 39, 2, 1},       {0xFFFFFFFF, 0, 1, 1},
                                 {0, 0, 51, 1}, {0, 0, 1, 41},  {1, 0, 0xFFFFFFF, 1}, {0, 1, 1, 0xFFFFFFF},
                                 {0, 0, 0, 0},  {50, 40, 0, 0}, {0, 0xFFFFFFFF, 1, 2}};
  for (const auto& r : regions) {
    EXPECT_EQ(decode_region_said(r[0], r[1], r[2], r[3], 6000, 0), wanted) << r[0] << "," << r[1];
  }
}

TEST(DecodeCall, RefusesStridesBelowARowOrBeyondMemory) {
  const Said wanted{L3_ERROR_ARGUMENT, "the stride is smaller than a row, or the rows would exceed the address space",
                    0, L3_NO_TILE};
  EXPECT_EQ(decode_region_said(0, 0, 50, 40, 6000, 149), wanted);
  EXPECT_EQ(decode_region_said(0, 0, 50, 40, 6000, 1), wanted);
  EXPECT_NE(decode_region_said(0, 0, 50, 40, 6000, SIZE_MAX).status, L3_OK);
  EXPECT_NE(decode_region_said(0, 0, 50, 40, 6000, SIZE_MAX / 2).status, L3_OK);
}

TEST(DecodeCall, RefusesBuffersThatAreTooSmallByAByte) {
  const Said wanted{L3_ERROR_BUFFER, "the output buffer is too small", 0, L3_NO_TILE};
  EXPECT_EQ(decode_region_said(0, 0, 50, 40, 5999, 0), wanted);
  EXPECT_EQ(decode_region_said(0, 0, 50, 40, 6000, 0).status, L3_OK);
  EXPECT_EQ(decode_region_said(0, 0, 50, 40, 39 * 160 + 149, 160), wanted);
  EXPECT_EQ(decode_region_said(0, 0, 50, 40, 39 * 160 + 150, 160).status, L3_OK);
  EXPECT_EQ(decode_region_said(7, 8, 2, 3, 17, 0), wanted);
  EXPECT_EQ(decode_region_said(7, 8, 2, 3, 18, 0).status, L3_OK);
  EXPECT_EQ(decode_region_said(7, 8, 2, 3, 0, 0), wanted);
}

TEST(DecodeCall, RefusesOptionsWithoutTheirSize) {
  l3_decode_options options = l3_decode_options_init();
  for (const uint32_t size : {0u, 3u, 4u}) {
    options.struct_size = size;
    EXPECT_EQ(decode_region_said(0, 0, 1, 1, 3, 0, &options),
              (Said{L3_ERROR_ARGUMENT, "struct_size is not set: use the _init function", 0, L3_NO_TILE}));
    EXPECT_EQ(l3_verify(rgb_file().data(), rgb_file().size(), &options, nullptr), L3_ERROR_ARGUMENT);
  }
  l3_info info = l3_info_init();
  info.struct_size = 0;
  EXPECT_EQ(l3_read_info(rgb_file().data(), rgb_file().size(), nullptr, &info, nullptr), L3_ERROR_ARGUMENT);
}

TEST(DecodeCall, SuccessFillsTheErrorToo) {
  EXPECT_EQ(decode_region_said(0, 0, 1, 1, 3, 0), (Said{L3_OK, "no error", 0, L3_NO_TILE}));
}

TEST(Target, AnUnknownNameIsRefusedByEveryCall) {
  const ForcedTarget forced("abacus");
  EXPECT_EQ(l3_cpu_target(), nullptr);
  constexpr const char* kReason = "L3_CPU names a target that is unknown or that this processor lacks";
  EXPECT_EQ(decode_region_said(0, 0, 1, 1, 3, 0), (Said{L3_ERROR_ARGUMENT, kReason, 0, L3_NO_TILE}));
  EXPECT_EQ(l3_verify(rgb_file().data(), rgb_file().size(), nullptr, nullptr), L3_ERROR_ARGUMENT);
  Bytes room(1 << 18);
  size_t written = 0;
  l3_error error{};
  const l3_image image = rgb().image();
  EXPECT_EQ(l3_encode(&image, nullptr, room.data(), room.size(), &written, &error), L3_ERROR_ARGUMENT);
  EXPECT_STREQ(error.reason, kReason);
}

TEST(Target, IsTheOneThatIsNamedAndTheBestWhereNoneIs) {
  for (const char* name : targets()) {
    const ForcedTarget forced(name);
    EXPECT_STREQ(l3_cpu_target(), name);
  }
  const ForcedTarget none("");
  EXPECT_STREQ(l3_cpu_target(), targets().back());
}

// ---- limits

TEST(Limits, OfPixelsAndBytesAreExact) {
  l3_decode_options options = l3_decode_options_init();
  options.limits = {2000, 6000, 1};
  EXPECT_EQ(decode(rgb_file(), options), rgb().pixels);
  EXPECT_EQ(l3_verify(rgb_file().data(), rgb_file().size(), &options, nullptr), L3_OK);
  Bytes out(6000);
  const auto expect_refused = [&](const char* reason) {
    l3_error error{};
    l3_info info = l3_info_init();
    EXPECT_EQ(l3_decode(rgb_file().data(), rgb_file().size(), &options, out.data(), 6000, 0, &error), L3_ERROR_LIMIT);
    EXPECT_STREQ(error.reason, reason);
    EXPECT_EQ(l3_verify(rgb_file().data(), rgb_file().size(), &options, &error), L3_ERROR_LIMIT);
    EXPECT_STREQ(error.reason, reason);
    EXPECT_EQ(l3_read_info(rgb_file().data(), rgb_file().size(), &options.limits, &info, &error), L3_ERROR_LIMIT);
    EXPECT_STREQ(error.reason, reason);
  };
  options.limits = {1999, 6000, 0};
  expect_refused("more pixels than the limit allows");
  options.limits = {2000, 5999, 0};
  expect_refused("more bytes of samples than the limit allows");
}

TEST(Limits, OfARegionAreAboutTheRegion) {
  l3_decode_options options = l3_decode_options_init();
  options.limits = {20, 60, 0};
  EXPECT_EQ(decode_region_said(20, 20, 5, 4, 60, 0, &options).status, L3_OK);
  EXPECT_EQ(decode_region_said(20, 20, 7, 3, 63, 0, &options),
            (Said{L3_ERROR_LIMIT, "more pixels than the limit allows", 20, L3_NO_TILE}));
  options.limits = {0, 59, 0};
  EXPECT_EQ(decode_region_said(20, 20, 5, 4, 60, 0, &options),
            (Said{L3_ERROR_LIMIT, "more bytes of samples than the limit allows", 20, L3_NO_TILE}));
}

TEST(Limits, OfBytesCountColoursWhereColoursAreAskedFor) {
  const Drawing d = draw({20, 10}, {L3_COLOUR_PALETTE, 4}, Pattern::noise);
  const Bytes file = encode(d);
  l3_decode_options options = l3_decode_options_init();
  options.as_colours = 1;
  options.limits.max_output_bytes = 600;
  Bytes out(600);
  EXPECT_EQ(l3_decode(file.data(), file.size(), &options, out.data(), out.size(), 0, nullptr), L3_OK);
  options.limits.max_output_bytes = 599;
  EXPECT_EQ(l3_decode(file.data(), file.size(), &options, out.data(), out.size(), 0, nullptr), L3_ERROR_LIMIT);
}

TEST(Limits, OfMetadataAreExactAndOnlyForThoseWhoUnpack) {
  const Drawing d = drawing::with_sections(rgb());
  const Bytes file = encode(d);
  l3_decode_options options = l3_decode_options_init();
  size_t needed = 0;
  Bytes out(d.metadata.size());
  options.limits.max_metadata_bytes = d.metadata.size();
  EXPECT_EQ(l3_verify(file.data(), file.size(), &options, nullptr), L3_OK);
  EXPECT_EQ(l3_unpack_metadata(file.data(), file.size(), &options.limits, out.data(), out.size(), &needed, nullptr),
            L3_OK);
  options.limits.max_metadata_bytes = d.metadata.size() - 1;
  l3_error error{};
  EXPECT_EQ(l3_verify(file.data(), file.size(), &options, &error), L3_ERROR_LIMIT);
  EXPECT_STREQ(error.reason, "more metadata than the limit allows");
  EXPECT_EQ(l3_unpack_metadata(file.data(), file.size(), &options.limits, nullptr, 0, &needed, nullptr),
            L3_ERROR_LIMIT);
  EXPECT_EQ(decode(file, options), d.pixels);
}

// 2^40 pixels in constant tiles: a million of them.
TEST(Limits, TheDefaultOnesRefuseTheLargestImageButNotARegionOfIt) {
  by_hand::Parts parts;
  parts.header = by_hand::header(1 << 20, 1 << 20, L3_COLOUR_GRAY, 1, 1024, 1024);
  parts.tiles.resize(1 << 20);
  parts.tiles.back().value[0] = 1;
  const Bytes file = by_hand::put_together(parts);
  l3_info info = l3_info_init();
  EXPECT_EQ(l3_read_info(file.data(), 64, nullptr, &info, nullptr), L3_ERROR_LIMIT);
  EXPECT_EQ(l3_verify(file.data(), file.size(), nullptr, nullptr), L3_ERROR_LIMIT);
  const Exact out(81);
  ASSERT_EQ(l3_decode(file.data(), file.size(), nullptr, out.data(), 81, 0, nullptr), L3_ERROR_LIMIT);
  constexpr uint32_t kFrom = (1 << 20) - 1024 - 4;
  ASSERT_EQ(l3_decode_region(file.data(), file.size(), kFrom, kFrom, 9, 9, nullptr, out.data(), 81, 0, nullptr), L3_OK);
  for (uint32_t i = 0; i < 81; ++i) EXPECT_EQ(out.data()[i], i % 9 >= 4 && i / 9 >= 4);
  const l3_limits none = l3::no_limits();
  ASSERT_EQ(l3_read_info(file.data(), 64, &none, &info, nullptr), L3_OK);
  EXPECT_EQ(info.image_bytes, uint64_t{1} << 40);
  EXPECT_EQ(info.tile_count, 1 << 20);
}

// ---- structures of other versions

TEST(StructSize, WhatAnOlderProgramDoesNotHaveIsNotRead) {
  l3_decode_options decoding = l3_decode_options_init();
  std::memset(&decoding.limits, 1, sizeof(decoding) - offsetof(l3_decode_options, limits));
  decoding.limits.max_pixels = 1;
  decoding.struct_size = offsetof(l3_decode_options, limits);
  EXPECT_EQ(decode_region_said(0, 0, 50, 40, 6000, 0, &decoding).status, L3_OK);

  l3_encode_options encoding = tiles_of(32, 32);
  std::memset(&encoding.parallel, 1, sizeof(encoding.parallel));
  encoding.struct_size = offsetof(l3_encode_options, parallel);
  EXPECT_EQ(encode(rgb(), encoding), rgb_file());

  l3_image image = rgb().image();
  std::memset(&image.palette, 1, sizeof(image) - offsetof(l3_image, palette));
  image.struct_size = offsetof(l3_image, palette);
  EXPECT_EQ(encode(image, tiles_of(32, 32)), rgb_file());
}

TEST(StructSize, WhatAnOlderProgramDoesNotHaveIsNotWritten) {
  const Exact memory(offsetof(l3_info, tile_count));
  const uint32_t size = static_cast<uint32_t>(memory.size());
  std::memcpy(memory.data(), &size, 4);
  ASSERT_EQ(
      l3_read_info(rgb_file().data(), rgb_file().size(), nullptr, reinterpret_cast<l3_info*>(memory.data()), nullptr),
      L3_OK);
  l3_info info{};
  std::memcpy(&info, memory.data(), memory.size());
  EXPECT_EQ(info.struct_size, size);
  EXPECT_EQ(info.width, 50);
  EXPECT_EQ(info.tile_height, 32);
}

TEST(StructSize, WhatANewerProgramHasMoreIsLeftAlone) {
  struct NewerInfo {
    l3_info now;
    uint8_t more[24];
  } info{};
  std::memset(&info, 0x77, sizeof(info));
  info.now.struct_size = sizeof(info);
  ASSERT_EQ(l3_read_info(rgb_file().data(), rgb_file().size(), nullptr, &info.now, nullptr), L3_OK);
  EXPECT_EQ(info.now.struct_size, sizeof(info));
  EXPECT_EQ(info.now.height, 40);
  for (const uint8_t byte : info.more) EXPECT_EQ(byte, 0x77);

  struct NewerOptions {
    l3_decode_options now = l3_decode_options_init();
    uint8_t more[24] = {1, 2, 3};
  } options;
  options.now.struct_size = sizeof(options);
  EXPECT_EQ(decode_region_said(0, 0, 50, 40, 6000, 0, &options.now).status, L3_OK);

  struct NewerImage {
    l3_image now = rgb().image();
    uint8_t more[24] = {1, 2, 3};
  } image;
  image.now.struct_size = sizeof(image);
  EXPECT_EQ(encode(image.now, tiles_of(32, 32)), rgb_file());
}

TEST(StructSize, InitGivesZerosAndTheSize) {
  const l3_info info = l3_info_init();
  EXPECT_EQ(info.struct_size, sizeof(info));
  EXPECT_EQ(info.width + info.tile_count + info.digest[15], 0);
  EXPECT_EQ(l3_image_init().struct_size, sizeof(l3_image));
  EXPECT_EQ(l3_image_init().pixels, nullptr);
  EXPECT_EQ(l3_decode_options_init().struct_size, sizeof(l3_decode_options));
  EXPECT_EQ(l3_encode_options_init().struct_size, sizeof(l3_encode_options));
}

}  // namespace
