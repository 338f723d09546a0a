// Tests of the loader's errors: samples that cannot be read or decoded, invalid options, and forks.
#include <sys/wait.h>
#include <unistd.h>

#include "loader_testing.h"

namespace {

using namespace loader_testing;

class LoaderFailures : public LoaderTest {
 protected:
  static l3_status refused(const l3_data_set* set, const l3_loader_options& options, l3_data_error& error) {
    l3_loader* loader = nullptr;
    const l3_status status = l3_loader_open(set, &options, &loader, &error);
    EXPECT_EQ(loader, nullptr);
    l3_loader_close(loader);
    return status;
  }
  void expect_refused(const l3_loader_options& options, const std::string& reason) {
    l3_data_error error{};
    EXPECT_EQ(refused(set(), options, error), L3_ERROR_ARGUMENT);
    EXPECT_NE(std::string(error.reason).find(reason), std::string::npos) << error.reason;
  }
};

TEST_F(LoaderFailures, AreRaisedInPlaceOfTheirBatchAndItGoesOn) {
  draw_set({{40, 24}}, {L3_COLOUR_RGB, 8}, 20);
  damage(7);
  damage(13);
  l3_loader_options options = options_of(3);
  Loader loader(*set(), options);
  std::vector<int64_t> ids, failed;
  std::vector<uint64_t> positions;
  for (;;) {
    l3_next next = L3_NEXT_WAITING;
    l3_batch* raw = nullptr;
    uint64_t position = 0;
    l3_failure failure{};
    const l3_status status = l3_loader_next(loader.get(), UINT32_MAX, &next, &raw, &position, &failure);
    const Batch batch(raw);
    if (status != L3_OK) {
      EXPECT_EQ(status, L3_ERROR_CORRUPT);
      EXPECT_FALSE(batch);
      EXPECT_NE(l3::message(failure.error).find("shard-"), std::string::npos);
      EXPECT_NE(std::string(failure.error.reason).find("check of a tile"), std::string::npos) << failure.error.reason;
      const l3::Sample told = set_->sample(failure.sample);
      EXPECT_GE(failure.error.offset, told.offset);
      EXPECT_LT(failure.error.offset, told.offset + told.size);
      failed.push_back(static_cast<int64_t>(failure.sample));
    } else if (next == L3_NEXT_END) {
      break;
    } else {
      ids.insert(ids.end(), batch.info().ids, batch.info().ids + batch.info().units);
    }
    positions.push_back(position);
  }
  EXPECT_EQ(failed, (std::vector<int64_t>{7, 13}));
  EXPECT_EQ(ids, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 9, 10, 11, 15, 16, 17, 18, 19}));
  EXPECT_EQ(positions, (std::vector<uint64_t>{3, 6, 9, 12, 15, 18, 20}));
  uint64_t count = 0;
  l3_failure kept[3];
  ASSERT_EQ(l3_loader_failures(loader.get(), kept, 3, &count), L3_OK);
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(kept[1].sample, 13u);
}

TEST_F(LoaderFailures, AreSkippedAndReported) {
  draw_set({{40, 24}}, {L3_COLOUR_RGB, 8}, 20);
  for (const uint64_t sample : {0u, 4u, 5u, 6u, 19u}) damage(sample);
  l3_loader_options options = options_of(3);
  options.on_error = L3_ON_ERROR_SKIP;
  Loader loader(*set(), options);
  std::vector<int64_t> ids;
  while (const Batch batch = loader.next()) {
    for (uint32_t i = 0; i < batch.info().units; ++i) {
      const Unit unit = unit_of(batch.info(), i);
      ids.push_back(unit.id);
      EXPECT_EQ(unit.bytes, decoded(static_cast<uint64_t>(unit.id), options)[0]);
      EXPECT_EQ(unit.label, unit.id % 5 == 4 ? -1 : unit.id % 3);
    }
  }
  EXPECT_EQ(ids, (std::vector<int64_t>{1, 2, 3, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18}));
  uint64_t count = 0;
  ASSERT_EQ(l3_loader_failures(loader.get(), nullptr, 0, &count), L3_OK);
  EXPECT_EQ(count, 5u);
}

