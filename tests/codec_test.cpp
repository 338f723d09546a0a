// Tests of libl3: round trips on every processor target, for all types and many sizes, patterns, tiles, strides and
// threads.
#include <algorithm>

#include "codec_testing.h"

namespace {

using namespace codec_testing;
using drawing::Dice;
using drawing::draw;
using drawing::Pattern;
using drawing::Size;
using drawing::Type;

// The size that a file of this image may have at most: packed samples, tile by tile, and the index.
uint64_t raw_size(const Drawing& d, uint32_t tile_width, uint32_t tile_height) {
  uint64_t tiles = 0, payloads = 0;
  for (uint32_t y = 0; y < d.height; y += tile_height) {
    for (uint32_t x = 0; x < d.width; x += tile_width) {
      const uint64_t pixels = uint64_t{std::min(tile_width, d.width - x)} * std::min(tile_height, d.height - y);
      payloads += (pixels * d.channels() * d.bits + 127) / 128 * 16;
      ++tiles;
    }
  }
  uint64_t head = 64;
  uint64_t sections = 0;
  if (!d.palette.empty()) {
    head += 16;
    sections += (2 + d.palette.size() + 15) / 16 * 16;
  }
  return (head + 12 * tiles + 15) / 16 * 16 + sections + payloads;
}

TEST(RoundTrip, EveryTypeSizeAndPatternOnEveryTarget) {
  for (const Type& type : drawing::common_types()) {
    for (const Size& size : drawing::kSizes) {
      for (const Pattern pattern : drawing::kPatterns) {
        SCOPED_TRACE(drawing::name_of(pattern));
        const Drawing d = draw(size, type, pattern);
        const Bytes file = expect_round_trip(d);
        ASSERT_LE(file.size(), raw_size(d, 128, 128));
        ASSERT_FALSE(HasFailure());
      }
    }
  }
}

TEST(RoundTrip, EveryDepthFrom1To16) {
  for (const Type& type : drawing::all_types()) {
    for (const Size& size : {Size{37, 19}, Size{64, 16}}) {
      for (const Pattern pattern : drawing::kPatterns) {
        SCOPED_TRACE(drawing::name_of(pattern));
        expect_round_trip(draw(size, type, pattern), tiles_of(32, 32));
        ASSERT_FALSE(HasFailure());
      }
    }
  }
}

TEST(RoundTrip, EveryTileSize) {
  const Size kTiles[] = {{32, 32}, {64, 64}, {128, 128}, {256, 256}, {32, 1024}, {1024, 32}, {96, 160}};
  for (const Type& type : {Type{L3_COLOUR_GRAY, 1}, Type{L3_COLOUR_RGB, 8}, Type{L3_COLOUR_RGB_ALPHA, 16},
                           Type{L3_COLOUR_PALETTE, 4}, Type{L3_COLOUR_GRAY_ALPHA, 11}}) {
    for (const Size& tile : kTiles) {
      for (const Size& size : {Size{tile.width, tile.height}, Size{tile.width + 1, 33}, Size{270, 259}}) {
        const Drawing d = draw(size, type, Pattern::natural);
        const Bytes file = expect_round_trip(d, tiles_of(tile.width, tile.height));
        EXPECT_LE(file.size(), raw_size(d, tile.width, tile.height));
        const l3_info info = info_of(file);
        EXPECT_EQ(info.tile_width, tile.width);
        EXPECT_EQ(info.tile_height, tile.height);
        ASSERT_FALSE(HasFailure()) << tile.width << "x" << tile.height;
      }
    }
  }
}

TEST(RoundTrip, TheLargestTilesThatFitAPayload) {
  const Drawing d = draw({1000, 1030}, {L3_COLOUR_GRAY, 8}, Pattern::noise);
  const Bytes file = expect_round_trip(d, tiles_of(992, 1024));
  EXPECT_LE(file.size(), raw_size(d, 992, 1024));
}

TEST(RoundTrip, ManySeedsOfMixedContents) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Dice dice(seed);
    auto types = drawing::all_types();
    const Drawing d = drawing::draw_mixed({1 + dice.roll(70), 1 + dice.roll(70)}, dice.pick(types), seed);
    expect_round_trip(d, tiles_of(32 * (1 + dice.roll(3)), 32 * (1 + dice.roll(3))));
    ASSERT_FALSE(HasFailure()) << seed;
  }
}

