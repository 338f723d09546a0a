// Tests of tiles whose pixels follow others, and of still rows: drawings of screens, whose glyphs repeat, come back on
// every target, and the encoder lets pixels follow.
#include "any_token_tile.h"
#include "screen_files.h"

namespace {

using namespace codec_testing;
using drawing::Dice;
using drawing::screen;
using drawing::Size;
using drawing::Type;

TEST(Follow, ScreensComeBackOnEveryTarget) {
  constexpr Type kTypes[] = {{L3_COLOUR_GRAY, 8},       {L3_COLOUR_RGB, 8},     {L3_COLOUR_RGB_ALPHA, 8},
                             {L3_COLOUR_GRAY_ALPHA, 8}, {L3_COLOUR_PALETTE, 8}, {L3_COLOUR_GRAY, 16},
                             {L3_COLOUR_RGB, 16},       {L3_COLOUR_GRAY, 3},    {L3_COLOUR_RGB_ALPHA, 10}};
  int used = 0, used_literal = 0;
  for (const Type& type : kTypes) {
    const Bytes file = expect_round_trip(screen({300, 180}, type), options_of(L3_METHOD_DENSE, 0, 0, 5));
    ASSERT_FALSE(HasFailure());
    const uint32_t flags = flags_of(file);
    used += (flags & by_hand::kFollow) != 0;
    used_literal += (flags & by_hand::kFollow) != 0 && (flags & by_hand::kLiteral) != 0;
  }
  EXPECT_GE(used, 5);
  EXPECT_GE(used_literal, 1);
}

// Tiles of any shape: fewer lanes, several bands, and such as are narrower than the lanes.
TEST(Follow, EveryShapeOfTilesComesBack) {
  Dice dice(3);
  for (const Type& type : {Type{L3_COLOUR_GRAY, 8}, Type{L3_COLOUR_RGB, 8}}) {
    const Bytes model = model_for_screens(type);
    for (const Size& tile : {Size{32, 32}, Size{32, 256}, Size{256, 32}, Size{64, 96}, Size{480, 480}}) {
      if (kSanitized && tile.width > 256) continue;
      const Size size{tile.width + 1 + dice.roll(tile.width), tile.height + 1 + dice.roll(tile.height)};
      const Bytes file =
          expect_round_trip(screen(size, type, dice.next()), options_with(model, tile.width, tile.height));
      ASSERT_FALSE(HasFailure()) << tile.width << "x" << tile.height;
      expect_that_pixels_follow(file);
    }
  }
}

// Such tiles may have more samples than a payload can hold raw. Where one does not compress enough, all are smaller.
TEST(Follow, LargeTilesAreUsedWhereTheyFit) {
  if (kSanitized) return;
  const Bytes file = expect_round_trip(screen({1100, 1040}, {L3_COLOUR_RGB, 8}), options_of(L3_METHOD_AUTO, 0, 0, 1));
  EXPECT_EQ(codec_testing::info_of(file).tile_width, 1024u);
  EXPECT_EQ(codec_testing::info_of(file).tile_height, 1024u);

  Drawing d = screen({1024, 8000}, {L3_COLOUR_GRAY, 16});
  Dice dice(4);
  constexpr uint32_t kNoisy = 740;
  static_assert(kNoisy * kNoisy * 2 > 1 << 20);
  for (uint32_t i = 0; i < kNoisy * kNoisy; ++i) d.set_sample(i % kNoisy, i / kNoisy, 0, dice.roll(65536));
  const Bytes noisy = codec_testing::encode(d, options_of(L3_METHOD_AUTO, 0, 0, 1));
  EXPECT_EQ(codec_testing::decode(noisy), d.pixels);
  EXPECT_LT(noisy.size(), d.pixels.size() / 8);
  EXPECT_LE(codec_testing::info_of(noisy).tile_height, 512u);
}

TEST(Follow, RegionsAreCropsOfTheWhole) {
  const Size size{300, 200};
  const Drawing d = screen(size, {L3_COLOUR_RGB, 8});
  const Bytes model = model_for_screens({L3_COLOUR_RGB, 8});
  const Bytes file = encode(d, options_with(model, 96, 64));
  expect_that_pixels_follow(file);
  Dice dice(4);
  for (const char* target : targets()) {
    const ForcedTarget forced(target);
    for (int round = 0; round < 40; ++round) {
      const uint32_t x = dice.roll(size.width), y = dice.roll(size.height);
      const uint32_t w = 1 + dice.roll(size.width - x), h = 1 + dice.roll(size.height - y);
      const Exact out(size_t{3} * w * h);
      ASSERT_EQ(l3_decode_region(file.data(), file.size(), x, y, w, h, nullptr, out.data(), out.size(), 0, nullptr),
                L3_OK);
      for (uint32_t row = 0; row < h; ++row) {
        const size_t at = ((size_t{y} + row) * size.width + x) * 3;
        ASSERT_EQ(std::memcmp(out.data() + size_t{3} * w * row, &d.pixels[at], size_t{3} * w), 0) << target;
      }
    }
  }
}

// A model that was trained on screens codes others, with other glyphs.
TEST(Follow, TrainedModelsCodeOtherScreens) {
  for (const l3_colour colour : {L3_COLOUR_GRAY, L3_COLOUR_RGB, L3_COLOUR_RGB_ALPHA}) {
    const Type type{colour, 8};
    const Bytes model = model_for_screens(type);
    const Bytes file = expect_round_trip(screen({230, 130}, type, 4), options_with(model, 96, 96));
    ASSERT_FALSE(HasFailure());
    expect_that_pixels_follow(file);
  }
}

// Models with any rows and tables: the encoder finds what pixels follow, and uses them where they make tiles smaller.
TEST(Follow, AnyModelCodesEveryImage) {
  constexpr uint32_t kFollow = by_hand::kMatch | by_hand::kFollow, kRows = by_hand::kStill | by_hand::kRows;
  Dice dice(5);
  uint64_t dense = 0;
  for (uint32_t i = 0; i < (kSanitized ? 20 : 40); ++i) {
    const l3_colour colour = static_cast<l3_colour>(i % 4);
    const uint32_t channels = i % 4 + 1, bits = 8 + dice.roll(9);
    uint32_t flags = kFollow | (dice.chance(2) ? kRows : 0);
    if (channels == 1 && dice.chance(2)) flags |= dice.chance(2) ? by_hand::kLiteral : by_hand::kHole;
    const Bytes model = by_hand::any_token_model(dice, channels, bits, flags).section.bytes();
    l3_encode_options options = options_of(L3_METHOD_DENSE, 96, 96);
    options.model = model.data();
    options.model_size = model.size();
    const Size size{60 + dice.roll(90), 60 + dice.roll(50)};
    const Bytes file = expect_round_trip(screen(size, {colour, bits}, dice.next()), options);
    ASSERT_FALSE(HasFailure()) << i;
    uint64_t count = 0;
    EXPECT_EQ(l3_count_tiles(file.data(), file.size(), L3_TILE_DENSE, &count, nullptr), L3_OK);
    dense += count;
  }
  EXPECT_GE(dense, kSanitized ? 5u : 10u);
}

// Text, and above it rows of noise on a gradient, which the numbers of channels code in fewer bytes than a list of
// colours. Up to effort 5, numbers must save more.
TEST(Follow, NumbersHaveAPrice) {
  constexpr struct {
    uint32_t rows;
    bool literal_at_5, literal_at_6;
  } kCases[] = {{30, true, true}, {54, true, false}, {90, false, false}};
  for (const auto& [rows, literal_at_5, literal_at_6] : kCases) {
    Drawing d = screen({300, 200}, {L3_COLOUR_RGB, 8});
    Dice dice(7);
    for (uint32_t i = 0; i < 300 * rows; ++i) {
      const uint32_t sample = i % 300 / 2 + dice.roll(4);
      for (uint32_t c = 0; c < 3; ++c) d.set_sample(i % 300, i / 300, c, sample + 10 * c);
    }
    const auto is_literal = [&](uint32_t effort) {
      return (flags_of(encode(d, options_of(L3_METHOD_DENSE, 0, 0, effort))) & by_hand::kLiteral) != 0;
    };
    EXPECT_EQ(is_literal(5), literal_at_5) << rows;
    EXPECT_EQ(is_literal(6), literal_at_6) << rows;
  }
}

TEST(Follow, BytesDoNotDependOnThreads) {
  const Drawing d = screen({300, 200}, {L3_COLOUR_RGB, 8});
  l3_encode_options options = options_of(L3_METHOD_DENSE, 64, 64, 5);
  const Bytes first = encode(d, options);
  options.parallel = three_threads();
  EXPECT_EQ(encode(d, options), first);
}

}  // namespace
