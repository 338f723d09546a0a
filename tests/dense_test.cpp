// Tests of the dense method: round trips on every target, in any order, with any model; regions equal crops; and rules
// for supplied models.
#include "any_model.h"
#include "codec_testing.h"
#include "container/tile.h"

namespace {

using namespace codec_testing;
using drawing::Dice;
using drawing::Pattern;
using drawing::Size;
using drawing::Type;

constexpr l3_colour kColours[] = {L3_COLOUR_GRAY, L3_COLOUR_GRAY_ALPHA, L3_COLOUR_RGB, L3_COLOUR_RGB_ALPHA,
                                  L3_COLOUR_PALETTE};

Drawing natural(Size size, l3_colour colour, uint64_t seed = 1) {
  return drawing::draw(size, {colour, 8}, Pattern::natural, seed);
}

uint64_t tiles_by(const Bytes& file, l3_tile_method method) {
  uint64_t count = 0;
  EXPECT_EQ(l3_count_tiles(file.data(), file.size(), method, &count, nullptr), L3_OK);
  return count;
}

Bytes model_of(const Bytes& file) {
  const uint8_t* bytes = nullptr;
  size_t size = 0;
  EXPECT_EQ(l3_find_section(file.data(), file.size(), L3_SECTION_MODEL, &bytes, &size, nullptr), L3_OK);
  return bytes == nullptr ? Bytes{} : Bytes(bytes, bytes + size);
}

// ---- what is encoded comes back

TEST(Dense, EveryColourAndSizeComesBackOnEveryTarget) {
  constexpr Size kSizes[] = {{1, 1},  {1, 40},  {40, 1}, {2, 2},  {2, 33},  {3, 70},  {16, 16},
                             {15, 2}, {17, 33}, {31, 5}, {33, 9}, {129, 5}, {63, 65}, {64, 64}};
  for (const l3_colour colour : kColours) {
    for (const Size& size : kSizes) {
      const Bytes file = expect_round_trip(natural(size, colour), options_of(L3_METHOD_DENSE));
      ASSERT_FALSE(HasFailure());
      if (size.width * size.height >= 64 * 64) {
        EXPECT_EQ(tiles_by(file, L3_TILE_DENSE), info_of(file).tile_count);
      }
    }
  }
}

TEST(Dense, EveryPatternComesBack) {
  for (const l3_colour colour : kColours) {
    for (const Pattern pattern : drawing::kPatterns) {
      SCOPED_TRACE(drawing::name_of(pattern));
      expect_round_trip(drawing::draw({67, 45}, {colour, 8}, pattern), options_of(L3_METHOD_DENSE, 32, 32, 1));
      ASSERT_FALSE(HasFailure());
    }
  }
}

void expect_own_model_comes_back(const Drawing& d) {
  for (const uint32_t effort : {1u, 5u, 9u}) {
    l3_encode_options options = options_of(L3_METHOD_DENSE, 128, 128, effort);
    options.model_origin = L3_MODEL_OWN;
    expect_round_trip(d, options);
  }
}

// An image of blue that follows from green, and from how green differs from what is expected of it. The weights of
// green and of its error would add up to 141.
TEST(Dense, PairsOfWeightsThatWouldAddUpToTooMuchComeBack) {
  Drawing d = drawing::blank({128, 96}, {L3_COLOUR_RGB, 8});
  Dice dice(5);
  const auto at = [&](uint32_t x, uint32_t y) { return &d.pixels[y * d.row_bytes() + size_t{3} * x]; };
  const auto narrow = [](int value) { return static_cast<uint8_t>(std::clamp(value, 0, 255)); };
  for (uint32_t y = 0; y < d.height; ++y) {
    for (uint32_t x = 0; x < d.width; ++x) {
      const int step = static_cast<int>(dice.roll(21)) - 10;
      const bool inside = x > 1 && y > 1 && x + 1 < d.width;
      const int green = inside ? (at(x - 2, y)[1] + at(x + 1, y - 1)[1] + at(x, y - 2)[1]) / 3 + step : 128;
      at(x, y)[0] = static_cast<uint8_t>(dice.roll(256));
      at(x, y)[1] = narrow(green);
      at(x, y)[2] =
          narrow(inside ? (at(x - 1, y)[2] + at(x, y - 1)[2]) / 2 + step * 6 / 5 + green - at(x - 1, y)[1] : 128);
    }
  }
  expect_own_model_comes_back(d);
}

// Each error is about twice as great as the one at W, and greater than all others near it: activity weights would add
// up to much.
TEST(Dense, ActivityWeightsThatWouldAddUpToTooMuchComeBack) {
  Drawing d = drawing::blank({128, 96}, {L3_COLOUR_GRAY, 8});
  Dice dice(6);
  for (uint32_t y = 0; y < d.height; ++y) {
    for (uint32_t x = 0; x < d.width; ++x) {
      const uint32_t size = 1u << (x + 5 * y) % 8;
      d.pixels[y * d.row_bytes() + x] = static_cast<uint8_t>(128 + dice.roll(size) - size / 2);
    }
  }
  expect_own_model_comes_back(d);
}

TEST(Dense, EveryTileSizeComesBack) {
  constexpr Size kTiles[] = {{32, 32}, {32, 64}, {96, 32}, {64, 128}, {160, 96}, {1024, 32}, {32, 1024}, {992, 1024}};
  for (const Size& tile : kTiles) {
    const Bytes file =
        expect_round_trip(natural({300, 200}, L3_COLOUR_GRAY), options_of(L3_METHOD_DENSE, tile.width, tile.height, 1));
    EXPECT_EQ(tiles_by(file, L3_TILE_DENSE), info_of(file).tile_count);
    ASSERT_FALSE(HasFailure());
  }
}

// The fewest lanes of any dense tile.
uint32_t fewest_lanes(const Bytes& file) {
  const l3_info info = info_of(file);
  uint32_t fewest = l3::kLanes;
  for (uint64_t tile = 0; tile < info.tile_count; ++tile) {
    const uint8_t* const entry = file.data() + info.head_bytes + tile * l3::kIndexEntryBytes;
    if (entry[0] == L3_TILE_DENSE) fewest = std::min(fewest, 1u << (entry[1] & 7));
  }
  return fewest;
}

// A decoder waits for tiles of few lanes, so a clear sky in a large photograph has as many as the rest.
TEST(Dense, FlatTilesOfLargeImagesHaveAllLanes) {
  Dice dice(3);
  for (const uint32_t edge : {256u, 768u}) {
    Drawing d = natural({edge, edge}, L3_COLOUR_GRAY);
    for (size_t i = 0; i < d.pixels.size(); ++i) {
      if (i % edge < edge / 2) d.pixels[i] = static_cast<uint8_t>(200 + (dice.chance(300) ? 1 : 0));
    }
    const Bytes file = expect_round_trip(d, options_of(L3_METHOD_DENSE, 128, 128, 1));
    ASSERT_FALSE(HasFailure());
    EXPECT_EQ(fewest_lanes(file) == l3::kLanes, edge > 512) << edge;
  }
}

TEST(Dense, EveryEffortComesBackAndMoreOfItTakesNoMoreBytes) {
  const Drawing d = natural(kSanitized ? Size{160, 120} : Size{300, 200}, L3_COLOUR_RGB);
  size_t first = 0, before = SIZE_MAX;
  for (uint32_t effort = 1; effort <= 9; effort += kSanitized ? 4 : 1) {
    const size_t size = expect_round_trip(d, options_of(L3_METHOD_DENSE, 128, 128, effort)).size();
    EXPECT_LE(size, before + before / 50) << effort;  // a drawing is not what it is made for
    if (effort == 1) first = size;
    before = size;
  }
  EXPECT_LT(before, first);
  EXPECT_EQ(encode(d, options_of(L3_METHOD_DENSE)), encode(d, options_of(L3_METHOD_DENSE, 128, 128, 5)));
}

// Of few colours: little effort makes a plain model, which may be all that a small image is worth.
TEST(Auto, MuchEffortTakesNoMoreBytesThanTheLeast) {
  for (const l3_colour colour : {L3_COLOUR_GRAY, L3_COLOUR_RGB, L3_COLOUR_PALETTE}) {
    for (const Size& size : {Size{40, 30}, Size{90, 60}, Size{200, 40}, Size{64, 200}, Size{150, 100}}) {
      if (kSanitized && size.width > 90) continue;
      const Drawing d = drawing::draw(size, {colour, 8}, drawing::Pattern::labels);
      l3_encode_options options = options_of(L3_METHOD_AUTO);
      options.effort = 1;
      const size_t minimum = encode(d, options).size();
      for (const uint32_t effort : {6u, 9u}) {
        if (kSanitized && effort > 6) continue;
        options.effort = effort;
        EXPECT_LE(encode(d, options).size(), minimum) << size.width << ", effort " << effort;
      }
    }
  }
}

TEST(Dense, IsSmallerThanFast) {
  for (const l3_colour colour : {L3_COLOUR_GRAY, L3_COLOUR_RGB}) {
    const Drawing d = natural({512, 384}, colour);
    EXPECT_LT(encode(d, options_of(L3_METHOD_DENSE)).size(), encode(d, fast_options()).size());
  }
}

TEST(Dense, MixedTilesEachTakeWhatIsSmallest) {
  const Bytes file =
      expect_round_trip(drawing::draw_mixed({96, 64}, {L3_COLOUR_RGB, 8}), options_of(L3_METHOD_DENSE, 96, 64));
  EXPECT_EQ(tiles_by(file, L3_TILE_DENSE), 1);
  EXPECT_EQ(tiles_by(file, L3_TILE_CONSTANT), 1);
  EXPECT_EQ(tiles_by(file, L3_TILE_RAW), 1);
}

TEST(Dense, GoesWithAllSections) {
  for (const l3_colour colour : kColours) {
    const Drawing d = drawing::with_sections(natural({70, 50}, colour));
    for (const l3_method method : {L3_METHOD_DENSE, L3_METHOD_AUTO}) {
      const Bytes file = expect_round_trip(d, options_of(method, 64, 32));
      const uint8_t* bytes = nullptr;
      size_t size = 0;
      ASSERT_EQ(l3_find_section(file.data(), file.size(), L3_SECTION_EXIF, &bytes, &size, nullptr), L3_OK);
      EXPECT_EQ(Bytes(bytes, bytes + size), d.exif);
    }
  }
}

TEST(Dense, OfAllDepths) {
  for (const Type& type : kSanitized ? drawing::common_types() : drawing::all_types()) {
    for (const l3_method method : {L3_METHOD_DENSE, L3_METHOD_AUTO}) {
      expect_round_trip(drawing::draw({50, 40}, type, Pattern::natural), options_of(method, 32, 32));
    }
  }
}

// ---- auto

TEST(Auto, IsNeverLargerThanFast) {
  for (const l3_colour colour : kColours) {
    for (const Pattern pattern : drawing::kPatterns) {
      for (const Size& size : {Size{1, 1}, Size{9, 20}, Size{67, 45}, Size{200, 150}}) {
        if (kSanitized && size.width > 100) continue;
        const Drawing d = drawing::draw(size, {colour, 8}, pattern);
        const Bytes fast = encode(d, options_of(L3_METHOD_FAST, 64, 64));
        const Bytes best = encode(d, options_of(L3_METHOD_AUTO, 64, 64));
        EXPECT_LE(best.size(), fast.size()) << d.name() << drawing::name_of(pattern);
        EXPECT_EQ(decode(best), d.pixels);
        if (best[3] == 't') continue;  // a tiny file, which the fast method does not make
        // Either it has a model and tiles that use it, or it is the file of the fast method.
        l3_info info = l3_info_init();
        ASSERT_EQ(l3_read_info(best.data(), best.size(), nullptr, &info, nullptr), L3_OK);
        if (info.model_origin == L3_MODEL_NONE) {
          EXPECT_EQ(best, fast) << d.name() << drawing::name_of(pattern);
        } else {
          EXPECT_GT(tiles_by(best, L3_TILE_DENSE), 0) << d.name();
        }
        ASSERT_FALSE(HasFailure());
      }
    }
  }
}

TEST(Auto, PacksTheMetadataAsFastDoes) {
  for (const Size& size : {Size{300, 90}, Size{150, 120}}) {
    Drawing d = drawing::with_sections(drawing::draw(size, {L3_COLOUR_GRAY, 8}, Pattern::noise));
    std::string text = "Comment";
    for (int i = 0; i < 3000; ++i) text += " word " + std::to_string(i * i % 99991);
    d.metadata = drawing::record("tEXt", 0, Bytes(text.begin(), text.end()));
    EXPECT_EQ(encode(d, options_of(L3_METHOD_AUTO)), encode(d, fast_options())) << "noise, which no model helps";
  }
}

TEST(Auto, IsDenseWhereThatIsSmaller) {
  const Bytes file = encode(natural({400, 300}, L3_COLOUR_RGB), l3_encode_options_init());
  EXPECT_GT(tiles_by(file, L3_TILE_DENSE), 0);
  EXPECT_FALSE(model_of(file).empty());
}

// ---- the same bytes whatever the schedule

l3_parallel threads(uint32_t& count) {
  const auto run = [](void* context, uint64_t items, void (*body)(void*, uint64_t), void* argument) {
    std::atomic<uint64_t> next{0};
    const auto work = [&] {
      for (uint64_t i = next++; i < items; i = next++) body(argument, items - 1 - i);
    };
    std::vector<std::thread> others;
    for (uint32_t i = 1; i < *static_cast<const uint32_t*>(context); ++i) others.emplace_back(work);
    work();
    for (std::thread& thread : others) thread.join();
  };
  return {run, &count};
}

TEST(Dense, BytesDoNotDependOnThreads) {
  for (const l3_colour colour : {L3_COLOUR_GRAY, L3_COLOUR_RGB_ALPHA}) {
    const Drawing d = natural({300, 200}, colour);
    l3_encode_options options = options_of(L3_METHOD_DENSE, 64, 64, 2);
    const Bytes first = encode(d, options);
    for (uint32_t count : {1u, 2u, 3u, 7u}) {
      options.parallel = threads(count);
      EXPECT_EQ(encode(d, options), first) << count;
      l3_decode_options decoding = l3_decode_options_init();
      decoding.parallel = options.parallel;
      EXPECT_EQ(decode(first, decoding), d.pixels) << count;
    }
  }
}

TEST(Dense, BytesDoNotDependOnTheStride) {
  const Drawing d = natural({70, 40}, L3_COLOUR_RGB);
  const size_t stride = d.row_bytes() + 13;
  Exact wide(stride * (d.height - 1) + d.row_bytes(), 0xEE);
  for (uint32_t y = 0; y < d.height; ++y) {
    std::memcpy(wide.data() + y * stride, d.pixels.data() + y * d.row_bytes(), d.row_bytes());
  }
  l3_image image = d.image();
  image.pixels = wide.data();
  image.stride = stride;
  const l3_encode_options options = options_of(L3_METHOD_DENSE, 64, 32);
  EXPECT_EQ(encode(image, options), encode(d, options));
}

// ---- regions, colours

void expect_crop(const Bytes& file, const Bytes& whole, Size size, size_t pixel, Dice& dice,
                 const l3_decode_options& options) {
  const uint32_t x = dice.roll(size.width), y = dice.roll(size.height);
  const uint32_t w = 1 + dice.roll(size.width - x), h = 1 + dice.roll(size.height - y);
  const size_t row = w * pixel, stride = row + dice.roll(5);
  const Exact out(stride * (h - 1) + row);
  ASSERT_EQ(l3_decode_region(file.data(), file.size(), x, y, w, h, &options, out.data(), out.size(), stride, nullptr),
            L3_OK);
  for (uint32_t r = 0; r < h; ++r) {
    const uint8_t* at = out.data() + r * stride;
    ASSERT_EQ(std::memcmp(at, &whole[((y + r) * size.width + x) * pixel], row), 0)
        << x << "," << y << " " << w << "x" << h;
    for (size_t i = row; r + 1 < h && i < stride; ++i) ASSERT_EQ(at[i], 0xA5) << "between rows";
  }
}

TEST(Dense, RegionsAreCropsOfTheWhole) {
  Dice dice(5);
  const Size size{150, 110};
  for (const l3_colour colour : kColours) {
    const Drawing d = drawing::with_sections(natural(size, colour));
    for (const uint32_t tile : {32u, 128u}) {
      const Bytes file = encode(d, options_of(L3_METHOD_DENSE, tile, tile, 1));
      for (const char* target : targets()) {
        const ForcedTarget forced(target);
        for (int round = 0; round < 60; ++round) {
          expect_crop(file, d.pixels, size, d.pixel_bytes(), dice, l3_decode_options_init());
          ASSERT_FALSE(HasFailure()) << d.name() << target;
        }
      }
    }
  }
}

TEST(Dense, PaletteImagesGiveColours) {
  Dice dice(6);
  for (const bool transparent : {false, true}) {
    Drawing d = natural({90, 75}, L3_COLOUR_PALETTE);
    if (transparent) d.transparency = dice.bytes(33);
    const Bytes file = encode(d, options_of(L3_METHOD_DENSE, 64, 64, 1));
    ASSERT_EQ(tiles_by(file, L3_TILE_DENSE), 4);
    Bytes colours;
    for (const uint8_t index : d.pixels) {
      for (size_t c = 0; c < 3; ++c) colours.push_back(3u * index < d.palette.size() ? d.palette[3u * index + c] : 0);
      if (transparent) colours.push_back(index < d.transparency.size() ? d.transparency[index] : 255);
    }
    l3_decode_options options = l3_decode_options_init();
    options.as_colours = 1;
    for (const char* target : targets()) {
      const ForcedTarget forced(target);
      EXPECT_EQ(decode(file, options), colours) << target;
      for (int round = 0; round < 30; ++round) {
        expect_crop(file, colours, {90, 75}, transparent ? 4 : 3, dice, options);
        ASSERT_FALSE(HasFailure()) << target;
      }
    }
  }
}

// ---- what the parts of a file take

TEST(Measure, PartsAddUpToTheFile) {
  for (const l3_colour colour : kColours) {
    const Drawing d = drawing::with_sections(natural({150, 110}, colour));
    for (const l3_method method : {L3_METHOD_FAST, L3_METHOD_DENSE}) {
      const Bytes file = encode(d, options_of(method, 64, 64, 1));
      l3_sizes first = l3_sizes_init();
      for (const char* target : targets()) {
        const ForcedTarget forced(target);
        l3_sizes sizes = l3_sizes_init();
        l3_error error{};
        ASSERT_EQ(l3_measure(file.data(), file.size(), nullptr, &sizes, &error), L3_OK) << error.reason;
        EXPECT_EQ(sizes.head + sizes.index + sizes.model + sizes.sections + sizes.payloads, file.size());
        EXPECT_EQ(sizes.model, by_hand::pad(model_of(file).size()));
        const bool dense = method == L3_METHOD_DENSE;
        EXPECT_EQ(sizes.dense_payloads, dense ? sizes.payloads : 0);
        // A state holds up to 32 bits of what symbols are worth.
        const uint64_t worth = sizes.dense_classes + sizes.dense_samples;
        EXPECT_LE(worth, sizes.dense_payloads + 2);
        EXPECT_GE(worth + sizes.dense_states, sizes.dense_payloads * 9 / 10);
        if (first.head == 0) first = sizes;
        EXPECT_EQ(std::memcmp(&sizes, &first, sizeof(sizes)), 0) << target;
      }
    }
  }
}

TEST(Measure, RefusesWhatItCannotMeasure) {
  const Bytes file = encode(natural({70, 50}, L3_COLOUR_GRAY), options_of(L3_METHOD_DENSE, 32, 32));
  l3_sizes sizes = l3_sizes_init();
  EXPECT_EQ(l3_measure(nullptr, 0, nullptr, &sizes, nullptr), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_measure(file.data(), file.size(), nullptr, nullptr, nullptr), L3_ERROR_ARGUMENT);
  sizes.struct_size = 0;
  EXPECT_EQ(l3_measure(file.data(), file.size(), nullptr, &sizes, nullptr), L3_ERROR_ARGUMENT);
  sizes = l3_sizes_init();
  EXPECT_EQ(l3_measure(file.data(), file.size() - 1, nullptr, &sizes, nullptr), L3_ERROR_TRUNCATED);
  Bytes spoilt = file;
  spoilt.back() ^= 1;
  EXPECT_EQ(l3_measure(spoilt.data(), spoilt.size(), nullptr, &sizes, nullptr), L3_ERROR_CORRUPT);
  by_hand::Parts parts = by_hand::take_apart(file);
  parts.tiles[0].payload[3] ^= 0x40;  // a state
  spoilt = by_hand::put_together(parts);
  const Said wanted = say_decode(Exact(spoilt));
  l3_error error{};
  const l3_status status = l3_measure(spoilt.data(), spoilt.size(), nullptr, &sizes, &error);
  EXPECT_EQ(said(status, error), wanted);
}

// ---- a model from elsewhere

l3_encode_options with_model(const Bytes& model, l3_method method = L3_METHOD_DENSE, uint32_t tile = 64) {
  l3_encode_options options = options_of(method, tile, tile);
  options.model = model.data();
  options.model_size = model.size();
  return options;
}

TEST(SuppliedModel, OfAnotherFileIsUsedAsItIs) {
  int used = 0;
  for (const l3_colour colour : kColours) {
    const Bytes model = model_of(encode(natural({200, 150}, colour), options_of(L3_METHOD_DENSE, 64, 64)));
    ASSERT_FALSE(model.empty());
    const Drawing other = natural({130, 70}, colour);
    const Bytes file = expect_round_trip(other, with_model(model));
    EXPECT_EQ(model_of(file), model);
    used += tiles_by(file, L3_TILE_DENSE) > 0;
    // With auto it is used only where it pays.
    const Bytes best = expect_round_trip(other, with_model(model, L3_METHOD_AUTO));
    EXPECT_LE(best.size(), encode(other, tiles_of(64, 64)).size());
  }
  EXPECT_GE(used, 3) << "a model may lack the code of a sample";
}

TEST(SuppliedModel, OfTheSameFileMakesItLittleLarger) {
  const Drawing d = natural({200, 150}, L3_COLOUR_RGB);
  const Bytes file = encode(d, options_of(L3_METHOD_DENSE, 64, 64));
  const Bytes again = encode(d, with_model(model_of(file)));
  EXPECT_LE(again.size(), file.size() + file.size() / 10);
}

TEST(SuppliedModel, ThatHasNoCodeForATileLeavesItToOthers) {
  // Fitted to an image of few values, it may lack symbols: such tiles are encoded without it.
  const Bytes model = model_of(
      encode(drawing::draw({100, 80}, {L3_COLOUR_GRAY, 8}, Pattern::labels), options_of(L3_METHOD_DENSE, 64, 64)));
  for (const Pattern pattern : drawing::kPatterns) {
    expect_round_trip(drawing::draw({100, 80}, {L3_COLOUR_GRAY, 8}, pattern), with_model(model));
  }
}

TEST(SuppliedModel, IsNotUsedByFast) {
  const Bytes model = model_of(encode(natural({100, 80}, L3_COLOUR_GRAY), options_of(L3_METHOD_DENSE)));
  const Drawing d = natural({100, 80}, L3_COLOUR_GRAY);
  EXPECT_EQ(encode(d, with_model(model, L3_METHOD_FAST)), encode(d, tiles_of(64, 64)));
}

void expect_model_refused(const Drawing& d, const Bytes& model, l3_status status, const char* reason) {
  for (const l3_method method : {L3_METHOD_DENSE, L3_METHOD_AUTO}) {
    const l3_encode_options options = with_model(model, method);
    const l3_image image = d.image();
    Bytes room(l3_encode_bound(&image, &options));
    size_t written = 0;
    l3_error error{};
    EXPECT_EQ(l3_encode(&image, &options, room.data(), room.size(), &written, &error), status);
    EXPECT_STREQ(error.reason, reason);
  }
}

TEST(SuppliedModel, OfKind0IsNotForOtherDepths) {
  const Bytes model = model_of(encode(natural({100, 80}, L3_COLOUR_RGB), options_of(L3_METHOD_DENSE)));
  const Drawing deep = drawing::draw({100, 80}, {L3_COLOUR_RGB, 16}, Pattern::natural);
  expect_model_refused(deep, model, L3_ERROR_CORRUPT, "an image with samples of other than 8 bits has a model");
}

TEST(SuppliedModel, ThatIsDamagedIsRefusedForItsReason) {
  const Drawing d = natural({100, 80}, L3_COLOUR_RGB);
  const Bytes model = model_of(encode(d, options_of(L3_METHOD_DENSE)));
  const auto changed = [&](size_t at, uint8_t value) {
    Bytes bytes = model;
    bytes[at] = value;
    return bytes;
  };
  constexpr const char* kHead = "the head of the model is truncated or has a value out of range";
  constexpr const char* kOffset = "a part of the model begins at the wrong offset";
  expect_model_refused(d, changed(0, 3), L3_ERROR_UNSUPPORTED,
                       "the model is of a kind that this version does not support");
  for (const uint8_t channels : Bytes{0, 1, 4, 255})
    expect_model_refused(d, changed(1, channels), L3_ERROR_CORRUPT, kHead);
  for (const uint8_t tables : Bytes{0, 25}) expect_model_refused(d, changed(2, tables), L3_ERROR_CORRUPT, kHead);
  expect_model_refused(d, changed(3, 33), L3_ERROR_CORRUPT, kHead);
  expect_model_refused(d, changed(7, 1), L3_ERROR_CORRUPT, kHead);
  for (const size_t size : {1u, 7u, 8u, 13u}) {
    expect_model_refused(d, Bytes(model.begin(), model.begin() + static_cast<ptrdiff_t>(size)), L3_ERROR_CORRUPT,
                         kHead);
  }
  expect_model_refused(d, changed(8, static_cast<uint8_t>(model[8] + 1)), L3_ERROR_CORRUPT, kOffset);
  const size_t first = by_hand::get(&model[8], 2);
  expect_model_refused(d, changed(first, 0xFF), L3_ERROR_CORRUPT, "a channel of the model has a value out of range");
  Bytes longer = model;
  longer.push_back(0);
  expect_model_refused(d, longer, L3_ERROR_CORRUPT, "a table of the model is invalid");
  longer.pop_back();
  longer.pop_back();
  expect_model_refused(d, longer, L3_ERROR_CORRUPT, "a table of the model is invalid");
  // Of an image of another colour.
  expect_model_refused(natural({100, 80}, L3_COLOUR_GRAY), model, L3_ERROR_CORRUPT, kHead);
}

// Whatever bytes are supplied: a refusal, or a file that decodes, and the same one on every target.
TEST(SuppliedModel, ThatIsSpoiltIsRefusedOrUsed) {
  Dice dice(11);
  int used = 0;
  for (int round = 0; round < 400; ++round) {
    const l3_colour colour = dice.pick(kColours);
    const Drawing d = natural({1 + dice.roll(40), 1 + dice.roll(20)}, colour, dice.next());
    Bytes model = by_hand::any_model(dice, d.channels(), dice.chance(2));
    for (uint32_t changes = dice.roll(3); changes > 0; --changes) {
      uint8_t& byte = model[dice.roll(model.size())];
      byte = static_cast<uint8_t>(byte ^ 1u << dice.roll(8));
    }
    const l3_encode_options options = with_model(model);
    const l3_image image = d.image();
    const Exact room(l3_encode_bound(&image, &options));
    size_t written = 0;
    l3_error error{};
    if (l3_encode(&image, &options, room.data(), room.size(), &written, &error) != L3_OK) {
      ASSERT_TRUE(error.status == L3_ERROR_CORRUPT || error.status == L3_ERROR_UNSUPPORTED) << error.reason;
      continue;
    }
    ++used;
    ASSERT_EQ(decode(Bytes(room.data(), room.data() + written)), d.pixels) << d.name();
    expect_round_trip(d, options);
    ASSERT_FALSE(HasFailure()) << round;
  }
  EXPECT_GT(used, 100);
}

// Models that no encoder would fit: predictors and rows of any kind, with a code for everything.
TEST(AnyModel, CodesEveryImage) {
  Dice dice(12);
  for (int round = 0; round < 250; ++round) {
    const l3_colour colour = dice.pick(kColours);
    const Size size{1 + dice.roll(dice.chance(3) ? 140 : 40), 1 + dice.roll(dice.chance(3) ? 90 : 30)};
    const Drawing d = drawing::draw(size, {colour, 8}, dice.pick(drawing::kPatterns), dice.next());
    const Bytes model = by_hand::any_model(dice, d.channels());
    const Bytes file = expect_round_trip(d, with_model(model, L3_METHOD_DENSE, dice.chance(2) ? 32 : 128));
    EXPECT_EQ(model_of(file), model);
    ASSERT_FALSE(HasFailure()) << round;
  }
}

// A model of one channel with these weights of N, NW and NE; that of W is what is left of 64. Small differences are
// likely.
Bytes model_of_weights(int n, int nw, int ne) {
  by_hand::BitString bits;
  for (uint32_t tap = 1; tap < 14; ++tap) {
    const int weight = tap == 1 ? n : tap == 2 ? nw : tap == 3 ? ne : 0;
    bits.put(0, 4);
    bits.put(static_cast<uint32_t>(weight) & 0xFF, 8);
  }
  for (uint32_t term = 0; term < 9; ++term) bits.put(0, 7);
  bits.put(0, 1 + 6 + 5);  // no groups, one row, table 0
  std::vector<uint32_t> frequencies(256, 1);
  std::fill_n(frequencies.begin(), 8, 448);
  const Bytes channel = bits.bytes(), table = by_hand::table_part(frequencies, 0, 0);
  Bytes model = {0, 1, 1, 0, 1, 0, 0, 0, 12, 0, 0, 0};
  by_hand::put(&model[10], 2, model.size() + channel.size());
  return drawing::joined(drawing::joined(model, channel), table);
}

// An image of small differences from predictions whose sums go far beyond 16 bits and wrap.
TEST(SuppliedModel, WithSumsThatWrapCodesWhatTheyPredict) {
  constexpr int kWeights[][3] = {{127, -128, -62}, {-128, 127, -62}, {127, 127, -128}, {-128, -61, 126}};
  for (const auto& [n_weight, nw_weight, ne_weight] : kWeights) {
    Drawing d = drawing::blank({128, 96}, {L3_COLOUR_GRAY, 8});
    Dice dice(7);
    const auto at = [&](uint32_t x, uint32_t y) -> uint8_t& { return d.pixels[y * d.row_bytes() + x]; };
    uint32_t wraps = 0;
    for (uint32_t y = 0; y < d.height; ++y) {
      for (uint32_t x = 0; x < d.width; ++x) {
        int w = x > 0 ? at(x - 1, y) : 0, n = w, nw = w, ne = w;
        if (y > 0) {
          n = at(x, y - 1);
          nw = x > 0 ? at(x - 1, y - 1) : n;
          ne = x + 1 < d.width ? at(x + 1, y - 1) : n;
          if (x == 0) w = n;
        }
        const int w_weight = 64 - n_weight - nw_weight - ne_weight;
        const int sum = 32 + w_weight * w + n_weight * n + nw_weight * nw + ne_weight * ne;
        wraps += sum != static_cast<int16_t>(sum) ? 1 : 0;
        const int p = std::clamp(static_cast<int16_t>(sum) >> 6, 0, 255);
        at(x, y) = static_cast<uint8_t>(p + static_cast<int>(dice.roll(7)) - 3);
      }
    }
    EXPECT_GT(wraps, 100);
    const Bytes model = model_of_weights(n_weight, nw_weight, ne_weight);
    const Bytes file = expect_round_trip(d, with_model(model, L3_METHOD_DENSE, 128));
    EXPECT_EQ(tiles_by(file, L3_TILE_DENSE), 1);
  }
}

}  // namespace
