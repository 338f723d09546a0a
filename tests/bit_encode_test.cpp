// Tests of images of two colours, which get bit models (section 24 of the spec).
#include <algorithm>

#include "codec_testing.h"

namespace {

using namespace codec_testing;
using drawing::Dice;
using drawing::Size;
using drawing::Type;

constexpr uint32_t kBitModel = 2;  // of the required features, and the kind of the model

// Lines and dots of ink on a ground, or noise.
std::vector<bool> ink_of(Dice& dice, const Size& size, bool is_noise = false) {
  std::vector<bool> ink(size_t{size.width} * size.height);
  for (size_t i = 0; i < ink.size() && is_noise; ++i) ink[i] = dice.chance(3);
  for (size_t i = 0; i < ink.size() / 200 + 1 && !is_noise; ++i) {
    const uint32_t x = dice.roll(size.width), y = dice.roll(size.height), slope = dice.roll(3);
    const uint32_t length = 1 + dice.roll(30), thickness = 1 + dice.roll(3);
    for (uint32_t k = 0; k < length; ++k) {
      const uint32_t row = std::min(y + k * slope / 2, size.height - 1);
      for (uint32_t t = 0; t < thickness; ++t) {
        ink[size_t{row} * size.width + std::min(x + (slope == 0 ? k : k / 4) + t, size.width - 1)] = true;
      }
    }
  }
  return ink;
}

struct Colours {
  uint32_t of[2][4];
};
Colours any_colours(Dice& dice, const Drawing& d) {
  Colours colours{};
  const uint32_t most = d.colour == L3_COLOUR_PALETTE ? static_cast<uint32_t>(d.palette.size() / 3) - 1 : d.maximum();
  for (auto& colour : colours.of) {
    for (uint32_t& sample : colour) sample = dice.roll(uint64_t{most} + 1);
  }
  const uint32_t c = dice.roll(d.channels());
  if (colours.of[0][c] == colours.of[1][c]) colours.of[1][c] = colours.of[0][c] == 0 ? 1 : colours.of[0][c] - 1;
  return colours;
}

Drawing paint(const Size& size, const Type& type, const std::vector<bool>& ink, Dice& dice, const Colours* colours) {
  Drawing d = drawing::blank(size, type);
  const Colours chosen = colours != nullptr ? *colours : any_colours(dice, d);
  for (uint32_t y = 0; y < size.height; ++y) {
    for (uint32_t x = 0; x < size.width; ++x) {
      const bool is_ink = ink[size_t{y} * size.width + x];
      for (uint32_t c = 0; c < d.channels(); ++c) d.set_sample(x, y, c, chosen.of[is_ink][c]);
    }
  }
  return d;
}

bool has_bits(const Bytes& file) { return (info_of(file).required_features & kBitModel) != 0 && file[3] != 0x74; }

// The model of a file that has its own.
Bytes model_of(const Bytes& file) {
  l3_file* opened = nullptr;
  EXPECT_EQ(l3_open(file.data(), file.size(), nullptr, nullptr, 0, &opened, nullptr), L3_OK);
  const uint8_t* bytes = nullptr;
  size_t size = 0;
  EXPECT_EQ(l3_file_section(opened, L3_SECTION_MODEL, &bytes, &size, nullptr), L3_OK);
  const Bytes model(bytes, bytes + size);
  l3_close(opened);
  return model;
}

uint64_t tiles_by(const Bytes& file, l3_tile_method method) {
  l3_file* opened = nullptr;
  EXPECT_EQ(l3_open(file.data(), file.size(), nullptr, nullptr, 0, &opened, nullptr), L3_OK);
  uint64_t count = 0;
  EXPECT_EQ(l3_file_count_tiles(opened, method, &count, nullptr), L3_OK);
  l3_close(opened);
  return count;
}

constexpr Size kPage{500, 420};

TEST(BitEncode, PagesOfAnyTypeHaveBitModels) {
  Dice dice(1);
  for (const Type& type : kSanitized ? drawing::common_types() : drawing::all_types()) {
    const Drawing d = paint(kPage, type, ink_of(dice, kPage), dice, nullptr);
    const Bytes file = expect_round_trip(d, options_of(L3_METHOD_AUTO, 0, 0, 2));
    EXPECT_TRUE(has_bits(file)) << d.name();
    EXPECT_EQ(model_of(file)[0], kBitModel);
  }
}

TEST(BitEncode, EffortsMakeSmallerFiles) {
  Dice dice(2);
  const Drawing d = paint(kPage, {L3_COLOUR_GRAY, 1}, ink_of(dice, kPage), dice, nullptr);
  size_t before = SIZE_MAX;
  for (const uint32_t effort : {1u, 5u, 9u}) {
    const Bytes file = expect_round_trip(d, options_of(L3_METHOD_AUTO, 0, 0, effort));
    EXPECT_TRUE(has_bits(file)) << effort;
    EXPECT_LE(file.size(), before) << effort;
    before = file.size();
  }
}

TEST(BitEncode, FilesDependOnNoThread) {
  Dice dice(3);
  for (const Size& size : {Size{700, 900}, Size{1100, 300}}) {
    const Drawing d = paint(size, {L3_COLOUR_GRAY, 8}, ink_of(dice, size), dice, nullptr);
    for (const uint32_t edge : {0u, 128u}) {
      l3_encode_options options = options_of(L3_METHOD_AUTO, edge, edge, 3);
      const Bytes file = encode(d, options);
      EXPECT_TRUE(has_bits(file));
      options.parallel = three_threads();
      EXPECT_EQ(encode(d, options), file);
    }
  }
}

// With a model that the caller supplies, files of any size have bit tiles.
TEST(BitEncode, ImagesOfAllSizesMayHaveTheCallersModel) {
  Dice dice(4);
  uint64_t bit_tiles = 0;  // others are smaller without the model, or constant
  for (const Type& type : {Type{L3_COLOUR_GRAY, 1}, Type{L3_COLOUR_GRAY, 8}, Type{L3_COLOUR_RGB, 8},
                           Type{L3_COLOUR_PALETTE, 4}, Type{L3_COLOUR_GRAY_ALPHA, 12}, Type{L3_COLOUR_RGB_ALPHA, 16}}) {
    const Colours colours = any_colours(dice, drawing::blank({1, 1}, type));
    const Drawing page = paint(kPage, type, ink_of(dice, kPage), dice, &colours);
    const Bytes model = model_of(encode(page, options_of(L3_METHOD_AUTO, 0, 0, 5)));
    ASSERT_EQ(model[0], kBitModel);
    l3_model* opened = nullptr;
    ASSERT_EQ(l3_open_model(model.data(), model.size(), &opened, nullptr), L3_OK);
    std::vector<Size> sizes(std::begin(drawing::kSizes), std::end(drawing::kSizes));
    for (const Size& more : {Size{2, 2}, Size{1, 40}, Size{40, 1}, Size{5, 64}, Size{16, 16}, Size{1030, 3}}) {
      sizes.push_back(more);
    }
    for (const Size& size : sizes) {
      for (const bool is_noise : {false, true}) {
        std::vector<bool> ink = ink_of(dice, size, is_noise);
        ink[0] = !ink.back();
        const Drawing d = paint(size, type, ink, dice, &colours);
        l3_encode_options options = options_of(L3_METHOD_DENSE, 0, 0, 1);
        options.model = model.data();
        options.model_size = model.size();
        const Bytes own = expect_round_trip(d, options);
        EXPECT_TRUE(has_bits(own)) << d.name();
        bit_tiles += tiles_by(own, L3_TILE_DENSE);

        options.model = nullptr;
        options.model_size = 0;
        options.named_model = opened;
        options.model_origin = L3_MODEL_NAMED;
        const Bytes named = encode(d, options);
        EXPECT_EQ(info_of(named).required_features, kBitModel | 1) << d.name();
        l3_decode_options decoding = l3_decode_options_init();
        decoding.models = &opened;
        decoding.model_count = 1;
        EXPECT_EQ(decode(named, decoding), d.pixels) << d.name();
      }
    }
    l3_close_model(opened);
  }
  EXPECT_GT(bit_tiles, 80u);
}

// A lane may have 2^15 pixels at most; and tiles end in different ways.
TEST(BitEncode, TilesOfAllKinds) {
  Dice dice(5);
  for (uint32_t i = 0; i < (kSanitized ? 6 : 24); ++i) {
    const Size size{257 + dice.roll(300), 1 + dice.roll(400)};
    const uint32_t width = 32 * (1 + dice.roll(12)), height = 32 * (1 + dice.roll(12));
    std::vector<bool> ink = ink_of(dice, size, dice.chance(3));
    // Nothing in the lower part, or nearly so.
    const size_t from = dice.chance(3) ? ink.size() / 2 : ink.size();
    for (size_t k = from; k < ink.size(); ++k) ink[k] = dice.chance(2000);
    const Drawing d = paint(size, {L3_COLOUR_GRAY, 8}, ink, dice, nullptr);
    expect_round_trip(d, options_of(L3_METHOD_AUTO, width, height, 1 + dice.roll(4)));
  }
}

TEST(BitEncode, TilesOfOneColourAreConstant) {
  Dice dice(6);
  std::vector<bool> ink(size_t{600} * 600);
  const Drawing one = paint({600, 600}, {L3_COLOUR_RGB, 8}, ink, dice, nullptr);
  const Bytes file = expect_round_trip(one, options_of(L3_METHOD_AUTO));
  EXPECT_FALSE(has_bits(file));
  EXPECT_EQ(tiles_by(file, L3_TILE_CONSTANT), info_of(file).tile_count);

  const std::vector<bool> part = ink_of(dice, {600, 300});
  std::copy(part.begin(), part.end(), ink.begin());
  const Drawing half = paint({600, 600}, {L3_COLOUR_RGB, 8}, ink, dice, nullptr);
  const Bytes other = expect_round_trip(half, options_of(L3_METHOD_AUTO, 128, 128));
  EXPECT_TRUE(has_bits(other));
  EXPECT_GE(tiles_by(other, L3_TILE_CONSTANT), 10u);
}

// A third colour anywhere, or a sample out of range.
TEST(BitEncode, OtherImagesHaveOtherModels) {
  Dice dice(7);
  const Colours colours{{{3, 3, 3, 3}, {200, 20, 2, 2}}};
  Drawing d = paint(kPage, {L3_COLOUR_RGB, 8}, ink_of(dice, kPage), dice, &colours);
  const Bytes pure = encode(d, options_of(L3_METHOD_AUTO, 0, 0, 1));
  const Bytes model = model_of(pure);
  ASSERT_TRUE(has_bits(pure));
  d.set_sample(kPage.width - 1, kPage.height - 1, 2, 77);
  EXPECT_FALSE(has_bits(expect_round_trip(d, options_of(L3_METHOD_AUTO, 0, 0, 1))));
  // Only this tile has no place in the caller's model.
  l3_encode_options options = options_of(L3_METHOD_DENSE, 128, 128);
  options.model = model.data();
  options.model_size = model.size();
  const Bytes file = expect_round_trip(d, options);
  EXPECT_TRUE(has_bits(file));
  EXPECT_EQ(tiles_by(file, L3_TILE_DENSE) + tiles_by(file, L3_TILE_CONSTANT), info_of(file).tile_count - 1);

  Drawing wrong = paint(kPage, {L3_COLOUR_GRAY, 4}, ink_of(dice, kPage), dice, nullptr);
  for (uint8_t& sample : wrong.pixels) sample = sample == wrong.pixels[0] ? 0 : 16;
  const l3_image image = wrong.image();
  const l3_encode_options any = options_of(L3_METHOD_AUTO);
  Bytes out(l3_encode_bound(&image, &any));
  size_t written = 0;
  EXPECT_EQ(l3_encode(&image, &any, out.data(), out.size(), &written, nullptr), L3_ERROR_ARGUMENT);
}

TEST(BitEncode, SmallImagesStayTiny) {
  Dice dice(8);
  for (const Size& size : {Size{1, 1}, Size{5, 9}, Size{100, 120}, Size{256, 64}}) {
    const Drawing d = paint(size, {L3_COLOUR_GRAY, 1}, ink_of(dice, size), dice, nullptr);
    EXPECT_EQ(expect_round_trip(d, options_of(L3_METHOD_AUTO))[3], 0x74) << d.name();
  }
  const Drawing noise = paint({256, 256}, {L3_COLOUR_GRAY, 1}, ink_of(dice, {256, 256}, true), dice, nullptr);
  EXPECT_NE(expect_round_trip(noise, options_of(L3_METHOD_AUTO, 256, 256))[3], 0x74);
}

// A page of letters: each is drawn at random and put in many places, in lines.
std::vector<bool> letters_of(Dice& dice, const Size& size, uint32_t edge = 20) {
  struct Letter {
    uint32_t width, height;
    std::vector<bool> ink;
  };
  std::vector<Letter> alphabet(12);
  for (Letter& letter : alphabet) {
    letter.width = edge / 2 + dice.roll(edge / 2 + 1);
    letter.height = edge / 2 + dice.roll(edge / 2 + 1);
    letter.ink.resize(size_t{letter.width} * letter.height);
    // Lines from the lower left corner, so that they are connected.
    for (uint32_t line = 0; line < 6; ++line) {
      uint32_t x = 0, y = letter.height - 1;
      for (uint32_t i = 0; i < 2 * edge; ++i) {
        letter.ink[size_t{y} * letter.width + x] = true;
        if (dice.chance(2)) {
          x = std::min(x + 1, letter.width - 1);
        } else if (y > 0) {
          --y;
        }
      }
    }
  }
  std::vector<bool> ink(size_t{size.width} * size.height);
  for (uint32_t bottom = edge + 3; bottom < size.height; bottom += edge + 6) {
    for (uint32_t left = 2; left + edge < size.width;) {
      const Letter& letter = dice.pick(alphabet);
      for (uint32_t i = 0; i < letter.ink.size(); ++i) {
        const uint32_t y = bottom - letter.height + i / letter.width;
        if (letter.ink[i]) ink[size_t{y} * size.width + left + i % letter.width] = true;
      }
      left += letter.width + 2 + dice.roll(3);
    }
  }
  return ink;
}

constexpr uint32_t kShapes = 8;  // of the required features

bool has_shapes(const Bytes& file) { return (info_of(file).required_features & kShapes) != 0; }

TEST(BitEncode, LettersAreShapes) {
  Dice dice(9);
  constexpr Size size{500, 560};
  for (const Type& type : {Type{L3_COLOUR_GRAY, 1}, Type{L3_COLOUR_GRAY, 8}, Type{L3_COLOUR_RGB, 8},
                           Type{L3_COLOUR_PALETTE, 4}, Type{L3_COLOUR_RGB_ALPHA, 16}}) {
    std::vector<bool> ink = letters_of(dice, size);
    for (const uint32_t effort : {1u, 7u, 5u}) {
      if (effort == 5) ink.flip();  // the letters have the colour that is rarer, also where it is that of the bit 0
      const Drawing d = paint(size, type, ink, dice, nullptr);
      const Bytes file = expect_round_trip(d, options_of(L3_METHOD_AUTO, 0, 0, effort));
      EXPECT_TRUE(has_shapes(file)) << d.name() << " " << effort;
      EXPECT_LT(file.size(), size_t{5000}) << d.name() << " " << effort;
    }
  }
}

// Letters of all sizes up to the largest shapes and beyond; tiles cut some of them.
TEST(BitEncode, LettersInTilesOfAllSizes) {
  Dice dice(10);
  for (const uint32_t edge : {10u, 33u, 66u}) {
    const Size size{600, 560};
    const Drawing d = paint(size, {L3_COLOUR_GRAY, 8}, letters_of(dice, size, edge), dice, nullptr);
    for (const uint32_t tile : {32u, 96u, 512u, 992u}) {
      if (kSanitized && tile == 96) continue;
      l3_encode_options options = options_of(L3_METHOD_AUTO, tile, tile, 5);
      const Bytes file = expect_round_trip(d, options);
      EXPECT_TRUE(has_shapes(file) || edge != 33 || tile != 512);
      options.parallel = three_threads();
      EXPECT_EQ(encode(d, options), file);
    }
  }
}

TEST(BitEncode, ScatteredLinesAreNoShapes) {
  Dice dice(11);
  const Drawing d = paint(kPage, {L3_COLOUR_GRAY, 1}, ink_of(dice, kPage, true), dice, nullptr);
  EXPECT_FALSE(has_shapes(expect_round_trip(d, options_of(L3_METHOD_AUTO))));
}

// Other pages of the same letters use the shapes of a named model, and pages of other letters do not.
TEST(BitEncode, ShapesOfANamedModel) {
  Dice dice(12);
  const Colours colours{{{250, 250, 250, 0}, {10, 20, 30, 0}}};
  const std::vector<bool> ink = letters_of(dice, {700, 800});
  const Type type{L3_COLOUR_RGB, 8};
  const Bytes first = encode(paint({700, 800}, type, ink, dice, &colours), options_of(L3_METHOD_AUTO, 0, 0, 5));
  ASSERT_TRUE(has_shapes(first));
  const Bytes model = model_of(first);
  l3_model* opened = nullptr;
  ASSERT_EQ(l3_open_model(model.data(), model.size(), &opened, nullptr), L3_OK);
  l3_encode_options options = options_of(L3_METHOD_DENSE);
  options.named_model = opened;
  options.model_origin = L3_MODEL_NAMED;
  l3_decode_options decoding = l3_decode_options_init();
  decoding.models = &opened;
  decoding.model_count = 1;
  size_t of_own = 0;
  for (const bool is_own : {true, false}) {
    const std::vector<bool> page =
        is_own ? std::vector<bool>(ink.begin() + 700 * 26, ink.end() - 700 * 26) : letters_of(dice, {700, 748});
    const Drawing d = paint({700, 748}, type, page, dice, &colours);
    const Bytes file = encode(d, options);
    EXPECT_EQ(info_of(file).required_features, kBitModel | kShapes | 1);
    EXPECT_EQ(decode(file, decoding), d.pixels);
    if (is_own) of_own = file.size();
    EXPECT_TRUE(is_own || file.size() > 2 * of_own) << file.size();
  }
  l3_close_model(opened);
}

}  // namespace
