// Tests of libl3_data: writing shards and reading data sets.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/crc32.h"
#include "base/json_reader.h"
#include "base/utf8.h"
#include "data_set_testing.h"

namespace {

using namespace data_set_testing;

TEST(Checks, AreCrc32) {
  const std::string text = "123456789";
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  EXPECT_EQ(base::crc32(bytes), 0xCBF43926u);
  EXPECT_EQ(base::crc32(bytes.subspan(4), base::crc32(bytes.first(4))), 0xCBF43926u);
  EXPECT_EQ(base::crc32({}), 0u);
  // Eight at a time gives what one at a time gives, wherever it begins.
  Bytes many(300);
  for (size_t i = 0; i < many.size(); ++i) many[i] = static_cast<uint8_t>(i * i + i / 7);
  for (size_t begin = 0; begin < 9; ++begin) {
    uint32_t value = 0;
    for (size_t i = begin; i < many.size(); ++i) value = base::crc32({&many[i], 1}, value);
    EXPECT_EQ(base::crc32(std::span(many).subspan(begin)), value);
  }
}

TEST(Names, StayBelowTheirFolder) {
  for (const char* good : {"a", "a/b.png", ".hidden", "a..b", "...", "a b\n", "\xFF"})
    EXPECT_TRUE(loader::is_name(good)) << good;
  for (const char* bad : {"", "/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/./b"}) {
    EXPECT_FALSE(loader::is_name(bad)) << bad;
  }
  EXPECT_FALSE(loader::is_name(std::string("a\0b", 3)));
  EXPECT_TRUE(loader::is_name(std::string(4096, 'a')));
  EXPECT_FALSE(loader::is_name(std::string(4097, 'a')));
  EXPECT_FALSE(loader::is_role("a/b"));
  EXPECT_FALSE(loader::is_role(std::string(256, 'a')));
}

TEST_F(DataSets, GiveBackWhatWentIn) {
  const Bytes text = {'c', 'a', 't'}, red = image_of(30, 20, 7), mask = image_of(30, 20, 1), other = image_of(5, 6, 9);
  loader::DataSetIndex whole;
  whole.classes = {"cat", "dog \"\\\n\xC3\xA9"};
  whole.shards.push_back(shard("a.l3s", {{"x/1.png", red, L3_DATA_IMAGE, "png", true, 1, "{\"a\": 1}"},
                                         {"x/1.mask.png", mask, L3_DATA_IMAGE, "mask.png", false, 1, ""},
                                         {"x/1.txt", text, L3_DATA_BYTES, "txt", false, 1, ""}}));
  whole.shards.push_back(shard("empty.l3s", {}));
  whole.shards.push_back(shard("b.l3s", {{"2.png", other, L3_DATA_IMAGE, "png", true, L3_NO_LABEL, ""},
                                         {"2.bin", {}, L3_DATA_BYTES, "bin", false, L3_NO_LABEL, ""}}));
  index(whole);
  const auto set = l3::DataSet::open(folder_.string());
  ASSERT_TRUE(set) << l3::message(set.error());
  EXPECT_EQ(set->count(), 5u);
  EXPECT_EQ(set->info().groups, 2u);
  EXPECT_EQ(set->info().shards, 3u);
  EXPECT_EQ(set->info().classes, 2u);
  EXPECT_EQ(set->info().sample_bytes, red.size() + mask.size() + text.size() + other.size());
  EXPECT_STREQ(l3_data_class(set->get(), 1), whole.classes[1].c_str());
  EXPECT_EQ(l3_data_class(set->get(), 2), nullptr);
  EXPECT_EQ(l3_data_shard_name(set->get(), 2), path("b.l3s"));
  EXPECT_EQ(l3_data_shard_name(set->get(), 3), nullptr);

  const l3::Sample first = set->sample(0), third = set->sample(2), last = set->sample(4);
  EXPECT_EQ(first.name_text(), "x/1.png");
  EXPECT_EQ(first.role_text(), "png");
  EXPECT_EQ(first.metadata_text(), "{\"a\": 1}");
  EXPECT_EQ(first.width, 30u);
  EXPECT_EQ(first.height, 20u);
  EXPECT_EQ(first.label, 1u);
  EXPECT_EQ(first.offset, 4096u);
  EXPECT_FALSE(third.is_image());
  EXPECT_EQ(third.width, 0u);
  EXPECT_EQ(last.shard, 2u);
  EXPECT_EQ(last.group, 1u);
  EXPECT_EQ(last.size, 0u);
  EXPECT_EQ(last.label, L3_NO_LABEL);

  const Bytes* expected[] = {&red, &mask, &text, &other};
  for (uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(set->find(set->sample(i).name_text()), i);
    const auto bytes = set->read(i);
    ASSERT_TRUE(bytes) << l3::message(bytes.error());
    EXPECT_EQ(*bytes, *expected[i]);
    EXPECT_EQ(l3_data_check_sample(set->get(), i, bytes->data(), bytes->size(), nullptr), L3_OK);
    EXPECT_NE(l3_data_check_sample(set->get(), i, other.data(), other.size(), nullptr),
              i == 3 ? L3_ERROR_CORRUPT : L3_OK);
  }
  EXPECT_TRUE(set->read(4));
  EXPECT_FALSE(set->find("x/1"));
  EXPECT_FALSE(set->find(""));
  uint64_t begin = 9, count = 9;
  EXPECT_EQ(l3_data_group(set->get(), 0, &begin, &count), L3_OK);
  EXPECT_EQ(begin, 0u);
  EXPECT_EQ(count, 3u);
  EXPECT_EQ(l3_data_group(set->get(), 1, &begin, &count), L3_OK);
  EXPECT_EQ(begin, 3u);
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(l3_data_group(set->get(), 2, &begin, &count), L3_ERROR_ARGUMENT);
  for (uint64_t i = 0; i < 3; ++i) EXPECT_EQ(l3_data_verify_shard(set->get(), i, nullptr), L3_OK);
}

TEST_F(DataSets, ReadParts) {
  const Bytes bytes = {0, 1, 2, 3, 4, 5, 6, 7};
  shard("a.l3s", {{"a", bytes, L3_DATA_BYTES, "bin", true, L3_NO_LABEL, ""}});
  const auto set = l3::DataSet::open(path("a.l3s"));
  ASSERT_TRUE(set) << l3::message(set.error());
  uint8_t out[8];
  l3_data_error error{};
  EXPECT_EQ(l3_data_read_part(set->get(), 0, 2, out, 3, &error), L3_OK);
  EXPECT_EQ(Bytes(out, out + 3), (Bytes{2, 3, 4}));
  EXPECT_EQ(l3_data_read_part(set->get(), 0, 8, out, 0, &error), L3_OK);
  EXPECT_EQ(l3_data_read_part(set->get(), 0, 8, out, 1, &error), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_data_read_part(set->get(), 0, UINT64_MAX, out, 2, &error), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_data_read_part(set->get(), 1, 0, out, 1, &error), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_data_read(set->get(), 0, out, 7, &error), L3_ERROR_BUFFER);
  EXPECT_EQ(l3_data_read(set->get(), 0, nullptr, 8, &error), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_data_read(nullptr, 0, out, 8, &error), L3_ERROR_ARGUMENT);
}

// Two shards whose samples have equal sizes, and the samples of one in the other: each of them is a sound file.
TEST_F(DataSets, RefuseImagesOfAnotherShard) {
  const Bytes red = image_of(30, 20, 7), blue = image_of(30, 20, 9);
  ASSERT_EQ(red.size(), blue.size());
  const uint64_t size = red.size();
  shard("red.l3s", {{"a", red}, {"b", red}});
  shard("blue.l3s", {{"a", blue}, {"b", blue}});
  const auto set = l3::DataSet::open(path("red.l3s"));
  ASSERT_TRUE(set) << l3::message(set.error());
  const uint64_t begin = set->sample(0).offset, end = set->sample(1).offset + size;
  Bytes out(size);
  l3_data_error error{};
  for (const uint64_t offset : {uint64_t{0}, uint64_t{1}, size - 1, size}) {
    EXPECT_EQ(l3_data_read_part(set->get(), 1, offset, out.data(), size - offset, &error), L3_OK) << error.reason;
  }
  copy_between(path("blue.l3s"), path("red.l3s"), begin, end);
  for (uint64_t i = 0; i < 2; ++i) {
    EXPECT_FALSE(set->read(i));
    const l3::Sample told = set->sample(i);
    for (const uint64_t offset : {uint64_t{0}, uint64_t{1}, size - 1, size}) {
      EXPECT_EQ(l3_data_read_part(set->get(), i, offset, out.data(), size - offset, &error), L3_ERROR_CORRUPT);
      EXPECT_STREQ(error.reason, "the digest of an image differs from the index");
      EXPECT_EQ(error.offset, told.offset);
      EXPECT_EQ(std::string(error.file), path("red.l3s"));
    }
    EXPECT_EQ(l3_data_check_sample(set->get(), i, blue.data(), blue.size(), &error), L3_ERROR_CORRUPT);
    EXPECT_EQ(l3_data_check_sample(set->get(), i, red.data(), red.size(), &error), L3_OK);
    EXPECT_EQ(l3_data_check_sample(set->get(), i, red.data(), std::min<size_t>(size, L3_HEAD_MAX_BYTES), &error),
              L3_OK);
  }
}

// The same where the entry's check is that of the wrong bytes.
TEST_F(DataSets, RefuseImagesThatTheIndexDoesNotDescribe) {
  Item item{"a", image_of(30, 20, 9)};
  const std::pair<Bytes, const char*> cases[] = {
      {image_of(30, 20, 7), "the digest of an image differs from the index"},
      {image_of(20, 30, 9), "the shape of an image differs from the index"},
  };
  for (const auto& [described, reason] : cases) {
    item.described = described;
    shard("a.l3s", {item});
    const auto set = l3::DataSet::open(path("a.l3s"));
    ASSERT_TRUE(set) << l3::message(set.error());
    const auto bytes = set->read(0);
    ASSERT_FALSE(bytes);
    EXPECT_EQ(bytes.error().status, L3_ERROR_CORRUPT);
    EXPECT_STREQ(bytes.error().reason, reason);
  }
}

TEST_F(DataSets, SayWhatIsWrongAndWhere) {
  const loader::ShardSummary summary = shard("a.l3s", {{"a", image_of(9, 9, 3)}});
  const auto damage = [&](uint64_t offset) {
    std::fstream file(path("a.l3s"), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(static_cast<char>(byte ^ 1));
  };
  damage(4096 + 10);  // of the sample
  {
    const auto set = l3::DataSet::open(path("a.l3s"));
    ASSERT_TRUE(set) << l3::message(set.error());
    const auto bytes = set->read(0);
    ASSERT_FALSE(bytes);
    EXPECT_EQ(bytes.error().status, L3_ERROR_CORRUPT);
    EXPECT_EQ(l3::message(bytes.error()), path("a.l3s") + ": offset 4096: the check of a sample does not match");
  }
  damage(100);  // behind the head
  {
    const auto set = l3::DataSet::open(path("a.l3s"));
    ASSERT_TRUE(set);
    l3_data_error error{};
    EXPECT_EQ(l3_data_verify_shard(set->get(), 0, &error), L3_ERROR_CORRUPT);
    EXPECT_EQ(error.offset, 100u);
  }
  damage(summary.bytes - 64 - 1);  // of the index
  const auto set = l3::DataSet::open(path("a.l3s"));
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().status, L3_ERROR_CORRUPT);
  const auto none = l3::DataSet::open(path("none"));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().status, L3_ERROR_FILE);
  EXPECT_EQ(none.error().system_error, ENOENT);
  const auto folder = l3::DataSet::open(folder_.string());
  ASSERT_FALSE(folder);
  EXPECT_STREQ(folder.error().reason,
               "not a data set, or an unfinished one: index.json is missing (l3 convert makes data sets)");
}

