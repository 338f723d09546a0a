// Tests DataSetWriter with several threads, also under the thread sanitizer. python/tests/test_writer.py tests the
// rest.
#include "loader/data_set_writer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "data_set_testing.h"
#include "l3/l3.hpp"
#include "l3/l3_data.hpp"

namespace {

using namespace loader;
using std::chrono::milliseconds;

constexpr uint32_t kWidth = 20;

std::vector<uint8_t> pixels_of(uint32_t number) {
  std::vector<uint8_t> pixels(size_t{kWidth} * (1 + number % 9));
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * i + number * 7);
  return pixels;
}

NewItem item_of(uint32_t number) {
  NewItem item;
  item.sample.name = std::to_string(number);
  item.sample.role = number % 3 == 0 ? "a" : number % 3 == 1 ? "b" : "c";
  item.sample.opens_group = number % 3 == 0;
  item.bytes = pixels_of(number);
  item.image = l3_image_init();
  item.image->width = kWidth;
  item.image->height = static_cast<uint32_t>(item.bytes.size()) / kWidth;
  item.image->bits = 8;
  item.image->colour = L3_COLOUR_GRAY;
  return item;
}

class DataSetWriters : public data_set_testing::DataSets {
 protected:
  WriterOptions options(uint32_t threads) const {
    WriterOptions options;
    options.folder = path("set");
    options.threads = threads;
    options.shard_bytes = 20000;
    options.encode.method = L3_METHOD_FAST;
    return options;
  }
  // Returns how many were taken.
  static uint32_t add(DataSetWriter& writer, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      NewItem item = item_of(i);
      DataSetWriter::Added added = DataSetWriter::Added::full;
      while (added == DataSetWriter::Added::full) added = writer.add(item, milliseconds(10));
      if (added == DataSetWriter::Added::failed) return i;
    }
    return count;
  }
  bool is_empty() const { return std::filesystem::is_empty(path("")); }
};

TEST_F(DataSetWriters, KeepTheOrder) {
  for (const uint32_t threads : {1U, 5U}) {
    WriterOptions wanted = options(threads);
    wanted.replace = threads > 1;
    DataSetWriter writer(wanted);
    ASSERT_FALSE(writer.begin());
    ASSERT_EQ(add(writer, 3000), 3000U);
    while (!writer.wait(milliseconds(10))) {
    }
    ASSERT_FALSE(writer.finish({}));
    EXPECT_GT(writer.shards(), 3U);

    const auto set = l3::DataSet::open(wanted.folder);
    ASSERT_TRUE(set);
    ASSERT_EQ(set->count(), 3000U);
    for (uint32_t i = 0; i < 3000; ++i) {
      EXPECT_EQ(set->sample(i).name_text(), std::to_string(i));
      const auto file = set->read(i);
      ASSERT_TRUE(file);
      const auto pixels = l3::decode(*file);
      ASSERT_TRUE(pixels);
      ASSERT_EQ(pixels->bytes, pixels_of(i));
    }
  }
}

TEST_F(DataSetWriters, LeaveNothingIfTheyAreAbandoned) {
  for (const uint32_t count : {0U, 1U, 500U}) {
    DataSetWriter writer(options(4));
    ASSERT_FALSE(writer.begin());
    add(writer, count);
  }
  EXPECT_TRUE(is_empty());
}

TEST_F(DataSetWriters, NameTheSampleThatFails) {
  {
    DataSetWriter writer(options(4));
    ASSERT_FALSE(writer.begin());
    ASSERT_EQ(add(writer, 100), 100U);
    NewItem bad = item_of(100);
    bad.image->bits = 3;  // samples are too large
    while (writer.add(bad, milliseconds(10)) == DataSetWriter::Added::full) {
    }
    EXPECT_LT(add(writer, 100000), 100000U);
    EXPECT_TRUE(writer.wait(milliseconds(0)));
    const auto failure = writer.failure();
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->sample, 100U);
    EXPECT_EQ(failure->name, "100");
    EXPECT_TRUE(writer.finish({}));
  }
  EXPECT_TRUE(is_empty());
}

