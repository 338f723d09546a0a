// Tests of the batch decoder: one call decodes images of all kinds, regions and models exactly as libl3 does.
#include "gpu_wishes.h"

namespace {

using namespace gpu_testing;
using codec_testing::encode;
using codec_testing::options_of;
using drawing::draw;

class GpuBatch : public Gpu {};
class GpuModels : public Gpu {};
class GpuCapacity : public Gpu {};

TEST_F(GpuBatch, ImagesOfAllKindsAtOnce) {
  Dice dice(1);
  for (uint32_t round = 0; round < 20 * scale().rounds; ++round) {
    std::vector<Wish> wishes;
    for (uint32_t i = 1 + dice.roll(scale().max_images); i > 0; --i) {
      wishes.push_back(dice.chance(10) ? nothing() : any_wish(dice));
    }
    SCOPED_TRACE("round " + std::to_string(round));
    Batch batch(std::move(wishes), any_arrangement(dice));
    ASSERT_NO_FATAL_FAILURE(batch.expect_all());
  }
}

TEST_F(GpuBatch, EveryTypeOfSamples) {
  std::vector<Wish> wishes;
  for (const drawing::Type& type : drawing::all_types()) {
    for (const l3_method method : {L3_METHOD_FAST, L3_METHOD_AUTO}) {
      if (method == L3_METHOD_AUTO && type.bits != 8) continue;
      const Drawing d = drawing::draw_mixed({34, 35}, type);
      wishes.push_back(wish_for(encode(d, options_of(method, 32, 32, 1))));
      wishes.back().name = d.name();
    }
  }
  Batch batch(std::move(wishes));
  ASSERT_NO_FATAL_FAILURE(batch.expect_all());
}

TEST_F(GpuBatch, EveryPattern) {
  std::vector<Wish> wishes;
  for (const Pattern pattern : drawing::kPatterns) {
    for (const l3_method method : {L3_METHOD_FAST, L3_METHOD_DENSE}) {
      for (const l3_colour colour : {L3_COLOUR_GRAY, L3_COLOUR_RGB, L3_COLOUR_RGB_ALPHA}) {
        const Drawing d = draw({50, 33}, {colour, 8}, pattern);
        wishes.push_back(wish_for(encode(d, options_of(method, 32, 32, 1))));
        wishes.back().name = d.name() + " " + drawing::name_of(pattern);
      }
    }
  }
  Batch batch(std::move(wishes));
  ASSERT_NO_FATAL_FAILURE(batch.expect_all());
}

// One tile, one pixel more and less, rows and columns of tiles, and tiles as wide and high as can be.
TEST_F(GpuBatch, SizesAroundTheEdgesOfTiles) {
  std::vector<Wish> wishes;
  const auto add = [&](Size size, uint32_t tile_width, uint32_t tile_height, l3_method method, l3_colour colour) {
    const Drawing d = draw(size, {colour, 8}, Pattern::natural);
    wishes.push_back(wish_for(encode(d, options_of(method, tile_width, tile_height, 1))));
    wishes.back().name = d.name() + " in tiles of " + std::to_string(tile_width) + "x" + std::to_string(tile_height);
  };
  for (const l3_method method : {L3_METHOD_FAST, L3_METHOD_DENSE}) {
    for (const Size size :
         {Size{1, 1}, {31, 32}, {32, 31}, {32, 32}, {33, 32}, {32, 33}, {33, 33}, {64, 64}, {65, 63}}) {
      add(size, 32, 32, method, L3_COLOUR_RGB);
    }
    add({130, 1}, 32, 32, method, L3_COLOUR_GRAY_ALPHA);
    add({1, 130}, 32, 32, method, L3_COLOUR_GRAY_ALPHA);
    add({1030, 9}, 1024, 32, method, L3_COLOUR_GRAY);
    add({1023, 8}, 1024, 32, method, L3_COLOUR_RGB_ALPHA);
    add({9, 1030}, 32, 1024, method, L3_COLOUR_GRAY);
    add({8, 1024}, 32, 1024, method, L3_COLOUR_RGB);
    add({300, 40}, 128, 128, method, L3_COLOUR_RGB);
  }
  Batch batch(std::move(wishes));
  ASSERT_NO_FATAL_FAILURE(batch.expect_all());
}

TEST_F(GpuBatch, FilesThatNoEncoderWouldWrite) {
  Dice dice(3);
  std::vector<Wish> wishes;
  for (uint32_t i = 0; i < 40 * scale().rounds; ++i) {
    const Size size{1 + dice.roll(80), 1 + dice.roll(70)};
    wishes.push_back(wish_for(by_hand::put_together(by_hand::any_parts(dice, size, any_type(dice)))));
  }
  Batch batch(std::move(wishes));
  ASSERT_NO_FATAL_FAILURE(batch.expect_all());
}

TEST_F(GpuBatch, EmptySlotsAndEmptyBatches) {
  const Bytes file = encode(draw({40, 40}, {L3_COLOUR_RGB, 8}, Pattern::natural));
  Batch between({nothing(), wish_for(file), nothing(), nothing(), wish_for(file), nothing()});
  ASSERT_NO_FATAL_FAILURE(between.expect_all());
  Batch only({nothing(), nothing()});
  ASSERT_NO_FATAL_FAILURE(only.expect_all());
  Batch fewer({wish_for(file), wish_for(file)});
  fewer.call.image_count = 0;
  l3_error error{};
  EXPECT_EQ(fewer.launch(nullptr, &error), L3_OK) << error.reason;
  must(cudaDeviceSynchronize());
  EXPECT_TRUE(fewer.out(0).get() == noise_of(fewer.out(0).size(), Arrangement{}.seed));
}

// ---- regions

TEST_F(GpuBatch, RegionsOfOneImage) {
  Dice dice(4);
  for (const l3_method method : {L3_METHOD_FAST, L3_METHOD_DENSE}) {
    const Drawing d = drawing::draw_mixed({40, 90}, {L3_COLOUR_RGB, 8});
    const Bytes file = encode(d, options_of(method, 32, 32, 1));
    std::vector<Wish> wishes;
    const auto add = [&](uint32_t x, uint32_t y, uint32_t width, uint32_t height) {
      for (const uint32_t flags : {0u, uint32_t{L3_CUDA_FLIP}}) {
        wishes.push_back(wish_for(file, flags));
        choose_region(wishes.back(), x, y, width, height);
        wishes.back().name = std::to_string(width) + "x" + std::to_string(height) + " from " + std::to_string(x) +
                             ", " + std::to_string(y);
      }
    };
    // The corners, and one pixel on each side of a tile's corner.
    for (const uint32_t x : {0u, 31u, 32u, d.width - 1}) {
      for (const uint32_t y : {0u, 31u, 32u, d.height - 1}) add(x, y, 1, 1);
    }
    add(0, 0, d.width, d.height);
    add(0, 0, d.width, 1);
    add(d.width - 1, 0, 1, d.height);
    add(32, 32, 32, 32);
    add(31, 31, 34, 34);
    add(33, 33, 30, 30);
    for (uint32_t i = 0; i < 10 * scale().rounds; ++i) {
      wishes.push_back(wish_for(file));
      any_region(dice, wishes.back());
      any_place(dice, wishes.back());
    }
    Batch batch(std::move(wishes), any_arrangement(dice));
    ASSERT_NO_FATAL_FAILURE(batch.expect_all());
  }
}

// A region is read without what it does not touch.
TEST_F(GpuBatch, DamageElsewhereIsNobodysConcern) {
  const Drawing d = draw({96, 32}, {L3_COLOUR_GRAY, 8}, Pattern::noise);
  by_hand::Parts parts = by_hand::take_apart(encode(d, codec_testing::tiles_of(32, 32)));
  Bytes file = by_hand::put_together(parts);
  file[by_hand::Layout(parts).payloads[1] + 5] ^= 1;  // of the tile in the middle; its check is wrong now
  std::vector<Wish> wishes;
  for (const uint32_t x : {0u, 20u, 32u, 63u, 64u}) {
    wishes.push_back(wish_for(file));
    choose_region(wishes.back(), x, 3, 12, 9);
  }
  Batch batch(std::move(wishes));
  ASSERT_NO_FATAL_FAILURE(batch.expect_all());
  EXPECT_EQ(batch.expected_of(0).error.status, L3_OK);
  EXPECT_EQ(batch.expected_of(1).error.status, L3_OK);
  EXPECT_EQ(batch.expected_of(2).error.status, L3_ERROR_CORRUPT);
  EXPECT_EQ(batch.expected_of(2).error.tile, 1u);
}

TEST_F(GpuBatch, CountsTilesAtLeastAsManyAsTouched) {
  Dice dice(5);
  for (uint32_t round = 0; round < 2000; ++round) {
    l3_info info = l3_info_init();
    info.width = 1 + dice.roll(200);
    info.height = 1 + dice.roll(200);
    info.tile_width = 32 * (1 + dice.roll(4));
    info.tile_height = 32 * (1 + dice.roll(4));
    const uint32_t across = (info.width - 1) / info.tile_width + 1, down = (info.height - 1) / info.tile_height + 1;
    info.tile_count = across * down;
    ASSERT_EQ(l3_cuda_count_tiles(&info, 0, 0), info.tile_count);
    const uint32_t width = 1 + dice.roll(info.width), height = 1 + dice.roll(info.height);
    uint64_t most_across = 0, most_down = 0;
    for (uint32_t x = 0; x + width <= info.width; ++x) {
      most_across = std::max<uint64_t>(most_across, (x + width - 1) / info.tile_width - x / info.tile_width + 1);
    }
    for (uint32_t y = 0; y + height <= info.height; ++y) {
      most_down = std::max<uint64_t>(most_down, (y + height - 1) / info.tile_height - y / info.tile_height + 1);
    }
    const uint64_t count = l3_cuda_count_tiles(&info, width, height);
    ASSERT_GE(count, most_across * most_down);
    ASSERT_LE(count, info.tile_count);
  }
}

// ---- models

// The model that is fitted to a drawing.
Bytes model_for(const Drawing& d) {
  const Bytes file = encode(d, options_of(L3_METHOD_DENSE, 32, 32, 1));
  const uint8_t* model = nullptr;
  size_t size = 0;
  EXPECT_EQ(l3_find_section(file.data(), file.size(), L3_SECTION_MODEL, &model, &size, nullptr), L3_OK);
  return {model, model + size};
}
// Drawings of the same kind can be coded by each other's models.
Drawing drawing_like(Size size, l3_colour colour, uint64_t seed) {
  return draw(size, {colour, 8}, Pattern::natural, seed);
}
Bytes with_model(const Drawing& d, const Bytes& model) {
  l3_encode_options options = options_of(L3_METHOD_DENSE, 32, 32, 1);
  options.model = model.data();
  options.model_size = model.size();
  return encode(d, options);
}
uint64_t dense_tiles(const Bytes& file) {
  uint64_t count = 0;
  EXPECT_EQ(l3_count_tiles(file.data(), file.size(), L3_TILE_DENSE, &count, nullptr), L3_OK);
  return count;
}

TEST_F(GpuModels, SeveralAndSharedOnes) {
  Dice dice(6);
  std::vector<Bytes> models[5];
  for (uint32_t channels = 1; channels <= 4; ++channels) {
    // Of images so large that there is a code for most of what others have.
    const l3_colour colour = static_cast<l3_colour>(channels - 1);
    for (uint32_t i = 0; i < 2; ++i) models[channels].push_back(model_for(drawing_like({200, 200}, colour, i)));
  }
  for (uint32_t round = 0; round < 2 * scale().rounds; ++round) {
    uint32_t are_dense = 0;
    std::vector<Wish> wishes;
    for (int i = 0; i < 24; ++i) {
      const l3_colour colour = static_cast<l3_colour>(dice.roll(5));
      const Drawing d = drawing_like({1 + dice.roll(70), 1 + dice.roll(40)}, colour, dice.next());
      const Bytes file = with_model(d, dice.pick(models[d.channels()]));
      are_dense += dense_tiles(file) > 0;
      wishes.push_back(any_wish(dice, file));
      wishes.back().name = d.name();
    }
    EXPECT_GT(are_dense, 6u);
    Batch batch(std::move(wishes), any_arrangement(dice));
    ASSERT_NO_FATAL_FAILURE(batch.expect_all());
  }
}

TEST_F(GpuModels, OneSharedByAllNeedsRoomForOne) {
  const Bytes model = model_for(drawing_like({200, 200}, L3_COLOUR_RGB, 100));
  std::vector<Wish> wishes;
  for (uint32_t i = 0; i < 9; ++i) {
    wishes.push_back(wish_for(with_model(drawing_like({20 + i, 33}, L3_COLOUR_RGB, i), model)));
    EXPECT_GT(dense_tiles(wishes.back().file), 0u);
  }
  // A model that is not needed takes no room.
  const Drawing other = draw({40, 40}, {L3_COLOUR_RGB, 8}, Pattern::natural);
  wishes.push_back(wish_for(encode(other)));
  l3_cuda_capacity capacity = capacity_for(wishes);
  capacity.models = 1;
  Batch batch(std::move(wishes), {}, capacity);
  ASSERT_NO_FATAL_FAILURE(batch.expect_all());
}

// ---- two models that have the same size and the same check

// The inverse of an odd number, modulo 2^32.
uint32_t inverse(uint32_t odd) {
  uint32_t r = odd;
  for (int i = 0; i < 5; ++i) r *= 2 - odd * r;
  return r;
}
uint32_t rotated(uint32_t v, uint32_t by) { return v << by | v >> (32 - by); }

// Sets word `at` such that the check of `bytes` (whole units) becomes `wanted`: section 2.1 backwards.
void force_check(Bytes& bytes, size_t at, uint32_t wanted) {
  constexpr uint32_t kK1 = 0x9E3779B1, kK2 = 0x85EBCA77;
  const auto word = [&](size_t i) { return static_cast<uint32_t>(by_hand::get(&bytes[4 * i], 4)); };
  const size_t n = bytes.size() / 4, lane = at % 32;
  const auto finished = [](uint32_t h) {
    h = (h ^ h >> 15) * kK2;
    return h ^ h >> 13;
  };
  uint32_t before = kK2 * static_cast<uint32_t>(lane + 1), h = before;
  for (size_t i = lane; i < n; i += 32) {
    if (i == at) before = h;
    h = rotated(h ^ word(i), 15) * kK1;
  }
  const uint32_t part = wanted - by_hand::check(bytes.data(), bytes.size()) + finished(h);
  uint32_t after = part ^ part >> 13;
  after ^= (part >> 26);
  after *= inverse(kK2);
  after ^= after >> 15 ^ after >> 30;
  size_t last = lane;
  while (last + 32 < n) last += 32;
  for (size_t i = last; i > at; i -= 32) after = rotated(after * inverse(kK1), 17) ^ word(i);
  by_hand::put(&bytes[4 * at], 4, rotated(after * inverse(kK1), 17) ^ before);
  ASSERT_EQ(by_hand::check(bytes.data(), bytes.size()), wanted);
}

// Another model that is valid, as long and with the same check as the given one, by which most of a drawing can be
// coded; empty where none was found.
Bytes twin_of(const Bytes& model, const Drawing& d, Dice& dice) {
  Bytes padded = model;
  padded.resize(by_hand::pad(model.size()));
  const uint32_t check = by_hand::check(padded.data(), padded.size());
  l3_encode_options options = options_of(L3_METHOD_DENSE, 32, 32, 1);
  const l3_image image = d.image();
  Bytes room(l3_encode_bound(&image, &options));
  for (int tries = 0; tries < 1000000; ++tries) {
    Bytes twin = padded;
    // A bit somewhere, and a word that makes up for it: of activity weights almost any bits are valid.
    const size_t bit = dice.roll(8 * model.size());
    twin[bit / 8] = static_cast<uint8_t>(twin[bit / 8] ^ 1u << bit % 8);
    force_check(twin, dice.roll(model.size() / 4), check);
    twin.resize(model.size());
    if (twin == model) continue;
    options.model = twin.data();
    options.model_size = twin.size();
    size_t written = 0;
    if (l3_encode(&image, &options, room.data(), room.size(), &written, nullptr) != L3_OK) continue;
    const Bytes file(room.begin(), room.begin() + static_cast<ptrdiff_t>(written));
    if (dense_tiles(file) < 2) continue;
    // Is it another one where it matters?
    by_hand::Parts parts = by_hand::take_apart(file);
    for (by_hand::SectionPart& section : parts.sections) {
      if (section.type == L3_SECTION_MODEL) section.bytes = model;
    }
    Bytes samples(d.pixels.size());
    const Bytes swapped = by_hand::put_together(parts);
    (void)!l3_decode(swapped.data(), swapped.size(), nullptr, samples.data(), samples.size(), 0, nullptr);
    if (samples != d.pixels) return twin;
  }
  return {};
}

TEST_F(GpuModels, TwinsWithTheSameCheckAreToldApart) {
  Dice dice(8);
  const Drawing d = drawing_like({70, 40}, L3_COLOUR_GRAY, 1);
  const Bytes model = model_for(d), twin = twin_of(model, d, dice);
  ASSERT_EQ(model.size(), twin.size());
  ASSERT_NE(model, twin);
  const Bytes one = with_model(d, model), other = with_model(d, twin);
  const auto check_of_model = [](const Bytes& file) { return by_hand::get(&file[64 + 4], 4); };
  ASSERT_EQ(by_hand::get(&one[64], 2), uint64_t{L3_SECTION_MODEL});
  ASSERT_EQ(check_of_model(one), check_of_model(other));
  ASSERT_GT(dense_tiles(one) * dense_tiles(other), 0u);
  std::vector<Wish> wishes;
  wishes.reserve(14);
  for (int i = 0; i < 12; ++i) wishes.push_back(wish_for(dice.chance(2) ? one : other));
  wishes.push_back(wish_for(one));
  wishes.push_back(wish_for(other));
  l3_cuda_capacity capacity = capacity_for(wishes);
  capacity.models = 2;
  Batch batch(std::move(wishes), {}, capacity);
  ASSERT_NO_FATAL_FAILURE(batch.expect_all());
}

// A model that is none, with the size and the check of a good one, which comes first: the good ones have room.
TEST_F(GpuModels, FalseOnesTakeNoRoomFromOthers) {
  const Drawing d = drawing_like({70, 40}, L3_COLOUR_GRAY, 1);
  const Bytes model = model_for(d), good = with_model(d, model);
  ASSERT_GT(dense_tiles(good), 0u);
  Bytes padded = model, twin = model;
  padded.resize(by_hand::pad(model.size()));
  twin.resize(padded.size());
  twin[0] ^= 0x80;  // a kind that there is not
  force_check(twin, 3, by_hand::check(padded.data(), padded.size()));
  twin.resize(model.size());
  by_hand::Parts parts = by_hand::take_apart(good);
  for (by_hand::SectionPart& section : parts.sections) {
    if (section.type == L3_SECTION_MODEL) section.bytes = twin;
  }
  const Bytes bad = by_hand::put_together(parts);
  std::vector<Wish> wishes(7, wish_for(good));
  wishes[0] = wish_for(bad);
  l3_cuda_capacity capacity = capacity_for(wishes);
  capacity.models = 2;
  Batch batch(std::move(wishes), {}, capacity);
  ASSERT_NO_FATAL_FAILURE(batch.expect_all());
  EXPECT_EQ(batch.expected_of(0).error.status, L3_ERROR_UNSUPPORTED);
}

// ---- capacity

// The statuses of a batch; what decoded is right.
std::vector<uint32_t> statuses_of(Batch& batch) {
  std::vector<uint32_t> statuses;
  EXPECT_EQ(batch.launch(), L3_OK);
  must(cudaDeviceSynchronize());
  const std::vector<l3_cuda_result> results = batch.results();
  for (size_t i = 0; i < results.size(); ++i) {
    SCOPED_TRACE("image " + std::to_string(i));
    statuses.push_back(results[i].status);
    if (results[i].status == L3_OK) {
      batch.expect_result(i, results[i]);
      batch.expect_output(i);
    } else {
      EXPECT_NE(l3_cuda_explain(&results[i]).reason, nullptr);
    }
  }
  return statuses;
}

using Statuses = std::vector<uint32_t>;

TEST_F(GpuCapacity, TilesThatAreTooMany) {
  const Bytes file = encode(draw({96, 40}, {L3_COLOUR_RGB, 8}, Pattern::natural), codec_testing::tiles_of(32, 32));
  std::vector<Wish> wishes(4, wish_for(file));  // 6 tiles each
  wishes.insert(wishes.begin() + 1, nothing());
  l3_cuda_capacity capacity = capacity_for(wishes);
  ASSERT_EQ(capacity.tiles, 24u);
  Batch enough(wishes, {}, capacity);
  EXPECT_EQ(statuses_of(enough), (Statuses{L3_OK, L3_OK, L3_OK, L3_OK, L3_OK}));
  capacity.tiles = 23;
  Batch last(wishes, {}, capacity);
  EXPECT_EQ(statuses_of(last), (Statuses{L3_OK, L3_OK, L3_OK, L3_OK, L3_ERROR_LIMIT}));
  capacity.tiles = 12;
  Batch half(wishes, {}, capacity);
  EXPECT_EQ(statuses_of(half), (Statuses{L3_OK, L3_OK, L3_OK, L3_ERROR_LIMIT, L3_ERROR_LIMIT}));
  capacity.tiles = 5;
  Batch none(wishes, {}, capacity);
  EXPECT_EQ(statuses_of(none), (Statuses{L3_ERROR_LIMIT, L3_OK, L3_ERROR_LIMIT, L3_ERROR_LIMIT, L3_ERROR_LIMIT}));
  // Of regions, only what they touch.
  for (Wish& wish : wishes) choose_region(wish, 32, 0, 32, 32);
  capacity.tiles = 4;
  Batch regions(wishes, {}, capacity);
  EXPECT_EQ(statuses_of(regions), (Statuses{L3_OK, L3_OK, L3_OK, L3_OK, L3_OK}));
}

TEST_F(GpuCapacity, StagedBytesThatAreTooMany) {
  std::vector<Wish> wishes;
  uint64_t sizes[5];
  for (uint32_t i = 0; i < 5; ++i) {
    const Bytes file = encode(draw({30 + i, 40}, {L3_COLOUR_GRAY, 8}, Pattern::natural));
    wishes.push_back(wish_for(file, i == 2 ? 0u : uint32_t{L3_CUDA_STAGE}));
    sizes[i] = (file.size() + 15) / 16 * 16;
  }
  l3_cuda_capacity capacity = capacity_for(wishes);
  ASSERT_EQ(capacity.staged_bytes, sizes[0] + sizes[1] + sizes[3] + sizes[4]);
  Batch enough(wishes, {}, capacity);
  EXPECT_EQ(statuses_of(enough), (Statuses{L3_OK, L3_OK, L3_OK, L3_OK, L3_OK}));
  capacity.staged_bytes = sizes[0] + sizes[1] + sizes[3] + sizes[4] - 16;
  Batch last(wishes, {}, capacity);
  EXPECT_EQ(statuses_of(last), (Statuses{L3_OK, L3_OK, L3_OK, L3_OK, L3_ERROR_LIMIT}));
  capacity.staged_bytes = sizes[0];
  Batch first(wishes, {}, capacity);
  EXPECT_EQ(statuses_of(first), (Statuses{L3_OK, L3_ERROR_LIMIT, L3_OK, L3_ERROR_LIMIT, L3_ERROR_LIMIT}));
  capacity.staged_bytes = 0;
  Batch none(wishes, {}, capacity);
  EXPECT_EQ(statuses_of(none), (Statuses{L3_ERROR_LIMIT, L3_ERROR_LIMIT, L3_OK, L3_ERROR_LIMIT, L3_ERROR_LIMIT}));
}

TEST_F(GpuCapacity, ModelsThatAreTooMany) {
  const Drawing d = drawing_like({40, 33}, L3_COLOUR_RGB, 1);
  std::vector<Bytes> files;
  for (uint64_t seed = 0; files.size() < 3 && seed < 100; ++seed) {
    const Bytes file = with_model(d, model_for(drawing_like({64, 64}, L3_COLOUR_RGB, seed)));
    if (dense_tiles(file) > 0) files.push_back(file);
  }
  ASSERT_EQ(files.size(), 3u);
  const Bytes &a = files[0], &b = files[1], &c = files[2];
  const Bytes without = encode(d);
  const std::vector<Wish> wishes{wish_for(a),       wish_for(b), wish_for(a), wish_for(c),
                                 wish_for(without), wish_for(b), wish_for(c)};
  l3_cuda_capacity capacity = capacity_for(wishes);
  capacity.models = 3;
  Batch enough(wishes, {}, capacity);
  EXPECT_EQ(statuses_of(enough), Statuses(7, L3_OK));
  capacity.models = 0;
  Batch by_default(wishes, {}, capacity);
  EXPECT_EQ(statuses_of(by_default), Statuses(7, L3_OK));
  capacity.models = 2;
  Batch two(wishes, {}, capacity);
  EXPECT_EQ(statuses_of(two), (Statuses{L3_OK, L3_OK, L3_OK, L3_ERROR_LIMIT, L3_OK, L3_OK, L3_ERROR_LIMIT}));
  capacity.models = 1;
  Batch one(wishes, {}, capacity);
  EXPECT_EQ(statuses_of(one),
            (Statuses{L3_OK, L3_ERROR_LIMIT, L3_OK, L3_ERROR_LIMIT, L3_OK, L3_ERROR_LIMIT, L3_ERROR_LIMIT}));
}

TEST_F(GpuCapacity, SizesOfWorkspaces) {
  const l3_cuda_capacity good{4, 1, 100, 1000, 0};
  ASSERT_GT(l3_cuda_workspace_size(&good), 0u);
  const auto size_with = [&]<class T>(T l3_cuda_capacity::*member, std::type_identity_t<T> value) {
    l3_cuda_capacity capacity = good;
    capacity.*member = value;
    return l3_cuda_workspace_size(&capacity);
  };
  EXPECT_EQ(size_with(&l3_cuda_capacity::images, 0), 0u);
  EXPECT_GT(size_with(&l3_cuda_capacity::images, 65535), 0u);
  EXPECT_EQ(size_with(&l3_cuda_capacity::images, 65536), 0u);
  EXPECT_EQ(size_with(&l3_cuda_capacity::tiles, 0), 0u);
  EXPECT_GT(size_with(&l3_cuda_capacity::tiles, uint64_t{1} << 31), 0u);
  EXPECT_EQ(size_with(&l3_cuda_capacity::tiles, (uint64_t{1} << 31) + 1), 0u);
  EXPECT_EQ(size_with(&l3_cuda_capacity::tiles, UINT64_MAX), 0u);
  EXPECT_GE(size_with(&l3_cuda_capacity::staged_bytes, 100000), 100000u);
  EXPECT_GE(size_with(&l3_cuda_capacity::follow_bytes, 1 << 30), 1u << 30);
  EXPECT_GT(size_with(&l3_cuda_capacity::follow_bytes, uint64_t{1} << 40), uint64_t{1} << 40);
  EXPECT_EQ(size_with(&l3_cuda_capacity::follow_bytes, (uint64_t{1} << 40) + 1), 0u);
  // More of anything never needs less.
  EXPECT_GE(size_with(&l3_cuda_capacity::images, 400), l3_cuda_workspace_size(&good));
  EXPECT_GE(size_with(&l3_cuda_capacity::models, 4), l3_cuda_workspace_size(&good));
  EXPECT_GE(size_with(&l3_cuda_capacity::models, 0), size_with(&l3_cuda_capacity::models, 4));
  EXPECT_GE(size_with(&l3_cuda_capacity::tiles, 100000), l3_cuda_workspace_size(&good));
}

}  // namespace