// A rank whose batch has nothing left must not have a batch less than the others.
TEST_F(LoaderFailures, AreNotSkippedWhereRanksWouldDiffer) {
  draw_set({{40, 24}}, {L3_COLOUR_RGB, 8}, 8);
  damage(2);
  damage(3);
  l3_loader_options options = options_of(2);
  options.on_error = L3_ON_ERROR_SKIP;
  for (uint32_t world_size : {1u, 2u}) {
    options.world_size = world_size;
    options.rank = world_size - 1;
    Loader loader(*set(), options);
    uint32_t batches = 0, failures = 0;
    for (l3_next next = L3_NEXT_BATCH;;) {
      l3_batch* batch = nullptr;
      if (l3_loader_next(loader.get(), UINT32_MAX, &next, &batch, nullptr, nullptr) != L3_OK) {
        ++failures;
        continue;
      }
      if (next == L3_NEXT_END) break;
      ++batches;
      l3_batch_release(batch, nullptr);
    }
    EXPECT_EQ(batches, world_size == 1 ? 3u : 1u);
    EXPECT_EQ(failures, world_size - 1);
  }
}

TEST_F(LoaderFailures, BecomeZerosWithoutALabel) {
  draw_pairs(6);
  damage(3);  // the second group's mask
  damage(8);  // the fifth group's image
  l3_tensor_options wanted[2] = {};
  wanted[0].role = "image";
  wanted[0].role_size = 5;
  wanted[1].role = "mask";
  wanted[1].role_size = 4;
  l3_loader_options options = options_of(6);
  options.tensors = wanted;
  options.tensor_count = 2;
  options.crop = L3_CROP_CENTRE;
  options.crop_width = 20;
  options.crop_height = 10;
  options.on_error = L3_ON_ERROR_ZERO;
  Loader loader(*set(), options);
  const Batch batch = loader.next();
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch.info().units, 6u);
  EXPECT_EQ(batch.info().failed, 2u);
  for (uint32_t t = 0; t < 2; ++t) {
    const uint64_t size = bytes_of_unit(batch.info().tensors[t]);
    for (uint32_t i = 0; i < 6; ++i) {
      const Bytes expected = i == 1 || i == 4 ? Bytes(size) : decoded(2 * i + t, options, t)[0];
      EXPECT_EQ(bytes_of(batch.info(), i, t), expected) << t << " " << i;
    }
  }
  EXPECT_EQ(batch.info().labels[1], -1);
  EXPECT_EQ(batch.info().ids[1], 2);
}

// Whatever bytes a sample has: whole images and crops fail where decoding does, and nothing else.
TEST_F(LoaderFailures, AreThoseOfDecoding) {
  constexpr uint64_t kSamples = 24;
  drawing::Dice dice(11);
  for (int round = 0; round < 12; ++round) {
    draw_set({{420, 300}}, {L3_COLOUR_RGB, 8}, kSamples);
    l3_loader_options options = options_of(5);
    options.on_error = L3_ON_ERROR_ZERO;
    options.threads = 3;
    if (round % 2 == 1) {
      options.crop = L3_CROP_CENTRE;
      options.crop_width = 40;
      options.crop_height = 20;
    }
    for (uint64_t sample = 0; sample < kSamples; ++sample) {
      const l3::Sample told = set_->sample(sample);
      std::fstream stream(l3_data_shard_name(set(), told.shard), std::ios::binary | std::ios::in | std::ios::out);
      // Heads and indexes more often than their share, and some samples not at all.
      const uint64_t place = dice.chance(2) ? dice.roll(std::min<uint64_t>(told.size, 300)) : dice.roll(told.size);
      if (dice.chance(4)) continue;
      stream.seekp(static_cast<std::streamoff>(told.offset + place));
      const Bytes noise = dice.bytes(1 + dice.roll(std::min<uint64_t>(8, told.size - place)));
      stream.write(reinterpret_cast<const char*>(noise.data()), static_cast<std::streamsize>(noise.size()));
    }
    std::set<uint64_t> expected, failed;
    std::vector<Bytes> pixels;
    const uint32_t width = round % 2 == 1 ? 40 : 420, height = round % 2 == 1 ? 20 : 300;
    for (uint64_t sample = 0; sample < kSamples; ++sample) {
      Bytes file(set_->sample(sample).size), out(size_t{width} * height * 3);
      const l3::Sample told = set_->sample(sample);
      std::ifstream stream(l3_data_shard_name(set(), told.shard), std::ios::binary);
      stream.seekg(static_cast<std::streamoff>(told.offset));
      ASSERT_TRUE(stream.read(reinterpret_cast<char*>(file.data()), static_cast<std::streamsize>(file.size())));
      if (l3_decode_region(file.data(), file.size(), (420 - width) / 2, (300 - height) / 2, width, height, nullptr,
                           out.data(), out.size(), 0, nullptr) != L3_OK) {
        expected.insert(sample);
        std::fill(out.begin(), out.end(), uint8_t{0});
      }
      pixels.push_back(out);
    }
    l3_tensor_options wanted{};
    wanted.layout = L3_LAYOUT_HWC;
    options.tensors = &wanted;
    options.tensor_count = 1;
    Loader loader(*set(), options);
    uint64_t sample = 0;
    while (const Batch batch = loader.next()) {
      for (uint32_t i = 0; i < batch.info().units; ++i, ++sample) EXPECT_EQ(bytes_of(batch.info(), i), pixels[sample]);
    }
    EXPECT_EQ(sample, kSamples);
    l3_failure failures[kSamples];
    uint64_t count = 0;
    ASSERT_EQ(l3_loader_failures(loader.get(), failures, kSamples, &count), L3_OK);
    for (uint64_t i = 0; i < count; ++i) failed.insert(failures[i].sample);
    EXPECT_EQ(failed, expected);
    EXPECT_EQ(count, expected.size());
    EXPECT_GT(count, 5u);
  }
}