// The bytes of a file of another format: here twice the pixels, of which unpack() takes the first half.
TEST_F(DataSetWriters, UnpackOnTheirThreads) {
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<uint32_t> kept = 0, calls = 0;
  const auto packed = [&](uint32_t number) {
    NewItem item = item_of(number);
    item.unpack = [&, image = std::exchange(item.image, std::nullopt)](NewItem& taken) -> std::optional<WriteFailure> {
      EXPECT_NE(std::this_thread::get_id(), caller);
      ++calls;
      if (taken.bytes.size() % 2 != 0) return WriteFailure{L3_ERROR_CORRUPT, 0, "", "odd", 0, "", 17};
      taken.bytes.resize(taken.bytes.size() / 2);
      taken.image = image;
      const auto exif = std::shared_ptr<uint8_t>(new uint8_t(7), [&](const uint8_t* byte) { --kept, delete byte; });
      taken.image->exif = exif.get();
      taken.image->exif_size = 1;
      taken.kept = exif;
      ++kept;
      return std::nullopt;
    };
    item.bytes.resize(2 * item.bytes.size());
    return item;
  };
  {
    DataSetWriter writer(options(4));
    ASSERT_FALSE(writer.begin());
    for (uint32_t i = 0; i < 500; ++i) {
      NewItem item = i % 2 == 0 ? packed(i) : item_of(i);
      while (writer.add(item, milliseconds(10)) == DataSetWriter::Added::full) {
      }
    }
    while (!writer.wait(milliseconds(10))) {
    }
    EXPECT_EQ(kept, 0U);
    EXPECT_EQ(calls, 250U);
    ASSERT_FALSE(writer.finish({}));
  }
  const auto set = l3::DataSet::open(options(1).folder);
  ASSERT_TRUE(set);
  ASSERT_EQ(set->count(), 500U);
  for (uint32_t i = 0; i < 500; ++i) {
    const auto file = set->read(i);
    ASSERT_TRUE(file);
    EXPECT_EQ(l3::decode(*file)->bytes, pixels_of(i));
    const auto opened = l3::File::open(*file);
    ASSERT_TRUE(opened);
    EXPECT_EQ(opened->section(L3_SECTION_EXIF)->size(), i % 2 == 0 ? 1U : 0U);
  }

  WriterOptions wanted = options(4);
  wanted.replace = true;
  DataSetWriter writer(wanted);
  ASSERT_FALSE(writer.begin());
  ASSERT_EQ(add(writer, 3), 3U);
  NewItem odd = packed(3);
  odd.bytes.push_back(0);
  ASSERT_EQ(writer.add(odd, milliseconds(10)), DataSetWriter::Added::taken);
  while (!writer.wait(milliseconds(10))) {
  }
  const auto failure = writer.failure();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->sample, 3U);
  EXPECT_EQ(failure->name, "3");
  EXPECT_EQ(error_of(*failure).offset, 17U);
}

// Few small items do not wake a thread by themselves. Whoever waits for them does.
TEST_F(DataSetWriters, DoNotForgetFewItems) {
  WriterOptions wanted = options(2);
  wanted.bytes_ahead = 20000;
  DataSetWriter writer(wanted);
  ASSERT_FALSE(writer.begin());
  ASSERT_EQ(add(writer, 3), 3U);
  NewItem large = item_of(3);
  large.bytes.resize(20000);  // more than may wait at once, so that it waits for the others
  large.image->height = 1000;
  EXPECT_EQ(writer.add(large, std::chrono::minutes(5)), DataSetWriter::Added::taken);
  EXPECT_TRUE(writer.wait(std::chrono::minutes(5)));
  EXPECT_FALSE(writer.finish({}));
  EXPECT_EQ(l3::DataSet::open(options(1).folder)->count(), 4U);
}

}  // namespace