TEST(Threads, ChangeNeitherFileNorPixels) {
  for (const Type& type : drawing::common_types()) {
    const Drawing d = draw({150, 130}, type, Pattern::natural);
    l3_encode_options options = tiles_of(32, 32);
    const Bytes alone = encode(d, options);
    options.parallel = three_threads();
    l3_decode_options decoding = l3_decode_options_init();
    decoding.parallel = three_threads();
    for (const char* target : targets()) {
      const ForcedTarget forced(target);
      const Bytes file = encode(d, options);
      EXPECT_EQ(file, alone) << d.name() << target;
      EXPECT_EQ(decode(file, decoding), d.pixels) << d.name() << target;
      EXPECT_EQ(l3_verify(file.data(), file.size(), &decoding, nullptr), L3_OK);
    }
  }
}

TEST(Threads, AFailureNamesTheFirstBadTileWhicheverFailsFirstInTime) {
  const Drawing d = draw({320, 320}, {L3_COLOUR_GRAY, 8}, Pattern::noise);
  const Bytes whole = encode(d, tiles_of(32, 32));
  Bytes file = whole;
  const uint64_t start = info_of(file).payload_start;
  for (const uint64_t tile : {97u, 41u, 12u, 98u}) file[start + tile * 1024 + 5] ^= 4;
  l3_decode_options options = l3_decode_options_init();
  options.parallel = three_threads();
  Bytes out(d.pixels.size());
  for (int round = 0; round < 50; ++round) {
    l3_error error{};
    EXPECT_EQ(l3_decode(file.data(), file.size(), &options, out.data(), out.size(), 0, &error), L3_ERROR_CORRUPT);
    EXPECT_EQ(error.tile, 12);
    EXPECT_EQ(error.offset, start + 12 * 1024);
    EXPECT_STREQ(error.reason, "the check of a tile does not match");
  }
}

TEST(Threads, ASampleOutOfRangeIsFoundWhereverItIs) {
  const Drawing whole = draw({200, 100}, {L3_COLOUR_RGB, 5}, Pattern::natural);
  Dice dice(3);
  for (int round = 0; round < 30; ++round) {
    Drawing d = whole;
    d.set_sample(dice.roll(200), dice.roll(100), dice.roll(3), 32 + dice.roll(224));
    l3_encode_options options = tiles_of(32, 64);
    if (round % 2 != 0) options.parallel = three_threads();
    const l3_image image = d.image();
    Bytes room(l3_encode_bound(&image, &options));
    size_t written = 0;
    l3_error error{};
    EXPECT_EQ(l3_encode(&image, &options, room.data(), room.size(), &written, &error), L3_ERROR_ARGUMENT);
    EXPECT_STREQ(error.reason, "a sample is above 2^bits - 1");
  }
}

TEST(Strides, PaddingIsNeitherReadNorWritten) {
  for (const Type& type : {Type{L3_COLOUR_GRAY, 3}, Type{L3_COLOUR_RGB, 8}, Type{L3_COLOUR_RGB_ALPHA, 12}}) {
    const Drawing d = draw({45, 37}, type, Pattern::natural);
    const Bytes plain = encode(d, tiles_of(32, 32));
    const size_t row = d.row_bytes();
    for (const size_t stride : {row, row + 1, row + 7, 2 * row + 64}) {
      // The last row has no padding: a sanitizer would see it read or written.
      const Exact padded(stride * 36 + row, 0xEE);
      for (size_t y = 0; y < 37; ++y) std::memcpy(padded.data() + y * stride, &d.pixels[y * row], row);
      l3_image image = d.image();
      image.pixels = padded.data();
      image.stride = stride;
      for (const char* target : targets()) {
        const ForcedTarget forced(target);
        EXPECT_EQ(encode(image, tiles_of(32, 32)), plain);
        const Exact out(padded.size(), 0xEE);
        ASSERT_EQ(l3_decode(plain.data(), plain.size(), nullptr, out.data(), out.size(), stride, nullptr), L3_OK);
        EXPECT_EQ(std::memcmp(out.data(), padded.data(), out.size()), 0) << target << " " << stride;
      }
    }
  }
}

TEST(Region, IsTheCropOfTheWhole) {
  Dice dice(11);
  for (const Type& type : drawing::common_types()) {
    const Drawing d = drawing::draw_mixed({50, 90}, type);
    const Bytes file = encode(d, tiles_of(32, 64));
    for (int round = 0; round < 60; ++round) {
      const uint32_t x = dice.roll(d.width), y = dice.roll(d.height);
      const uint32_t w = 1 + dice.roll(round % 3 == 0 ? std::min(5u, d.width - x) : d.width - x);
      const uint32_t h = 1 + dice.roll(d.height - y);
      const size_t row = size_t{w} * d.pixel_bytes();
      const size_t stride = row + (round % 4 == 0 ? dice.roll(9) : 0);
      const ForcedTarget forced(targets()[static_cast<size_t>(round) % targets().size()]);
      l3_decode_options options = l3_decode_options_init();
      if (round % 16 == 0) options.parallel = three_threads();
      const Exact out(stride * (h - 1) + row);
      l3_error error{};
      ASSERT_EQ(
          l3_decode_region(file.data(), file.size(), x, y, w, h, &options, out.data(), out.size(), stride, &error),
          L3_OK)
          << error.reason;
      for (uint32_t r = 0; r < h; ++r) {
        const uint8_t* wanted = &d.pixels[(y + r) * d.row_bytes() + size_t{x} * d.pixel_bytes()];
        ASSERT_EQ(std::memcmp(out.data() + r * stride, wanted, row), 0)
            << d.name() << ": row " << r << " of " << w << "x" << h << " at " << x << "," << y;
        for (size_t i = row; i < stride && r + 1 < h; ++i) ASSERT_EQ(out.data()[r * stride + i], 0xA5);
      }
    }
  }
}