// A file that is sound, but another one than the index describes.
TEST_F(LoaderFailures, AreFilesThatTheIndexDoesNotDescribe) {
  // Without payloads both have the same size.
  const Bytes described = encode(drawing::draw({40, 24}, {L3_COLOUR_GRAY, 8}, Pattern::flat));
  const Bytes others[] = {encode(drawing::draw({40, 24}, {L3_COLOUR_GRAY, 7}, Pattern::flat)),
                          encode(drawing::draw({24, 40}, {L3_COLOUR_GRAY, 8}, Pattern::flat)),
                          encode(drawing::draw({40, 24}, {L3_COLOUR_RGB, 8}, Pattern::flat))};
  for (const Bytes& other : others) {
    ASSERT_EQ(other.size(), described.size());
    write_set({{Item{"a", described}, Item{"b", described}}});
    std::fstream stream(l3_data_shard_name(set(), 0), std::ios::binary | std::ios::in | std::ios::out);
    stream.seekp(static_cast<std::streamoff>(set_->sample(1).offset));
    stream.write(reinterpret_cast<const char*>(other.data()), static_cast<std::streamsize>(other.size()));
    stream.close();
    l3_loader_options options = options_of(2);
    options.on_error = L3_ON_ERROR_SKIP;
    Loader loader(*set(), options);
    const Batch batch = loader.next();
    ASSERT_TRUE(batch);
    EXPECT_EQ(batch.info().units, 1u);
    l3_failure failure{};
    uint64_t count = 0;
    ASSERT_EQ(l3_loader_failures(loader.get(), &failure, 1, &count), L3_OK);
    ASSERT_EQ(count, 1u);
    EXPECT_EQ(failure.sample, 1u);
    EXPECT_STREQ(failure.error.reason, "the shape of an image differs from the index");
  }
}

TEST_F(LoaderFailures, AreImagesOfAnotherShard) { expect_images_of_another_shard_refused({L3_DEVICE_CPU}); }

TEST_F(LoaderFailures, AreNamedWhereShardsBecomeShortOrGoAway) {
  draw_set({{40, 24}}, {L3_COLOUR_RGB, 8}, 20);
  l3_loader_options options = options_of(4);
  options.on_error = L3_ON_ERROR_ZERO;
  const std::string second = l3_data_shard_name(set(), 1);
  const uint64_t middle = set_->sample(14).offset + 5;
  for (const l3_reading reading : {L3_READING_AUTO, L3_READING_THREADS, L3_READING_URING}) {
    if (reading == L3_READING_URING && !loader::has_uring()) continue;
    options.reading = reading;
    std::filesystem::resize_file(second, middle);
    Loader loader(*set(), options);
    uint32_t failed = 0;
    while (const Batch batch = loader.next()) failed += batch.info().failed;
    EXPECT_EQ(failed, 6u);
    l3_failure failures[20];
    uint64_t count = 0;
    ASSERT_EQ(l3_loader_failures(loader.get(), failures, 20, &count), L3_OK);
    ASSERT_EQ(count, 6u);
    for (uint64_t i = 0; i < 6; ++i) {
      EXPECT_EQ(failures[i].sample, 14 + i);
      EXPECT_EQ(failures[i].error.status, L3_ERROR_TRUNCATED);
      EXPECT_EQ(std::string(failures[i].error.file), second);
    }
  }
}

