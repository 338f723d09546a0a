// Compares the batches of a loader with what libl3 decodes, for all numbers of threads, ways of reading and start
// places.
#include <bit>

#include "loader_testing.h"

namespace {

using namespace loader_testing;

class Loaders : public LoaderTest {};

// Every number of 16 bits comes back from its float, and what lies between two goes to the nearer, or the even one.
TEST(Halves, AreTheNearest) {
  for (uint32_t half = 0; half < 0x7C00; ++half) {
    const auto value_of = [](uint32_t bits) {
      const int exponent = static_cast<int>(bits >> 10), mantissa = static_cast<int>(bits & 0x3FF);
      return exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
    };
    const float value = static_cast<float>(value_of(half));
    ASSERT_EQ(loader::to_f16(value), half);
    ASSERT_EQ(loader::to_f16(-value), half | 0x8000);
    // Above the last one the next would be 2^16: infinite.
    const float middle = static_cast<float>((value_of(half) + value_of(half + 1)) / 2);
    ASSERT_EQ(loader::to_f16(middle), half + (half & 1)) << half;
    ASSERT_EQ(loader::to_f16(std::nextafter(middle, 0.0f)), half);
    ASSERT_EQ(loader::to_f16(std::nextafter(middle, INFINITY)), half + 1);
  }
  EXPECT_EQ(loader::to_f16(INFINITY), 0x7C00);
  EXPECT_EQ(loader::to_f16(1e30f), 0x7C00);
  EXPECT_GT(loader::to_f16(NAN) & 0x3FF, 0);
  for (uint32_t bits = 0; bits < 0x7F80; ++bits) {
    const float value = std::bit_cast<float>(bits << 16);
    ASSERT_EQ(loader::to_bf16(value), bits);
    ASSERT_EQ(loader::to_bf16(std::bit_cast<float>(bits << 16 | 0x8000)), bits + (bits & 1));
    ASSERT_EQ(loader::to_bf16(std::bit_cast<float>(bits << 16 | 0x7FFF)), bits);
    ASSERT_EQ(loader::to_bf16(std::bit_cast<float>(bits << 16 | 0x8001)), bits + 1);
  }
  EXPECT_TRUE(std::isnan(std::bit_cast<float>(uint32_t{loader::to_bf16(NAN)} << 16)));
}

TEST_F(Loaders, GiveWhatLibl3Decodes) {
  draw_set({{40, 24}}, {L3_COLOUR_RGB, 8}, 30);
  for (const uint32_t threads : {1u, 3u}) {
    for (const l3_reading reading : {L3_READING_AUTO, L3_READING_URING, L3_READING_THREADS}) {
      if (reading == L3_READING_URING && !loader::has_uring()) continue;
      l3_loader_options options = options_of(7);
      options.threads = threads;
      options.reading = reading;
      expect_epoch(options);
    }
  }
}

TEST_F(Loaders, GiveAllTypesAndLayouts) {
  for (const Type type : {Type{L3_COLOUR_GRAY, 1}, Type{L3_COLOUR_GRAY, 8}, Type{L3_COLOUR_RGB, 8},
                          Type{L3_COLOUR_RGB_ALPHA, 8}, Type{L3_COLOUR_GRAY, 12}, Type{L3_COLOUR_RGB, 16},
                          Type{L3_COLOUR_GRAY_ALPHA, 16}, Type{L3_COLOUR_PALETTE, 4}}) {
    draw_set({{19, 11}}, type, 5);
    for (uint32_t value = L3_VALUE_STORED; value <= L3_VALUE_F32; ++value) {
      if (value == L3_VALUE_U8 && type.bits > 8) continue;
      for (const l3_layout layout : {L3_LAYOUT_CHW, L3_LAYOUT_HWC}) {
        for (const uint32_t as_colours : {0u, 1u}) {
          l3_tensor_options wanted{};
          wanted.type = value;
          wanted.layout = layout;
          wanted.as_colours = as_colours;
          const float scale[4] = {0.01f, -3.0f, 1.0f / 255, 65536.0f}, bias[4] = {-1.5f, 0, 1e-7f, 3};
          std::copy(scale, scale + 4, wanted.scale);
          std::copy(bias, bias + 4, wanted.bias);
          l3_loader_options options = options_of(3);
          options.tensors = &wanted;
          options.tensor_count = 1;
          options.flip = 1;
          options.crop = L3_CROP_RANDOM;
          options.crop_width = 7;
          options.crop_height = 9;
          SCOPED_TRACE(testing::Message() << type.bits << " bits, colour " << type.colour << ", type " << value);
          expect_epoch(options);
        }
      }
    }
  }
}

TEST_F(Loaders, CropImagesOfAnySizeAndReadOnlyWhatTheyNeed) {
  draw_set({{700, 500}, {513, 900}, {1200, 300}}, {L3_COLOUR_RGB, 8}, 9);
  for (const l3_reading reading : {L3_READING_AUTO, L3_READING_THREADS}) {
    for (const l3_crop crop : {L3_CROP_CENTRE, L3_CROP_RANDOM}) {
      l3_loader_options options = options_of(4);
      options.reading = reading;
      options.crop = crop;
      options.crop_width = 65;
      options.crop_height = 33;
      options.flip = 1;
      const uint64_t bytes = expect_epoch(options);
      EXPECT_LT(bytes, l3_data_info_of(*set()).sample_bytes / 3);
    }
  }
}

TEST_F(Loaders, CropImagesAndMasksOfAGroupAlike) {
  draw_pairs(12);
  l3_tensor_options wanted[2] = {};
  wanted[0].role = "image";
  wanted[0].role_size = 5;
  wanted[0].type = L3_VALUE_F32;
  wanted[1].role = "mask";
  wanted[1].role_size = 4;
  l3_loader_options options = options_of(5);
  options.tensors = wanted;
  options.tensor_count = 2;
  options.order = L3_ORDER_SHUFFLED;
  options.crop = L3_CROP_RANDOM;
  options.crop_width = 20;
  options.crop_height = 10;
  options.flip = 1;
  expect_epoch(options);
  // The mask of each pixel is what the image's first channel is, by how they are drawn.
  Loader loader(*set(), options);
  while (const Batch batch = loader.next()) {
    const uint64_t pixels = 20 * 10;
    const auto* images = static_cast<const float*>(batch.info().tensors[0].data);
    const auto* masks = static_cast<const uint8_t*>(batch.info().tensors[1].data);
    for (uint64_t i = 0; i < batch.info().units; ++i) {
      for (uint64_t p = 0; p < pixels; ++p) ASSERT_EQ(images[i * pixels * 3 + p], masks[i * pixels + p]);
    }
  }
}

TEST_F(Loaders, GiveEachUnitOnceToOneRank) {
  draw_set({{5, 3}}, {L3_COLOUR_GRAY, 8}, 41, 4);
  for (const uint32_t world_size : {1u, 2u, 3u, 8u}) {
    for (const l3_order order : {L3_ORDER_STORED, L3_ORDER_SHUFFLED, L3_ORDER_WINDOWS}) {
      std::multiset<int64_t> seen;
      uint64_t repeats = 0;
      std::set<uint64_t> batches;
      for (uint32_t rank = 0; rank < world_size; ++rank) {
        l3_loader_options options = options_of(3);
        options.order = order;
        options.window = 2;
        options.rank = rank;
        options.world_size = world_size;
        Loader loader(*set(), options);
        uint64_t count = 0;
        while (const Batch batch = loader.next()) {
          ++count;
          repeats += batch.info().repeats;
          for (uint32_t i = 0; i < batch.info().units - batch.info().repeats; ++i) seen.insert(batch.info().ids[i]);
        }
        EXPECT_EQ(count, loader.info().batches);
        batches.insert(count);
      }
      EXPECT_EQ(batches.size(), 1u);
      EXPECT_LT(repeats, world_size);
      ASSERT_EQ(seen.size(), 41u);
      for (int64_t id = 0; id < 41; ++id) EXPECT_EQ(seen.count(id), 1u);
    }
  }
}

TEST_F(Loaders, GoOnAtEachCutWithAnyNumberOfRanks) {
  draw_set({{6, 4}}, {L3_COLOUR_RGB, 8}, 23, 3);
  for (const l3_order order : {L3_ORDER_SHUFFLED, L3_ORDER_WINDOWS}) {
    l3_loader_options options = options_of(4);
    options.order = order;
    options.window = 2;
    options.crop = L3_CROP_RANDOM;
    options.crop_width = 3;
    options.crop_height = 2;
    options.flip = 1;
    const std::vector<Unit> whole = units_of(options, 2, 0);
    ASSERT_EQ(whole.size(), 23u);
    for (uint64_t position = 0; position <= 23; ++position) {
      for (const uint32_t batch_size : {1u, 4u, 5u}) {
        for (const uint32_t world_size : {1u, 2u, 3u}) {
          // Ranks take turns in each step; put together they go on as one would have.
          std::vector<std::vector<std::vector<Unit>>> of_ranks;
          for (uint32_t rank = 0; rank < world_size; ++rank) {
            options.batch_size = batch_size;
            options.rank = rank;
            options.world_size = world_size;
            of_ranks.push_back(batches_of(options, 2, position));
          }
          std::vector<Unit> rest;
          for (size_t step = 0; step < of_ranks[0].size(); ++step) {
            for (const auto& batches : of_ranks) rest.insert(rest.end(), batches[step].begin(), batches[step].end());
          }
          ASSERT_EQ(rest, std::vector<Unit>(whole.begin() + static_cast<ptrdiff_t>(position), whole.end()))
              << position << " " << batch_size << " " << world_size;
        }
      }
    }
  }
}

TEST_F(Loaders, BeginAgainWhereverTheyAre) {
  draw_set({{33, 17}}, {L3_COLOUR_RGB, 8}, 40);
  l3_loader_options options = options_of(3);
  options.order = L3_ORDER_SHUFFLED;
  options.threads = 4;
  options.prefetch = 5;
  Loader loader(*set(), options);
  const std::vector<Unit> expected = units_of(options, 9, 6);
  for (int round = 0; round < 60; ++round) {
    ASSERT_EQ(l3_loader_start(loader.get(), static_cast<uint64_t>(round), 0, nullptr), L3_OK);
    std::vector<Batch> held;
    held.reserve(7);
    for (int i = 0; i < round % 7; ++i) held.push_back(loader.next());
    if (round % 3 == 0) held.clear();
    ASSERT_EQ(l3_loader_start(loader.get(), 9, 6, nullptr), L3_OK);
    if (round % 10 == 0) {
      EXPECT_EQ(loader.units(), expected);
    }
  }
  EXPECT_EQ(l3_loader_start(loader.get(), 0, 41, nullptr), L3_ERROR_ARGUMENT);
}

TEST_F(Loaders, LetBatchesBeHeldAndOutliveThem) {
  draw_set({{9, 9}}, {L3_COLOUR_GRAY, 8}, 30);
  l3_loader_options options = options_of(2);
  options.prefetch = 1;
  std::vector<Batch> held;
  {
    Loader loader(*set(), options);
    while (Batch batch = loader.next()) held.push_back(std::move(batch));
  }
  ASSERT_EQ(held.size(), 15u);
  for (size_t i = 0; i < held.size(); ++i) {
    EXPECT_EQ(unit_of(held[i].info(), 0).bytes, decoded(2 * i, options)[0]);
  }
}

TEST_F(Loaders, EndAtAnyMoment) {
  draw_set({{200, 100}}, {L3_COLOUR_RGB, 8}, 40);
  for (int taken = 0; taken < 6; ++taken) {
    for (const l3_reading reading : {L3_READING_AUTO, L3_READING_THREADS, L3_READING_URING}) {
      if (reading == L3_READING_URING && !loader::has_uring()) continue;
      l3_loader_options options = options_of(4);
      options.reading = reading;
      options.threads = 3;
      Loader loader(*set(), options);
      for (int i = 0; i < taken; ++i) (void)loader.next();
    }
  }
}

TEST_F(Loaders, ComeBackWhenInterruptedOrOutOfTime) {
  draw_set({{900, 900}}, {L3_COLOUR_RGB, 8}, 4);
  Loader loader(*set(), options_of(4));
  l3_loader_interrupt(loader.get());
  l3_next next = L3_NEXT_END;
  l3_batch* batch = nullptr;
  ASSERT_EQ(l3_loader_next(loader.get(), UINT32_MAX, &next, &batch, nullptr, nullptr), L3_OK);
  EXPECT_EQ(next, L3_NEXT_WAITING);
  ASSERT_EQ(l3_loader_next(loader.get(), 0, &next, &batch, nullptr, nullptr), L3_OK);
  EXPECT_EQ(next, L3_NEXT_WAITING);
  EXPECT_EQ(batch, nullptr);
  EXPECT_TRUE(loader.next());
  EXPECT_FALSE(loader.next());
  EXPECT_FALSE(loader.next());  // the end stays the end
}

TEST_F(Loaders, KeepToBytesInFlightAndStillTakeLargeFiles) {
  draw_set({{300, 300}}, {L3_COLOUR_RGB, 8}, 12);
  for (const uint64_t maximum : {uint64_t{1}, uint64_t{300000}, uint64_t{0}}) {
    l3_loader_options options = options_of(5);
    options.max_bytes_in_flight = maximum;
    options.threads = 3;
    options.reading = L3_READING_THREADS;
    expect_epoch(options);
  }
}

TEST_F(Loaders, LoadTheGroupsThatAreNamed) {
  draw_set({{9, 9}}, {L3_COLOUR_GRAY, 8}, 30, 7);
  const std::vector<uint64_t> groups = {29, 3, 17, 4};
  l3_loader_options options = options_of(3);
  options.groups = groups.data();
  options.group_count = groups.size();
  std::vector<int64_t> ids;
  for (const Unit& unit : units_of(options, 0, 0)) ids.push_back(unit.id);
  EXPECT_EQ(ids, (std::vector<int64_t>{29, 3, 17, 4}));
  for (const l3_order order : {L3_ORDER_SHUFFLED, L3_ORDER_WINDOWS}) {
    options.order = order;
    ids.clear();
    for (const Unit& unit : units_of(options, 0, 0)) ids.push_back(unit.id);
    std::sort(ids.begin(), ids.end());
    EXPECT_EQ(ids, (std::vector<int64_t>{3, 4, 17, 29}));
  }
}

TEST_F(Loaders, SayWhenThingsHappened) {
  draw_set({{64, 64}}, {L3_COLOUR_RGB, 8}, 20);
  Loader loader(*set(), options_of(5));
  while (loader.next()) {
  }
  size_t count = 0;
  ASSERT_EQ(l3_loader_timeline(loader.get(), nullptr, 0, &count), L3_OK);
  ASSERT_EQ(count, 4u);
  std::vector<l3_batch_times> times(count);
  ASSERT_EQ(l3_loader_timeline(loader.get(), times.data(), count, &count), L3_OK);
  uint64_t before = 0;
  for (const l3_batch_times& of : times) {
    EXPECT_LE(of.begun, of.fetched);
    EXPECT_LE(of.fetched, of.decoded);
    EXPECT_LE(of.decode_begun, of.decoded);
    EXPECT_LE(of.decoded, of.given);
    EXPECT_LE(of.asked, of.given);
    EXPECT_GE(of.asked, before);
    EXPECT_GT(of.bytes_read, 0u);
    EXPECT_EQ(of.bytes_out, 5u * 64 * 64 * 3);
    before = of.given;
  }
  const std::string trace = path("trace.json");
  l3_data_error error{};
  ASSERT_EQ(l3_loader_write_trace(loader.get(), trace.c_str(), &error), L3_OK) << error.reason;
  EXPECT_GT(std::filesystem::file_size(trace), 1000u);
  EXPECT_EQ(l3_loader_write_trace(loader.get(), path("none/trace.json").c_str(), &error), L3_ERROR_FILE);
  EXPECT_EQ(error.system_error, ENOENT);
}

// Boxes of large images: what is read and decoded is little more than the box.
TEST_F(Loaders, ReadOnlyTheTilesUnderBoxes) {
  draw_set({{1500, 1200}}, {L3_COLOUR_RGB, 8}, 4);
  const std::vector<l3_box> boxes(4, l3_box{700, 500, 90, 60});
  l3_loader_options options = options_of(2);
  options.box = L3_BOX_GIVEN;
  options.boxes = boxes.data();
  options.box_count = boxes.size();
  options.resize = L3_RESIZE_EXACT;
  options.resize_width = options.resize_height = 32;
  Loader loader(*set(), options);
  while (const Batch batch = loader.next()) {
    EXPECT_LT(batch.info().times.bytes_read, 2 * set_->sample(0).size / 10);
    EXPECT_EQ(batch.unit(1).shape[1], 32u);
  }
  l3_explanation told = l3_explanation_init();
  ASSERT_EQ(l3_loader_explain(loader.get(), 5, 2, &told, nullptr), L3_OK);
  EXPECT_EQ(told.box.x, 700u);
  EXPECT_EQ(told.resized_height, 32u);
  EXPECT_EQ(told.width, 32u);
  EXPECT_EQ(l3_loader_explain(loader.get(), 5, 4, &told, nullptr), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_loader_explain(nullptr, 5, 2, &told, nullptr), L3_ERROR_ARGUMENT);
  l3_tensor tensor{};
  EXPECT_EQ(l3_batch_unit(nullptr, 0, 0, &tensor), L3_ERROR_ARGUMENT);
}

}  // namespace