TEST(Region, EveryPixelOnItsOwn) {
  const Drawing d = draw({40, 35}, {L3_COLOUR_RGB, 8}, Pattern::natural);
  const Bytes file = encode(d, tiles_of(32, 32));
  for (uint32_t y = 0; y < d.height; ++y) {
    for (uint32_t x = 0; x < d.width; ++x) {
      const Exact out(3);
      ASSERT_EQ(l3_decode_region(file.data(), file.size(), x, y, 1, 1, nullptr, out.data(), 3, 0, nullptr), L3_OK);
      for (uint32_t c = 0; c < 3; ++c) ASSERT_EQ(out.data()[c], d.sample(x, y, c));
    }
  }
}

TEST(Region, ReadsOnlyTheTilesThatItTouches) {
  const Drawing d = draw({96, 64}, {L3_COLOUR_GRAY, 8}, Pattern::noise);
  Bytes file = encode(d, tiles_of(32, 32));
  file[info_of(file).payload_start + 4 * 1024] ^= 1;  // tile 4: column 1 of row 1
  Bytes out(96 * 64);
  const auto region = [&](uint32_t x, uint32_t y, uint32_t w, uint32_t h) {
    return l3_decode_region(file.data(), file.size(), x, y, w, h, nullptr, out.data(), out.size(), 0, nullptr);
  };
  EXPECT_EQ(region(0, 0, 96, 32), L3_OK);
  EXPECT_EQ(region(0, 0, 32, 64), L3_OK);
  EXPECT_EQ(region(64, 0, 32, 64), L3_OK);
  EXPECT_EQ(region(0, 0, 33, 33), L3_ERROR_CORRUPT);
  EXPECT_EQ(region(63, 63, 1, 1), L3_ERROR_CORRUPT);
}

TEST(FileSize, IsBelowTheBoundAndTheBoundIsEnough) {
  for (const Type& type : drawing::common_types()) {
    const Drawing d = drawing::with_sections(draw({129, 65}, type, Pattern::noise));
    const l3_image image = d.image();
    const l3_encode_options options = tiles_of(64, 32);
    const uint64_t bound = l3_encode_bound(&image, &options);
    EXPECT_LE(encode(d, options).size(), bound);
    Bytes room(bound - 1);
    size_t written = 0;
    l3_error error{};
    EXPECT_EQ(l3_encode(&image, &options, room.data(), room.size(), &written, &error), L3_ERROR_BUFFER);
    EXPECT_STREQ(error.reason, "the output buffer is too small");
  }
}

TEST(FileSize, OfATinyFileIsAtMost16BytesMoreThanItsPayload) {
  for (const Pattern pattern : drawing::kPatterns) {
    EXPECT_LE(encode(draw({20, 20}, {L3_COLOUR_RGB, 8}, pattern), options_of(L3_METHOD_AUTO)).size(), 16 + 1200);
  }
  const Drawing flat = draw({100, 100}, {L3_COLOUR_RGB_ALPHA, 16}, Pattern::flat);
  EXPECT_EQ(encode(flat, options_of(L3_METHOD_AUTO)).size(), 16 + 8);
}

TEST(FileSize, OfShallowImagesIsNoLargerThanPacked) {
  for (const uint32_t bits : {1u, 2u, 4u}) {
    const Drawing d = draw({256, 256}, {L3_COLOUR_GRAY, bits}, Pattern::noise);
    EXPECT_LE(encode(d).size(), 256 * 256 * bits / 8 + 64 + 48);
  }
}

TEST(FileSize, OfSmoothImagesIsWellBelowTheirs) {
  const Drawing natural = draw({256, 256}, {L3_COLOUR_RGB, 8}, Pattern::natural);
  EXPECT_LT(encode(natural).size() * 10, natural.pixels.size() * 9);
  const Drawing gradient = draw({256, 256}, {L3_COLOUR_RGB, 16}, Pattern::gradient);
  EXPECT_LT(encode(gradient).size() * 5, gradient.pixels.size());
}

}  // namespace