TEST_F(DataSets, DoNotWaitForPipes) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  const auto set = l3::DataSet::open(path("pipe"));
  ASSERT_FALSE(set);
  EXPECT_STREQ(set.error().reason, "not a regular file");
}

TEST_F(DataSets, HaveLimits) {
  loader::DataSetIndex whole;
  whole.shards.push_back(shard("a.l3s", {{"a", image_of(9, 9, 3)}}));
  index(whole);
  l3_data_options options = l3_data_options_init();
  options.max_index_bytes = 80;
  auto set = l3::DataSet::open(folder_.string(), options);
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().status, L3_ERROR_LIMIT);
  options = l3_data_options_init();
  options.max_json_bytes = 20;
  set = l3::DataSet::open(folder_.string(), options);
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().status, L3_ERROR_LIMIT);
  options.struct_size = 0;
  set = l3::DataSet::open(folder_.string(), options);
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().status, L3_ERROR_ARGUMENT);
  l3_data_set* opened = nullptr;
  EXPECT_EQ(l3_data_open(nullptr, nullptr, &opened, nullptr), L3_ERROR_ARGUMENT);
  EXPECT_EQ(l3_data_open("a", nullptr, nullptr, nullptr), L3_ERROR_ARGUMENT);
  l3_data_close(nullptr);
}

