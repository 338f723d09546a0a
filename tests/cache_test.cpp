// Tests the cache of a data set: what it holds, that it answers, and that it never costs a sample.
#include <sys/wait.h>

#include <random>

#include "cache_folder.h"
#include "cache_plan.h"
#include "cache_store.h"
#include "data_set.h"
#include "far_store.h"
#include "loader/cache_sets.h"
#include "loader_testing.h"

namespace {

using namespace loader_testing;
using loader::CachePlace, loader::CachePlan, loader::CacheStore, loader::PlaceSize, loader::Read, loader::StoreFault;

struct CloseSet {
  void operator()(l3_data_set* set) const { l3_data_close(set); }
};
using Set = std::unique_ptr<l3_data_set, CloseSet>;

// A place of tests: a far store over a folder, which does what the test wants.
class TestPlace final : public CachePlace {
 public:
  explicit TestPlace(std::string folder)
      : folder_(std::move(folder)), store_(std::make_unique<FarStore>(folder_)), name_("test://") {}

  const std::string& name() const override { return name_; }
  FarStore& store() override { return *store_; }
  bool knows_what_it_has() const override { return false; }
  bool may_have(uint64_t) override { return is_up; }
  void direct(Read& read, const loader::Shard& shard, std::unique_ptr<loader::Object>& own) override {
    own = store_->open(std::to_string(shard.first_sample + read.sample));
    read.object = own.get();
    read.offset -= read.sample_offset;
    read.object_size = 0;
    read.sample = loader::kNoSample;
  }
  void failed(uint64_t, const StoreFault&) override { ++failures; }
  void succeeded() override {}
  bool may_keep() override { return is_up; }
  StoreFault keep(const loader::Shard&, uint64_t sample, uint64_t, std::span<const uint8_t> bytes) override {
    if (slow_keep_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(slow_keep_ms));
    if (refuses_keep) return {L3_ERROR_FILE, ENOSPC, L3_DATA_NONE, "full"};
    // Readers see all of it or nothing.
    const std::string path = folder_ + "/" + std::to_string(sample);
    const std::string temporary = path + "." + std::to_string(++written);
    std::ofstream(temporary, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    data_set_testing::fs::rename(temporary, path);
    return {};
  }
  void forget(uint64_t) override {}

  std::atomic<bool> is_up{true}, refuses_keep{false};
  std::atomic<uint32_t> slow_keep_ms{0};
  std::atomic<uint64_t> failures{0}, written{0};

 private:
  const std::string folder_;
  std::unique_ptr<FarStore> store_;
  const std::string name_;
};

class Cache : public LoaderTest {
 protected:
  void SetUp() override {
    LoaderTest::SetUp();
    place_ = path("cache");
  }

  std::shared_ptr<FarStore> make_store() {
    auto store = std::make_shared<FarStore>(folder_.string());
    store->set_delay(0, 1);
    return store;
  }

  l3_status try_open(std::shared_ptr<loader::Store> store, const std::string& cache, Set& set, l3_data_error& error) {
    l3_data_options options = l3_data_options_init();
    options.cache = cache.c_str();
    l3_data_set* opened = nullptr;
    const l3_status status = loader::open_data_set(std::move(store), "", options, &opened, &error);
    set.reset(opened);
    return status;
  }
  Set open_cached(std::shared_ptr<loader::Store> store, const std::string& size) {
    Set set;
    l3_data_error error{};
    EXPECT_EQ(try_open(std::move(store), place_ + "=" + size, set, error), L3_OK) << l3::message(error);
    return set;
  }
  // Opens the data set with a place of the test.
  Set open_with(std::shared_ptr<FarStore> store, TestPlace*& place, double share) {
    Set set;
    l3_data_error error{};
    EXPECT_EQ(try_open(std::move(store), "", set, error), L3_OK);
    const PlaceSize size{"test://", 0, share};
    std::vector<std::unique_ptr<CachePlace>> places;
    data_set_testing::fs::create_directories(path("place"));
    auto own = std::make_unique<TestPlace>(path("place"));
    place = own.get();
    places.push_back(std::move(own));
    set->cache = std::make_shared<CacheStore>(set->store, CachePlan(set->shards, {&size, 1}), std::move(places));
    set->store = set->cache;
    for (const auto& shard : set->shards) {
      shard->object = std::make_unique<loader::CachedObject>(std::move(shard->object), shard.get());
    }
    return set;
  }

