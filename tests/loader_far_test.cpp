// Tests that a loader delivers from a far store what it delivers from local files, whatever the store does.
#include "data_set.h"
#include "far_store.h"
#include "loader_testing.h"

namespace {

using namespace loader_testing;
using std::chrono::milliseconds, std::chrono::seconds;

struct CloseSet {
  void operator()(l3_data_set* set) const { l3_data_close(set); }
};
using Set = std::unique_ptr<l3_data_set, CloseSet>;

class LoaderFar : public LoaderTest {
 protected:
  // Opens the folder of the test as a far store.
  Set open_far(std::shared_ptr<FarStore> store) {
    l3_data_set* opened = nullptr;
    l3_data_error error{};
    EXPECT_EQ(loader::open_data_set(std::move(store), "", l3_data_options_init(), &opened, &error), L3_OK)
        << l3::message(error);
    return Set(opened);
  }
  std::shared_ptr<FarStore> make_store() { return std::make_shared<FarStore>(folder_.string()); }

  static std::vector<std::vector<Unit>> batches_of(const l3_data_set& set, const l3_loader_options& options,
                                                   uint64_t epoch = 0, uint64_t position = 0) {
    Loader loader(set, options);
    EXPECT_EQ(l3_loader_start(loader.get(), epoch, position, nullptr), L3_OK);
    std::vector<std::vector<Unit>> batches;
    while (const Batch batch = loader.next()) {
      batches.emplace_back();
      for (uint32_t i = 0; i < batch.info().units; ++i) batches.back().push_back(unit_of(batch.info(), i));
    }
    return batches;
  }
};

TEST_F(LoaderFar, TheSameBatchesAsLocal) {
  draw_set({{40, 24}, {300, 400}, {500, 260}}, {L3_COLOUR_RGB, 8}, 47, 5);
  const auto store = make_store();
  const Set far = open_far(store);
  for (const l3_order order : {L3_ORDER_STORED, L3_ORDER_SHUFFLED, L3_ORDER_WINDOWS}) {
    for (const uint32_t world_size : {1u, 2u, 3u}) {
      std::multiset<int64_t> ids;
      for (uint32_t rank = 0; rank < world_size; ++rank) {
        l3_loader_options options = options_of(4);
        options.order = order;
        options.window = 2;
        options.rank = rank;
        options.world_size = world_size;
        options.last_batch = L3_LAST_BATCH_UNEVEN;
        options.crop = L3_CROP_RANDOM;
        options.crop_width = options.crop_height = 20;
        options.flip = 1;
        const auto found = batches_of(*far, options, 3);
        EXPECT_EQ(found, LoaderTest::batches_of(options, 3, 0));
        for (const auto& batch : found) {
          for (const Unit& unit : batch) ids.insert(unit.id);
        }
      }
      EXPECT_EQ(ids.size(), 47u);
      EXPECT_EQ(std::set<int64_t>(ids.begin(), ids.end()).size(), 47u);
    }
  }
}

TEST_F(LoaderFar, OpensWithOneRequestForEachShard) {
  draw_set({{8, 8}}, {L3_COLOUR_GRAY, 8}, 60, 30);
  const auto store = make_store();
  store->set_delay(30, 30);
  const auto begun = FarStore::Clock::now();
  const Set far = open_far(store);
  EXPECT_LT(FarStore::Clock::now() - begun, milliseconds(30 * 15));  // 31 requests, in two rounds
  EXPECT_EQ(store->counts().reads, 31u);
  EXPECT_EQ(store->counts().most_at_once, 30u);
}

TEST_F(LoaderFar, ReadsFurtherAheadWhileBatchesComeLate) {
  draw_set({{40, 24}}, {L3_COLOUR_GRAY, 8}, 240);
  const auto store = make_store();
  const Set far = open_far(store);
  store->set_delay(40, 40);
  store->reset_counts();
  l3_loader_options options = options_of(2);
  options.prefetch = 2;
  const auto begun = FarStore::Clock::now();
  EXPECT_EQ(batches_of(*far, options), LoaderTest::batches_of(options, 0, 0));
  // One batch at a time would take 4.8 s, and `prefetch` batches at a time half of that.
  EXPECT_LT(FarStore::Clock::now() - begun, milliseconds(1200));
  EXPECT_GT(store->counts().most_at_once, 16u);
  EXPECT_EQ(store->counts().reads, 240u);
}

TEST_F(LoaderFar, EpochsFollowWithoutWaiting) {
  draw_set({{40, 24}}, {L3_COLOUR_GRAY, 8}, 24);
  const auto store = make_store();
  const Set far = open_far(store);
  l3_loader_options options = options_of(4);
  options.order = L3_ORDER_SHUFFLED;
  for (const l3_delivery delivery : {L3_DELIVERY_ORDERED, L3_DELIVERY_ANY}) {
    options.delivery = delivery;
    store->set_delay(0, 3);
    Loader loader(*far, options);
    std::map<uint64_t, std::vector<Unit>> expected;
    for (uint64_t epoch = 0; epoch < 8; ++epoch) expected[epoch] = units_of(options, epoch, 0);
    const auto take = [&](uint64_t epoch) {
      std::vector<Unit> units = loader.units();
      const auto by_id = [](const Unit& a, const Unit& b) { return a.id < b.id; };
      if (delivery == L3_DELIVERY_ANY) {
        std::sort(units.begin(), units.end(), by_id);
        std::sort(expected[epoch].begin(), expected[epoch].end(), by_id);
      }
      EXPECT_TRUE(units == expected[epoch]) << epoch;
    };
    for (uint64_t epoch = 0; epoch < 4; ++epoch) {
      if (epoch > 0) {
        ASSERT_EQ(l3_loader_start(loader.get(), epoch, 0, nullptr), L3_OK);
      }
      take(epoch);
    }
    // Batches of epoch 4 are on their way. They arrive although the store has become slow meanwhile.
    std::this_thread::sleep_for(milliseconds(50));
    store->set_delay(300, 300);
    const auto begun = FarStore::Clock::now();
    ASSERT_EQ(l3_loader_start(loader.get(), 4, 0, nullptr), L3_OK);
    EXPECT_TRUE(loader.next());
    EXPECT_LT(FarStore::Clock::now() - begun, milliseconds(250));
    store->set_delay(0, 3);
    // Other epochs and positions than the next one.
    for (const uint64_t epoch : {7u, 6u, 7u}) {
      ASSERT_EQ(l3_loader_start(loader.get(), epoch, 0, nullptr), L3_OK);
      take(epoch);
    }
    ASSERT_EQ(l3_loader_start(loader.get(), 8, 8, nullptr), L3_OK);
    EXPECT_EQ(loader.units().size(), 16u);
  }
}

TEST_F(LoaderFar, BytesInFlightAreBounded) {
  draw_set({{90, 90}}, {L3_COLOUR_RGB, 8}, 60);
  const auto store = make_store();
  const Set far = open_far(store);
  store->set_delay(5, 15);
  store->reset_counts();
  l3_loader_options options = options_of(3);
  uint64_t largest = 0;
  for (uint64_t i = 0; i < 60; ++i) largest = std::max(largest, set_->sample(i).size);
  options.max_bytes_in_flight = 5 * largest;
  EXPECT_EQ(batches_of(*far, options), LoaderTest::batches_of(options, 0, 0));
  EXPECT_LE(store->counts().most_bytes_at_once, options.max_bytes_in_flight + largest);
  EXPECT_GE(store->counts().most_at_once, 4u);
}

TEST_F(LoaderFar, CropsReadInParts) {
  draw_set({{900, 700}}, {L3_COLOUR_RGB, 8}, 6);
  const auto store = make_store();
  const Set far = open_far(store);
  l3_loader_options options = options_of(2);
  options.crop = L3_CROP_RANDOM;
  options.crop_width = options.crop_height = 64;
  store->reset_counts();
  EXPECT_EQ(batches_of(*far, options), LoaderTest::batches_of(options, 0, 0));
  uint64_t whole = 0;
  for (uint64_t i = 0; i < 6; ++i) whole += set_->sample(i).size;
  EXPECT_LT(store->counts().bytes, whole / 2);
}

TEST_F(LoaderFar, AFaultIsReportedAndTheEpochGoesOn) {
  draw_set({{40, 24}}, {L3_COLOUR_GRAY, 8}, 20);
  const auto store = make_store();
  const Set far = open_far(store);
  store->refuse = [](const loader::Read& read) {
    if (read.sample != 3) return loader::StoreFault{};
    return loader::StoreFault{L3_ERROR_FILE, ETIMEDOUT, L3_DATA_NONE, "no answer within 30 s"};
  };
  l3_loader_options options = options_of(4);
  options.on_error = L3_ON_ERROR_SKIP;
  Loader loader(*far, options);
  EXPECT_EQ(loader.units().size(), 18u);  // two shards have a sample 3
  l3_failure failures[2];
  uint64_t count = 0;
  ASSERT_EQ(l3_loader_failures(loader.get(), failures, 2, &count), L3_OK);
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(failures[0].error.system_error, ETIMEDOUT);
  EXPECT_STREQ(failures[0].error.reason, "no answer within 30 s");
  EXPECT_NE(std::string(failures[0].error.file).find("shard-0.l3s"), std::string::npos);
}

TEST_F(LoaderFar, BatchesOfWhichNothingArrives) {
  draw_set({{40, 24}}, {L3_COLOUR_GRAY, 8}, 12);
  const auto store = make_store();
  const Set far = open_far(store);
  store->refuse = [](const loader::Read&) { return loader::StoreFault{L3_ERROR_FILE, EIO, L3_DATA_NONE, "broken"}; };
  l3_loader_options options = options_of(4);
  options.on_error = L3_ON_ERROR_ZERO;
  for (const Unit& unit : [&] {
         Loader loader(*far, options);
         return loader.units();
       }()) {
    EXPECT_EQ(unit.label, -1);
    EXPECT_EQ(unit.bytes, Bytes(40 * 24));
  }
  options.on_error = L3_ON_ERROR_SKIP;
  EXPECT_TRUE(batches_of(*far, options).empty());
}

TEST_F(LoaderFar, WhatArrivesDamagedIsReadOnceMore) {
  draw_set({{40, 24}, {300, 300}}, {L3_COLOUR_GRAY, 8}, 20);
  const auto store = make_store();
  const Set far = open_far(store);
  std::map<uint64_t, int> seen;
  uint64_t always = UINT64_MAX;
  store->change = [&](loader::Read& read) {  // only the store's thread calls this
    if (read.sample == loader::kNoSample) return;
    const uint64_t number = read.sample_offset;
    if (seen[number]++ == 0 || (read.sample == always && read.size > 0)) read.to[read.size / 2] ^= 0x40;
  };
  l3_loader_options options = options_of(4);
  options.crop = L3_CROP_CENTRE;
  options.crop_width = options.crop_height = 20;
  EXPECT_EQ(batches_of(*far, options), LoaderTest::batches_of(options, 0, 0));
  std::vector<uint8_t> bytes(set_->sample(1).size);
  seen.clear();
  EXPECT_EQ(l3_data_read(far.get(), 1, bytes.data(), bytes.size(), nullptr), L3_OK);

  always = 2;
  options.on_error = L3_ON_ERROR_SKIP;
  Loader loader(*far, options);
  EXPECT_EQ(loader.units().size(), 18u);
  l3_data_error error{};
  bytes.resize(set_->sample(2).size);
  EXPECT_EQ(l3_data_read(far.get(), 2, bytes.data(), bytes.size(), &error), L3_ERROR_CORRUPT);
}

TEST_F(LoaderFar, ClosingAndStartingDoNotWaitForAnswers) {
  draw_set({{40, 24}}, {L3_COLOUR_GRAY, 8}, 40);
  const auto store = make_store();
  const Set far = open_far(store);
  const l3_loader_options options = options_of(4);
  const auto begun = FarStore::Clock::now();
  {
    Loader loader(*far, options);
    ASSERT_TRUE(loader.next());
    store->set_delay(600000, 600000);
    ASSERT_EQ(l3_loader_start(loader.get(), 1, 0, nullptr), L3_OK);
    l3_next next = L3_NEXT_END;
    l3_batch* batch = nullptr;
    ASSERT_EQ(l3_loader_next(loader.get(), 50, &next, &batch, nullptr, nullptr), L3_OK);
    EXPECT_EQ(next, L3_NEXT_WAITING);
    store->set_delay(0, 3);
    ASSERT_EQ(l3_loader_start(loader.get(), 2, 8, nullptr), L3_OK);
    EXPECT_EQ(loader.units(), units_of(options, 2, 8));
    store->set_delay(600000, 600000);
    ASSERT_EQ(l3_loader_start(loader.get(), 3, 0, nullptr), L3_OK);
    ASSERT_EQ(l3_loader_next(loader.get(), 50, &next, &batch, nullptr, nullptr), L3_OK);
  }
  EXPECT_LT(FarStore::Clock::now() - begun, seconds(10));
  EXPECT_GT(store->counts().cancelled, 0u);
}

TEST_F(LoaderFar, ASlowFileDelaysOnlyItsOwnBatch) {
  draw_set({{40, 24}}, {L3_COLOUR_GRAY, 8}, 41);
  const auto store = make_store();
  const Set far = open_far(store);
  const auto expected = LoaderTest::batches_of(options_of(4), 5, 0);
  const uint64_t slow = set_->sample(5).offset;  // of the second batch
  store->delay = [&](const loader::Read& read) { return read.sample_offset == slow ? 200u : 2u; };
  l3_loader_options options = options_of(4);
  options.delivery = L3_DELIVERY_ANY;
  options.prefetch = 8;
  std::set<size_t> found;
  std::vector<size_t> numbers;
  std::vector<uint64_t> ahead(64);
  uint64_t position = 0;
  const auto take = [&](Loader& loader, size_t most) {
    for (size_t taken = 0; taken < most; ++taken) {
      const Batch batch = loader.next();
      if (!batch) return;
      std::vector<Unit> units;
      for (uint32_t i = 0; i < batch.info().units; ++i) units.push_back(unit_of(batch.info(), i));
      const size_t number = static_cast<size_t>(std::find(expected.begin(), expected.end(), units) - expected.begin());
      EXPECT_LT(number, expected.size());
      EXPECT_TRUE(found.insert(number).second) << number;
      numbers.push_back(number);
      position = batch.info().position;
    }
  };
  {
    Loader loader(*far, options);
    ASSERT_EQ(l3_loader_start(loader.get(), 5, 0, nullptr), L3_OK);
    take(loader, 6);
    EXPECT_EQ(position, 4u);  // the second batch is missing
    size_t count = 0;
    ASSERT_EQ(l3_loader_ahead(loader.get(), ahead.data(), ahead.size(), &count), L3_OK);
    ahead.resize(count);
    EXPECT_EQ(count, 5u);
  }
  Loader loader(*far, options);
  ASSERT_EQ(l3_loader_resume(loader.get(), 5, position, ahead.data(), ahead.size(), nullptr), L3_OK);
  take(loader, 100);
  EXPECT_EQ(found.size(), expected.size());
  EXPECT_EQ(position, 41u);
  EXPECT_EQ(std::find(numbers.begin(), numbers.begin() + 6, 1u), numbers.begin() + 6);
}

TEST_F(LoaderFar, RequestsAreKept) {
  draw_set({{40, 24}}, {L3_COLOUR_GRAY, 8}, 10);
  const auto store = make_store();
  const Set far = open_far(store);
  Loader loader(*far, options_of(5));
  EXPECT_EQ(loader.units().size(), 10u);
  l3_request requests[16];
  size_t count = 0;
  ASSERT_EQ(l3_loader_requests(loader.get(), requests, 16, &count), L3_OK);
  ASSERT_EQ(count, 10u);
  std::set<uint64_t> samples;
  for (size_t i = 0; i < count; ++i) {
    samples.insert(requests[i].sample);
    EXPECT_EQ(requests[i].bytes, set_->sample(requests[i].sample).size);
    EXPECT_EQ(requests[i].attempts, 1u);
    EXPECT_LE(requests[i].queued, requests[i].sent);
    EXPECT_LE(requests[i].sent, requests[i].finished);
  }
  EXPECT_EQ(samples.size(), 10u);
  const std::string trace = (folder_ / "trace.json").string();
  ASSERT_EQ(l3_loader_write_trace(loader.get(), trace.c_str(), nullptr), L3_OK);
  std::ifstream stream(trace);
  const std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  EXPECT_NE(text.find("\"name\":\"sample 7\""), std::string::npos);
  EXPECT_NE(text.find("first_byte_ms"), std::string::npos);
}

TEST_F(LoaderFar, SamplesKeptApart) {
  draw_set({{40, 24}}, {L3_COLOUR_GRAY, 8}, 12, 3);
  const auto store = make_store();
  store->is_apart = true;
  store->refuse = [](const loader::Read& read) {
    const bool is_allowed = read.from_end || (read.sample != loader::kNoSample && read.offset >= read.sample_offset &&
                                              read.offset + read.size <= read.sample_offset + read.sample_size);
    if (is_allowed) return loader::StoreFault{};
    return loader::StoreFault{L3_ERROR_UNSUPPORTED, 0, L3_DATA_NONE, "there is nothing between samples"};
  };
  const Set far = open_far(store);
  const l3_loader_options options = options_of(4);
  EXPECT_EQ(batches_of(*far, options), LoaderTest::batches_of(options, 0, 0));
  l3_data_error error{};
  for (uint64_t shard = 0; shard < 3; ++shard) {
    EXPECT_EQ(l3_data_verify_shard(far.get(), shard, &error), L3_OK) << l3::message(error);
  }
}

TEST_F(LoaderFar, ShardsThatIndexJsonDoesNotDescribe) {
  draw_set({{8, 8}}, {L3_COLOUR_GRAY, 8}, 9, 3);
  std::filesystem::remove(folder_ / "shard-1.l3s");
  const auto store = make_store();
  l3_data_set* opened = nullptr;
  l3_data_error error{};
  EXPECT_EQ(loader::open_data_set(store, "", l3_data_options_init(), &opened, &error), L3_ERROR_FILE);
  EXPECT_EQ(error.system_error, ENOENT);
  EXPECT_NE(std::string(error.file).find("shard-1.l3s"), std::string::npos);
  std::filesystem::copy_file(folder_ / "shard-0.l3s", folder_ / "shard-1.l3s");
  EXPECT_EQ(loader::open_data_set(store, "", l3_data_options_init(), &opened, &error), L3_ERROR_CORRUPT);
}

}  // namespace