TEST_F(DataSets, AreSharedByThreads) {
  loader::DataSetIndex whole;
  constexpr uint32_t kShards = 7, kSamples = 20;
  for (uint32_t i = 0; i < kShards; ++i) {
    std::vector<Item> items;
    for (uint32_t j = 0; j < kSamples; ++j) {
      const uint32_t number = i * kSamples + j;
      items.push_back({std::to_string(number), Bytes(number * 37 + 1, static_cast<uint8_t>(number)), L3_DATA_BYTES});
    }
    whole.shards.push_back(shard(std::to_string(i) + ".l3s", items));
  }
  index(whole);
  // With fewer files open than there are shards, too.
  for (const uint32_t open_files : {0u, 1u, 3u}) {
    l3_data_options options = l3_data_options_init();
    options.max_open_files = open_files;
    const auto set = l3::DataSet::open(folder_.string(), options);
    ASSERT_TRUE(set) << l3::message(set.error());
    std::vector<std::thread> threads;
    std::atomic<uint32_t> wrong{0};
    for (uint32_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (uint32_t i = 0; i < 300; ++i) {
          const uint64_t number = (i * 31 + t * 17) % (kShards * kSamples);
          const auto bytes = set->read(number);
          const Bytes expected(number * 37 + 1, static_cast<uint8_t>(number));
          if (!bytes || *bytes != expected || set->find(std::to_string(number)) != number) ++wrong;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0u);
  }
}

// A hundred thousand samples; the time is said, and bounded loosely: other things run beside this.
TEST_F(DataSets, OpenQuickly) {
  constexpr uint32_t kSamples = 100000;
  const Bytes one = {1};
  std::vector<Item> items;
  for (uint32_t i = 0; i < kSamples; ++i) {
    items.push_back({"n0144" + std::to_string(i % 1000) + "/n0144_" + std::to_string(i) + ".png", one, L3_DATA_BYTES});
  }
  shard("a.l3s", items);
  double best = 1e9;
  for (int round = 0; round < 3; ++round) {
    const auto start = std::chrono::steady_clock::now();
    const auto set = l3::DataSet::open(path("a.l3s"));
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    ASSERT_TRUE(set) << l3::message(set.error());
    EXPECT_EQ(set->count(), kSamples);
    EXPECT_EQ(set->find(items[77777].name), 77777u);
  }
  std::printf("100000 samples open in %.1f ms\n", best * 1000);
  EXPECT_LT(best, 2);
}

TEST(Json, IsReadAsItIsWritten) {
  loader::DataSetIndex index;
  index.classes = {"a", "\"\\/\b\f\n\r\t\x01", "\xE2\x82\xAC \xF0\x9F\x98\x80"};
  loader::ShardSummary& shard = index.shards.emplace_back();
  shard = {"x.l3s", 123, 4, 2, 0xFFFFFFFF, {}, 321};
  shard.digest[0] = 0xAB;
  loader::DataSetIndex read;
  const std::string json = loader::to_json(index);
  const auto fault = loader::read_json(json, read);
  ASSERT_FALSE(fault) << fault->reason << " at " << fault->offset;
  EXPECT_EQ(read.classes, index.classes);
  ASSERT_EQ(read.shards.size(), 1u);
  EXPECT_EQ(read.shards[0].file, "x.l3s");
  EXPECT_EQ(read.shards[0].index_check, 0xFFFFFFFFu);
  EXPECT_EQ(read.shards[0].index_bytes, 321u);
  EXPECT_EQ(read.shards[0].digest, shard.digest);
  for (size_t cut = 0; cut + 2 < json.size(); ++cut) {
    loader::DataSetIndex none;
    EXPECT_TRUE(loader::read_json(json.substr(0, cut), none)) << cut;
  }
  EXPECT_FALSE(base::is_utf8("\xC0\x80"));
  EXPECT_TRUE(base::is_utf8(""));
}

TEST(Json, SkipsWhatItIsNotAskedFor) {
  base::JsonReader json(R"( {"a": [1, {"b": [[], {}, "x\u00e9\ud83d\ude00"]}, -1.5e+7, true, null], "c": 7} )");
  std::string name;
  uint64_t number = 0;
  ASSERT_TRUE(json.open_object());
  ASSERT_TRUE(json.next_member(name));
  EXPECT_EQ(name, "a");
  EXPECT_TRUE(json.skip()) << json.reason();
  ASSERT_TRUE(json.next_member(name)) << json.reason();
  EXPECT_TRUE(json.integer(number));
  EXPECT_EQ(number, 7u);
  EXPECT_FALSE(json.next_member(name));
  EXPECT_TRUE(json.end());
  EXPECT_FALSE(json.failed());
}

}  // namespace