  static l3_data_cache_info info_of(const Set& set) {
    l3_data_cache_info info = l3_data_cache_info_init();
    EXPECT_EQ(l3_data_cache(set.get(), &info), L3_OK);
    return info;
  }
  static std::vector<Unit> epoch_of(const Set& set, const l3_loader_options& options, uint64_t epoch) {
    Loader loader(*set, options);
    EXPECT_EQ(l3_loader_start(loader.get(), epoch, 0, nullptr), L3_OK);
    return loader.units();
  }
  static l3_loader_options shuffled(uint32_t batch_size) {
    l3_loader_options options = options_of(batch_size);
    options.order = L3_ORDER_SHUFFLED;
    return options;
  }
  // 60 images of about 120 kB in three shards, so that each run has two samples.
  void draw_large(size_t count = 60) {
    std::vector<std::vector<Item>> items(3);
    for (size_t i = 0; i < count; ++i) {
      const Drawing drawing = drawing::draw({300, 400}, {L3_COLOUR_GRAY, 8}, Pattern::noise, i + 1);
      items[i * 3 / count].push_back({"image " + std::to_string(i), encode(drawing)});
    }
    write_set(items);
  }
  // Changes what the cache holds of a sample, in the middle or from a byte on.
  void damage_cached(const Set& set, uint64_t sample, uint64_t at = 0) {
    l3_data_sample told = l3_data_sample_init();
    ASSERT_EQ(l3_data_get(set.get(), sample, &told), L3_OK);
    std::vector<loader::CachedSet> sets;
    ASSERT_EQ(loader::list_cached_sets(place_, sets), 0);
    ASSERT_EQ(sets.size(), 1u);
    std::fstream file(sets[0].folder + "/shard-" + std::to_string(told.shard) + ".l3s",
                      std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(told.offset + (at > 0 ? at : told.size / 2)));
    file.write("damage, damage, damage", 22);
    ASSERT_TRUE(file.good());
  }