TEST_F(LoaderFailures, OfOptionsNameTheReason) {
  draw_set({{40, 24}, {41, 24}}, {L3_COLOUR_RGB, 8}, 4);
  expect_refused(options_of(0), "batch_size must be at least 1");
  expect_refused(options_of(2), "'image 1' has 41 x 24 pixels, the images before it have 40 x 24");
  l3_loader_options options = options_of(2);
  options.crop = L3_CROP_RANDOM;
  expect_refused(options, "the crop is empty");
  options.crop_width = 41;
  options.crop_height = 5;
  expect_refused(options, "'image 0' has 40 x 24 pixels: this is less than the crop of 41 x 5");
  options.crop_width = 5;
  options.rank = 1;
  expect_refused(options, "rank");
  options.rank = 0;
  uint64_t groups[] = {1, 2, 1};
  options.groups = groups;
  options.group_count = 3;
  expect_refused(options, "group 1 occurs twice");
  groups[2] = 4;
  expect_refused(options, "there is no group 4");
  options.group_count = 0;
  expect_refused(options, "no groups to load");
  options.groups = nullptr;
  l3_tensor_options wanted{};
  wanted.role = "depth";
  wanted.role_size = 5;
  options.tensors = &wanted;
  options.tensor_count = 1;
  expect_refused(options, "the group of 'image 0' has no image of role 'depth'");
  options.device = L3_DEVICE_CUDA;
  l3_data_error error{};
  EXPECT_NE(refused(set(), options, error), L3_OK);

  draw_pairs(3);
  options = options_of(2);
  options.crop = L3_CROP_CENTRE;
  options.crop_width = 4;
  options.crop_height = 4;
  expect_refused(options, "several images: name the wanted roles");
  draw_set({{8, 8}}, {L3_COLOUR_RGB, 16}, 4);
  options = options_of(2);
  wanted = {};
  wanted.type = L3_VALUE_U8;
  options.tensors = &wanted;
  options.tensor_count = 1;
  expect_refused(options, "16 bits, which do not fit 8");
}

TEST_F(LoaderFailures, InAForkedChildAreSaid) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer's allocator can deadlock in the child of a process with threads";
#elif defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer mixes up threads of the parent and the child";
#endif
  draw_set({{40, 24}}, {L3_COLOUR_RGB, 8}, 20);
  const l3_loader_options options = options_of(4);
  l3_loader* loader = nullptr;
  ASSERT_EQ(l3_loader_open(set(), &options, &loader, nullptr), L3_OK);
  l3_next next = L3_NEXT_WAITING;
  l3_batch* batch = nullptr;
  ASSERT_EQ(l3_loader_next(loader, UINT32_MAX, &next, &batch, nullptr, nullptr), L3_OK);
  const pid_t child = fork();
  if (child == 0) {
    l3_failure failure{};
    l3_batch* none = nullptr;
    bool good = l3_loader_next(loader, UINT32_MAX, &next, &none, nullptr, &failure) == L3_ERROR_ARGUMENT;
    good = good && std::strstr(failure.error.reason, "fork()") != nullptr;
    good = good && l3_loader_start(loader, 0, 0, nullptr) == L3_ERROR_ARGUMENT;
    l3_batch_release(batch, nullptr);
    l3_loader_close(loader);
    // One of its own works.
    l3_loader* own = nullptr;
    good = good && l3_loader_open(set(), &options, &own, nullptr) == L3_OK;
    good = good && l3_loader_next(own, UINT32_MAX, &next, &none, nullptr, nullptr) == L3_OK && none != nullptr;
    l3_batch_release(none, nullptr);
    l3_loader_close(own);
    _exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  l3_batch_release(batch, nullptr);
  EXPECT_EQ(l3_loader_next(loader, UINT32_MAX, &next, &batch, nullptr, nullptr), L3_OK);
  l3_batch_release(batch, nullptr);
  l3_loader_close(loader);
}

}  // namespace