  std::string place_;
};

TEST(CachePlaces, AreReadFromText) {
  std::vector<PlaceSize> places;
  EXPECT_EQ(loader::parse_places("/a=b/c=500GB,redis://x:1/y=12.5%,z=7", places), "");
  ASSERT_EQ(places.size(), 3u);
  EXPECT_EQ(places[0].where, "/a=b/c");
  EXPECT_EQ(places[0].bytes, 500'000'000'000u);
  EXPECT_EQ(places[1].where, "redis://x:1/y");
  EXPECT_EQ(places[1].share, 0.125);
  EXPECT_EQ(places[2].bytes, 7u);
  EXPECT_EQ(loader::parse_places("", places), "");
  EXPECT_TRUE(places.empty());
  for (const char* wrong : {"/a", "=1GB", "/a=", "/a=x", "/a=-1", "/a=1XB", "/a=101%", "/a=0%", "/a=1GB,/a=2GB", ",",
                            "/a=1e30TB", "/a=nan", "/a=inf", "/a=1 GB", "/a=99999999999TB", "/a=1GB,,/b=1GB"}) {
    EXPECT_NE(loader::parse_places(wrong, places), "") << wrong;
  }
}

TEST_F(Cache, HoldsAFixedPart) {
  draw_large();
  Set set;
  l3_data_error error{};
  ASSERT_EQ(try_open(make_store(), "", set, error), L3_OK);
  const auto samples_at = [&](const CachePlan& plan, uint8_t place) {
    std::set<uint64_t> samples;
    for (uint64_t i = 0; i < plan.samples(); ++i) {
      if (plan.place_of(i) == place) samples.insert(i);
    }
    return samples;
  };
  std::set<uint64_t> before;
  for (uint64_t size = 0; size < 9'000'000; size += 500'000) {
    const std::vector<PlaceSize> sizes{{"a", size, 0}};
    const CachePlan plan(set->shards, sizes);
    const std::set<uint64_t> now = samples_at(plan, 0);
    EXPECT_LE(plan.part(0).bytes, size);
    EXPECT_EQ(now.size(), plan.part(0).samples);
    EXPECT_TRUE(std::includes(now.begin(), now.end(), before.begin(), before.end()));
    before = now;
  }
  EXPECT_EQ(before.size(), 60u);

  const std::vector<PlaceSize> three{{"a", 0, 0.33}, {"b", 0, 0.33}, {"c", 0, 0.34}};
  const CachePlan plan(set->shards, three);
  size_t all = 0;
  for (uint8_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(static_cast<double>(samples_at(plan, i).size()), 20, 4);  // a place takes whole runs
    all += samples_at(plan, i).size();
  }
  EXPECT_EQ(all, 60u);
  EXPECT_EQ(plan.data_set(), CachePlan(set->shards, {}).data_set());
}

TEST_F(Cache, HitsAsOftenAsItHolds) {
  draw_large();
  for (const l3_order order : {L3_ORDER_SHUFFLED, L3_ORDER_WINDOWS, L3_ORDER_STORED}) {
    data_set_testing::fs::remove_all(place_);
    const auto store = make_store();
    const Set set = open_cached(store, "50%");
    const uint64_t samples = info_of(set).samples;
    EXPECT_NEAR(static_cast<double>(samples), 30, 2);
    l3_loader_options options = options_of(8);
    options.order = order;
    options.window = 1;
    for (uint64_t epoch = 0; epoch < 3; ++epoch) {
      store->reset_counts();
      EXPECT_EQ(epoch_of(set, options, epoch), units_of(options, epoch, 0));
      EXPECT_EQ(store->counts().reads, epoch == 0 ? 60 : 60 - samples) << epoch;
      if (epoch > 0) continue;
      for (int i = 0; i < 1000 && info_of(set).kept < samples; ++i) usleep(2000);  // what is written behind
    }
    const l3_data_cache_info info = info_of(set);
    EXPECT_EQ(info.hits, 2 * samples);
    EXPECT_EQ(info.misses, samples);
    EXPECT_EQ(info.others, 3 * (60 - samples));
    EXPECT_EQ(info.kept, samples);
    EXPECT_EQ(info.damaged + info.failures, 0u);
    for (uint64_t i = 0; i < 60; ++i) EXPECT_NE(l3_data_is_cached(set.get(), i), L3_CACHED_NOT_YET);
  }
}

TEST_F(Cache, CropsAreReadFromIt) {
  draw_set({{300, 400}, {500, 260}, {90, 70}}, {L3_COLOUR_RGB, 8}, 30, 3);
  const auto store = make_store();
  const Set set = open_cached(store, "100%");
  EXPECT_EQ(info_of(set).samples, 30u);
  l3_loader_options options = shuffled(4);
  options.crop = L3_CROP_RANDOM;
  options.crop_width = options.crop_height = 50;
  options.flip = 1;
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    store->reset_counts();
    EXPECT_EQ(epoch_of(set, options, epoch), units_of(options, epoch, 0));
    EXPECT_EQ(store->counts().reads, epoch == 0 ? 30u : 0u);
  }
}

TEST_F(Cache, SurvivesAndIsShared) {
  draw_large();
  {
    const Set set = open_cached(make_store(), "100%");
    (void)epoch_of(set, shuffled(8), 0);
  }
  // Another process would do the same: nothing is kept in memory.
  const auto store = make_store();
  const Set set = open_cached(store, "100%"), other = open_cached(store, "100%");
  store->reset_counts();
  EXPECT_EQ(epoch_of(set, shuffled(8), 1), units_of(shuffled(8), 1, 0));
  EXPECT_EQ(store->counts().reads, 0u);
  // What one of them writes, the other one sees.
  data_set_testing::fs::remove_all(place_);
  const Set first = open_cached(store, "100%"), second = open_cached(store, "100%");
  (void)epoch_of(first, shuffled(8), 0);
  for (int i = 0; i < 1000 && info_of(first).kept < 60; ++i) usleep(2000);
  store->reset_counts();
  (void)epoch_of(second, shuffled(8), 0);
  EXPECT_EQ(store->counts().reads, 0u);
  // Removed while both have it open.
  std::vector<loader::CachedSet> sets;
  ASSERT_EQ(loader::list_cached_sets(place_, sets), 0);
  ASSERT_EQ(sets.size(), 1u);
  EXPECT_EQ(sets[0].present, 60u);
  EXPECT_EQ(sets[0].samples, 60u);
  EXPECT_EQ(sets[0].problem, "");
  EXPECT_EQ(loader::remove_cached_set(sets[0]), 0);
  EXPECT_FALSE(data_set_testing::fs::exists(sets[0].folder));
  EXPECT_EQ(epoch_of(second, shuffled(8), 2), units_of(shuffled(8), 2, 0));
}

TEST_F(Cache, MendsWhatIsDamaged) {
  draw_large();
  const auto store = make_store();
  const Set set = open_cached(store, "100%");
  (void)epoch_of(set, shuffled(8), 0);
  for (int i = 0; i < 1000 && info_of(set).kept < 60; ++i) usleep(2000);
  for (const uint64_t sample : {3u, 17u, 59u}) damage_cached(set, sample);
  store->reset_counts();
  EXPECT_EQ(epoch_of(set, shuffled(8), 1), units_of(shuffled(8), 1, 0));
  EXPECT_EQ(store->counts().reads, 3u);
  EXPECT_EQ(info_of(set).damaged, 3u);
  for (int i = 0; i < 1000 && info_of(set).kept < 63; ++i) usleep(2000);
  // The head of a file, of which only a part is read.
  l3_loader_options crops = shuffled(8);
  crops.crop = L3_CROP_RANDOM;
  crops.crop_width = crops.crop_height = 50;
  for (const uint64_t sample : {4u, 44u}) damage_cached(set, sample, 20);
  EXPECT_EQ(epoch_of(set, crops, 1), units_of(crops, 1, 0));
  EXPECT_EQ(info_of(set).damaged, 5u);
  for (int i = 0; i < 1000 && info_of(set).kept < 65; ++i) usleep(2000);
  // Reading a sample verifies it, too.
  damage_cached(set, 5);
  Bytes bytes(set_->sample(5).size);
  store->reset_counts();
  EXPECT_EQ(l3_data_read(set.get(), 5, bytes.data(), bytes.size(), nullptr), L3_OK);
  EXPECT_EQ(bytes, *set_->read(5));
  EXPECT_EQ(store->counts().reads, 1u);
  // Files that became shorter.
  std::vector<loader::CachedSet> sets;
  ASSERT_EQ(loader::list_cached_sets(place_, sets), 0);
  data_set_testing::fs::resize_file(sets[0].folder + "/shard-1.l3s", 5000);
  EXPECT_EQ(epoch_of(set, shuffled(8), 2), units_of(shuffled(8), 2, 0));
  data_set_testing::fs::resize_file(sets[0].folder + "/present", 7);
  const Set again = open_cached(store, "100%");
  EXPECT_EQ(epoch_of(again, shuffled(8), 3), units_of(shuffled(8), 3, 0));
  std::ofstream(sets[0].folder + "/about.json") << "{\"version\":";
  const Set third = open_cached(store, "100%");
  EXPECT_EQ(epoch_of(third, shuffled(8), 4), units_of(shuffled(8), 4, 0));
}

TEST_F(Cache, WhatTheStoreHasDamagedIsNotKept) {
  draw_large();
  const auto store = make_store();
  store->change = [](Read& read) {
    if (read.sample == 4 && read.size > 200) read.to[200] ^= 1;
  };
  const Set set = open_cached(store, "100%");
  l3_loader_options options = shuffled(8);
  options.on_error = L3_ON_ERROR_SKIP;
  EXPECT_EQ(epoch_of(set, options, 0).size(), 57u);  // one in each shard
  store->change = nullptr;
  EXPECT_EQ(epoch_of(set, options, 1), units_of(options, 1, 0));
  for (int i = 0; i < 1000 && info_of(set).kept < 60; ++i) usleep(2000);
  EXPECT_EQ(info_of(set).kept, 60u);
}

TEST_F(Cache, OtherSizesAreRefused) {
  draw_large();
  const auto store = make_store();
  (void)open_cached(store, "50%");
  Set set;
  l3_data_error error{};
  EXPECT_EQ(try_open(store, place_ + "=20%", set, error), L3_ERROR_ARGUMENT);
  EXPECT_EQ(std::string(error.file), place_);
  EXPECT_NE(std::string(error.reason).find("l3 cache clear"), std::string::npos);
  EXPECT_EQ(try_open(store, path("other") + "=10%," + place_ + "=80%", set, error), L3_ERROR_ARGUMENT);
  EXPECT_EQ(try_open(store, place_ + "=80%", set, error), L3_OK);  // what it holds stays
  EXPECT_EQ(try_open(store, place_ + "=50%", set, error), L3_ERROR_ARGUMENT);
  EXPECT_EQ(try_open(store, path("index.json") + "/x=50%", set, error), L3_ERROR_FILE);
  EXPECT_EQ(try_open(store, "nowhere", set, error), L3_ERROR_ARGUMENT);
  EXPECT_EQ(try_open(store, "ftp://x=1GB", set, error), L3_ERROR_ARGUMENT);
}

TEST_F(Cache, PartsOfOtherFilesComeFromTheStore) {
  std::vector<std::vector<Item>> items(1);
  items[0].push_back({"text", Bytes(100'000, 7), L3_DATA_BYTES});
  items[0].push_back({"nothing", {}, L3_DATA_BYTES});
  write_set(items);
  const auto store = make_store();
  const Set set = open_cached(store, "100%");
  Bytes bytes(100'000);
  EXPECT_EQ(l3_data_read(set.get(), 0, bytes.data(), bytes.size(), nullptr), L3_OK);
  EXPECT_EQ(l3_data_read(set.get(), 1, bytes.data(), bytes.size(), nullptr), L3_OK);
  EXPECT_EQ(l3_data_is_cached(set.get(), 0), L3_CACHED);
  damage_cached(set, 0);
  EXPECT_EQ(l3_data_read_part(set.get(), 0, 40'000, bytes.data(), 20'000, nullptr), L3_OK);
  EXPECT_EQ(bytes, Bytes(100'000, 7));
  EXPECT_EQ(l3_data_read(set.get(), 0, bytes.data(), bytes.size(), nullptr), L3_OK);
  EXPECT_EQ(bytes, Bytes(100'000, 7));
  EXPECT_EQ(info_of(set).damaged, 1u);
  EXPECT_EQ(l3_data_is_cached(set.get(), 99), L3_CACHED_NEVER);
  EXPECT_EQ(l3_data_is_cached(nullptr, 0), L3_CACHED_NEVER);
}

TEST_F(Cache, NearStoresToo) {
  draw_large(30);
  const std::string spec = place_ + "=100%";
  l3_data_options options = l3_data_options_init();
  options.cache = spec.c_str();
  for (const l3_reading reading : {L3_READING_AUTO, L3_READING_THREADS}) {
    l3_data_set* opened = nullptr;
    ASSERT_EQ(l3_data_open(folder_.c_str(), &options, &opened, nullptr), L3_OK);
    const Set set(opened);
    l3_loader_options loads = shuffled(8);
    loads.reading = reading;
    for (uint64_t epoch = 0; epoch < 3; ++epoch) EXPECT_EQ(epoch_of(set, loads, epoch), units_of(loads, epoch, 0));
    EXPECT_GE(info_of(set).hits, 60u);
  }
}

TEST_F(Cache, AChildHasACacheOfItsOwn) {
  draw_large(30);
  const auto store = make_store();
  const Set set = open_cached(std::shared_ptr<loader::Store>(loader::make_local_store(folder_.string(), 0)), "100%");
  (void)epoch_of(set, shuffled(8), 0);
  const pid_t child = fork();
  if (child == 0) {
    l3_loader* loader = nullptr;
    const l3_loader_options options = shuffled(8);
    bool is_right = l3_loader_open(set.get(), &options, &loader, nullptr) == L3_OK;
    for (uint64_t epoch = 0; epoch < 2 && is_right; ++epoch) {
      l3_next next = L3_NEXT_WAITING;
      l3_batch* batch = nullptr;
      is_right = l3_loader_start(loader, epoch, 0, nullptr) == L3_OK;
      while (is_right && next != L3_NEXT_END) {
        is_right = l3_loader_next(loader, UINT32_MAX, &next, &batch, nullptr, nullptr) == L3_OK;
        l3_batch_release(batch, nullptr);
      }
    }
    _exit(is_right ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(epoch_of(set, shuffled(8), 1), units_of(shuffled(8), 1, 0));
}

// ----------------------------------------------------------------------------------------------- places that fail

TEST_F(Cache, APlaceThatFailsCostsNoSample) {
  draw_large();
  const auto store = make_store();
  TestPlace* place = nullptr;
  const Set set = open_with(store, place, 1.0);
  std::minstd_rand dice(5);
  std::mutex mutex;
  const auto roll = [&](uint32_t sides) {
    const std::lock_guard lock(mutex);
    return static_cast<uint32_t>(dice()) % sides;
  };
  place->store().refuse = [&](const Read&) -> StoreFault {
    switch (roll(8)) {
      case 0: return {L3_ERROR_FILE, EIO, L3_DATA_NONE, "the disk is damaged"};
      case 1: return {L3_ERROR_FILE, ENOENT, L3_DATA_NONE, "no such key"};
      case 2: return {L3_ERROR_TRUNCATED, 0, 7, "shorter"};
      case 3: return {L3_ERROR_FILE, ETIMEDOUT, L3_DATA_NONE, "silent"};
      default: return {};
    }
  };
  place->store().change = [&](Read& read) {
    if (roll(4) == 0) read.to[read.size / 2] ^= 0x40;
  };
  l3_loader_options options = shuffled(8);
  for (uint64_t epoch = 0; epoch < 4; ++epoch) {
    place->refuses_keep = epoch == 1;
    EXPECT_EQ(epoch_of(set, options, epoch), units_of(options, epoch, 0));
    options.crop = L3_CROP_RANDOM;
    options.crop_width = options.crop_height = 50;
    EXPECT_EQ(epoch_of(set, options, epoch), units_of(options, epoch, 0));
    options.crop = L3_CROP_NONE;
  }
  const l3_data_cache_info info = info_of(set);
  EXPECT_GT(info.hits, 60u);
  EXPECT_GT(info.misses, 60u);
  EXPECT_GT(info.failures, 10u);
  EXPECT_GT(info.damaged, 10u);
  EXPECT_EQ(std::string(info.last_failure.file), "test://");
  // Down: only the store is asked.
  place->is_up = false;
  const uint64_t reads = place->store().counts().reads;
  EXPECT_EQ(epoch_of(set, options, 9), units_of(options, 9, 0));
  EXPECT_EQ(place->store().counts().reads, reads);
}

TEST_F(Cache, APlaceIsAskedAndFilled) {
  draw_large();
  const auto store = make_store();
  TestPlace* place = nullptr;
  const Set set = open_with(store, place, 0.5);
  const uint64_t samples = info_of(set).samples;
  (void)epoch_of(set, shuffled(8), 0);
  for (int i = 0; i < 1000 && info_of(set).kept < samples; ++i) usleep(2000);
  store->reset_counts();
  place->store().reset_counts();
  EXPECT_EQ(epoch_of(set, shuffled(8), 1), units_of(shuffled(8), 1, 0));
  EXPECT_EQ(store->counts().reads, 60 - samples);
  EXPECT_EQ(place->store().counts().reads, samples);
  EXPECT_EQ(info_of(set).failures, 0u);
}

TEST_F(Cache, MayBeStoppedAtAnyTime) {
  draw_large();
  const auto store = make_store();
  TestPlace* place = nullptr;
  const Set set = open_with(store, place, 0.8);
  place->slow_keep_ms = 1;
  for (uint32_t i = 0; i < 40; ++i) {
    Loader loader(*set, shuffled(4));
    for (uint32_t batches = 0; batches < i % 7; ++batches) (void)loader.next();
    EXPECT_EQ(l3_loader_start(loader.get(), i, 0, nullptr), L3_OK);
    (void)loader.next();
  }
  EXPECT_EQ(epoch_of(set, shuffled(8), 1), units_of(shuffled(8), 1, 0));
}

TEST_F(Cache, MemoryForWhatIsWrittenIsBounded) {
  std::atomic<uint64_t> written{0};
  loader::CacheKeeper keeper([&](const loader::Keepsake&) {
    usleep(30'000);
    ++written;
  });
  data_set_testing::fs::create_directories(path("place"));
  TestPlace place(path("place"));
  std::atomic<uint64_t> taken{0};
  constexpr uint64_t kSize = 20 << 20;
  std::thread taker([&] {
    for (uint64_t i = 0; i < 6; ++i) {
      keeper.take_room(kSize);
      ++taken;
    }
  });
  while (taken < 3) usleep(1000);
  usleep(20'000);
  EXPECT_EQ(taken, 3u);  // of 64 MiB
  loader::Keepsake sample;
  sample.place = &place;
  sample.sample = 11;
  sample.offset = 4096;
  sample.size = kSize;
  sample.bytes = loader::Bytes(kSize);
  std::fill_n(sample.bytes.data(), kSize, uint8_t{5});
  sample.check = base::crc32({sample.bytes.data(), kSize});
  keeper.add(std::move(sample));
  uint8_t part[3] = {};
  EXPECT_TRUE(keeper.copy(place, 11, 4096 + 77, part));
  EXPECT_EQ(part[2], 5);
  EXPECT_FALSE(keeper.copy(place, 12, 4096, part));
  while (taken < 4) usleep(1000);
  keeper.return_room(kSize);
  keeper.return_room(kSize);
  taker.join();
  EXPECT_EQ(taken, 6u);
  for (int i = 0; i < 3; ++i) keeper.return_room(kSize);
}

}  // namespace
