// Loaders that share batches, here in one process: who prepares what, and what happens when one is late, lags, ends,
// has other options, or is no loader at all. python/tests/test_share.py has them in processes.
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "loader_testing.h"
#include "share_socket.h"

namespace {

using namespace loader_testing;
using namespace std::chrono_literals;

class SharedLoaders : public LoaderTest {
 protected:
  l3_loader_options shared(uint32_t batch_size, uint32_t jobs, uint32_t timeout_ms = 60000) {
    l3_loader_options options = options_of(batch_size);
    options.order = L3_ORDER_SHUFFLED;
    options.threads = 2;
    options.share = name_.c_str();
    options.jobs = jobs;
    options.share_timeout_ms = timeout_ms;
    return options;
  }
  static l3_loader_options alone(l3_loader_options options) {
    options.share = nullptr;
    return options;
  }
  // Runs `body` for each of `count` jobs in its own thread.
  template <typename Body>
  static void at_once(size_t count, const Body& body) {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < count; ++i) threads.emplace_back([&body, i] { body(i); });
    for (std::thread& thread : threads) thread.join();
  }
  std::vector<Unit> units_of_epoch(Loader& loader, uint64_t epoch, uint64_t position = 0) {
    EXPECT_EQ(l3_loader_start(loader.get(), epoch, position, nullptr), L3_OK);
    return loader.units();
  }
  std::string socket() const { return loader::socket_name(name_, 0, 1); }

  std::string name_ =
      "test " + std::to_string(getpid()) + " " + testing::UnitTest::GetInstance()->current_test_info()->name();
};

std::string reason_of(l3_loader* loader) {
  l3_next next = L3_NEXT_WAITING;
  l3_batch* batch = nullptr;
  l3_failure failure{};
  l3_status status = L3_OK;
  while (status == L3_OK && next == L3_NEXT_WAITING) {
    status = l3_loader_next(loader, 1000, &next, &batch, nullptr, &failure);
  }
  l3_batch_release(batch, nullptr);
  return status == L3_OK ? "" : failure.error.reason;
}

TEST_F(SharedLoaders, PrepareEachBatchOnce) {
  draw_set({{40, 24}}, {L3_COLOUR_RGB, 8}, 61);
  l3_loader_options options = shared(4, 4);
  options.flip = 1;
  options.crop = L3_CROP_RANDOM;
  options.crop_width = 17;
  options.crop_height = 9;
  constexpr uint64_t kEpochs = 3;
  std::vector<std::vector<Unit>> expected;
  for (uint64_t epoch = 0; epoch < kEpochs; ++epoch) expected.push_back(units_of(alone(options), epoch, 0));
  std::atomic<uint64_t> prepared{0}, from_others{0};
  std::vector<std::unique_ptr<Loader>> loaders;
  for (size_t i = 0; i < 4; ++i) loaders.push_back(std::make_unique<Loader>(*set(), options));
  at_once(4, [&](size_t i) {
    for (uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
      EXPECT_EQ(units_of_epoch(*loaders[i], epoch), expected[epoch]) << "job " << i << ", epoch " << epoch;
      if (epoch == 0) {
        EXPECT_EQ(loaders[i]->info().jobs, 4u);
      }
    }
    const l3_loader_info info = loaders[i]->info();
    EXPECT_EQ(info.prepared_alone, 0u);
    prepared += info.prepared_for_all;
    from_others += info.from_other_jobs;
    loaders[i].reset();
  });
  EXPECT_EQ(prepared, 16 * kEpochs);
  EXPECT_EQ(from_others, 3 * 16 * kEpochs);
}

// An evaluation runs the same epoch again and again.
TEST_F(SharedLoaders, ShareAnEpochAgain) {
  draw_set({{20, 20}}, {L3_COLOUR_GRAY, 8}, 40);
  const l3_loader_options options = shared(4, 2);
  const std::vector<Unit> expected = units_of(alone(options), 0, 0);
  std::atomic<uint64_t> prepared{0};
  std::vector<std::unique_ptr<Loader>> loaders;
  for (size_t i = 0; i < 2; ++i) loaders.push_back(std::make_unique<Loader>(*set(), options));
  at_once(2, [&](size_t i) {
    for (int again = 0; again < 4; ++again) {
      if (i == 1) std::this_thread::sleep_for(30ms);
      EXPECT_EQ(units_of_epoch(*loaders[i], 0), expected);
    }
    EXPECT_EQ(loaders[i]->info().prepared_alone, 0u);
    prepared += loaders[i]->info().prepared_for_all;
  });
  EXPECT_EQ(prepared, 4u * 10);
}

TEST_F(SharedLoaders, WaitForOneThatStartsLate) {
  draw_set({{20, 20}}, {L3_COLOUR_GRAY, 8}, 60);
  const l3_loader_options options = shared(4, 2);
  const std::vector<Unit> expected = units_of(alone(options), 0, 0);
  at_once(2, [&](size_t i) {
    if (i == 1) std::this_thread::sleep_for(400ms);
    Loader loader(*set(), options);
    EXPECT_EQ(loader.units(), expected);
    EXPECT_EQ(loader.info().prepared_alone, 0u);
  });
}

TEST_F(SharedLoaders, GoOnIfSomeNeverStart) {
  draw_set({{20, 20}}, {L3_COLOUR_GRAY, 8}, 60);
  const l3_loader_options options = shared(4, 4, 1500);
  const std::vector<Unit> expected = units_of(alone(options), 0, 0);
  std::atomic<uint64_t> prepared{0};
  at_once(2, [&](size_t) {
    Loader loader(*set(), options);
    EXPECT_EQ(loader.units(), expected);
    prepared += loader.info().prepared_for_all + loader.info().prepared_alone;
  });
  EXPECT_EQ(prepared, 15u);
}

TEST_F(SharedLoaders, NameTheOptionThatDiffers) {
  draw_set({{40, 24}}, {L3_COLOUR_RGB, 8}, 20);
  const l3_loader_options options = shared(4, 2, 2000);
  Loader first(*set(), options);
  std::thread other([&] { (void)first.next(); });
  std::this_thread::sleep_for(100ms);
  const auto refusal = [&](const auto& change) {
    l3_loader_options changed = options;
    l3_tensor_options tensor{};
    changed.tensors = &tensor;
    changed.tensor_count = 1;
    change(changed, tensor);
    Loader loader(*set(), changed);
    const std::string reason = reason_of(loader.get());
    EXPECT_EQ(reason_of(loader.get()), reason);
    const std::string beginning = "the jobs that share \"" + name_ + "\" have another ";
    EXPECT_EQ(reason.substr(0, beginning.size()), beginning);
    return reason.substr(std::min(reason.size(), beginning.size()));
  };
  using Options = l3_loader_options;
  using Wanted = l3_tensor_options;
  EXPECT_EQ(refusal([](Options& o, Wanted&) { o.seed = 8; }), "seed: 7, not 8");
  EXPECT_EQ(refusal([](Options& o, Wanted&) { o.batch_size = 5; }), "batch_size: 4, not 5");
  EXPECT_EQ(refusal([](Options& o, Wanted&) { o.order = L3_ORDER_STORED; }), "order: shuffled, not stored");
  EXPECT_EQ(refusal([](Options& o, Wanted&) { o.last_batch = L3_LAST_BATCH_DROP; }), "last_batch: even, not drop");
  EXPECT_EQ(refusal([](Options& o, Wanted&) { o.on_error = L3_ON_ERROR_SKIP; }), "on_error: fail, not skip");
  EXPECT_EQ(refusal([](Options& o, Wanted&) { o.flip = 1; }), "flip: 0, not 1");
  EXPECT_EQ(refusal([](Options& o, Wanted&) { o.limits.max_pixels = 10000; }), "max_pixels: 0, not 10000");
  EXPECT_EQ(refusal([](Options& o, Wanted& t) { o.crop = L3_CROP_NONE, t.layout = L3_LAYOUT_HWC; }).substr(0, 8),
            "tensor 0");
  const std::vector<uint64_t> groups{0, 1, 2, 3, 4};
  EXPECT_EQ(refusal([&](Options& o, Wanted&) { o.groups = groups.data(), o.group_count = 5; }).substr(0, 26),
            "choice of samples: all, no");
  other.join();
  draw_set({{40, 24}}, {L3_COLOUR_RGB, 8}, 22);
  // The set of `first` is closed now, but it is not used any more.
}

TEST_F(SharedLoaders, RefuseWhatCannotBeShared) {
  draw_set({{20, 20}}, {L3_COLOUR_GRAY, 8}, 4);
  const auto refusal = [&](const auto& change) -> std::string {
    l3_loader_options options = shared(2, 2);
    change(options);
    l3_loader* loader = nullptr;
    l3_data_error error{};
    EXPECT_EQ(l3_loader_open(set(), &options, &loader, &error), L3_ERROR_ARGUMENT);
    EXPECT_EQ(loader, nullptr);
    return error.reason;
  };
  EXPECT_NE(refusal([](auto& o) { o.device = L3_DEVICE_CUDA; }).find("cache"), std::string::npos);
  EXPECT_NE(refusal([](auto& o) { o.delivery = L3_DELIVERY_ANY; }).find("order"), std::string::npos);
  EXPECT_NE(refusal([](auto& o) { o.share = ""; }).find("1 to 64 bytes"), std::string::npos);
  const std::string longest(65, 'x');
  EXPECT_NE(refusal([&](auto& o) { o.share = longest.c_str(); }).find("1 to 64 bytes"), std::string::npos);
  EXPECT_NE(refusal([](auto& o) { o.jobs = 1025; }).find("1024"), std::string::npos);
}

// One ends, the leader too, and the others go on where they are.
TEST_F(SharedLoaders, GoOnWhenOneEnds) {
  draw_set({{30, 20}}, {L3_COLOUR_RGB, 8}, 120);
  const l3_loader_options options = shared(3, 3);
  const std::vector<Unit> expected = units_of(alone(options), 0, 0);
  for (const size_t leaver : {size_t{0}, size_t{1}}) {
    std::vector<std::unique_ptr<Loader>> loaders;
    for (size_t i = 0; i < 3; ++i) loaders.push_back(std::make_unique<Loader>(*set(), options));
    std::atomic<bool> has_leader{false};
    at_once(3, [&](size_t i) {
      while (i != 0 && !has_leader) std::this_thread::sleep_for(1ms);  // the first one leads
      if (i == leaver) {
        if (i == 0) {
          std::thread later([&] { std::this_thread::sleep_for(50ms), has_leader = true; });
          for (int batch = 0; batch < 13; ++batch) (void)loaders[i]->next();
          later.join();
        } else {
          for (int batch = 0; batch < 13; ++batch) (void)loaders[i]->next();
        }
        loaders[i].reset();
        return;
      }
      std::optional<std::thread> later;
      if (i == 0) later.emplace([&] { std::this_thread::sleep_for(50ms), has_leader = true; });
      EXPECT_EQ(loaders[i]->units(), expected) << "job " << i << " when " << leaver << " left";
      EXPECT_EQ(loaders[i]->info().prepared_alone, 0u);
      if (later) later->join();
      loaders[i].reset();
    });
  }
}

// A slow consumer slows the others down, but loses nothing and is not left behind. One that stops is, and goes on
// alone.
TEST_F(SharedLoaders, WaitForASlowOneAndLeaveAStoppedOneBehind) {
  draw_set({{20, 20}}, {L3_COLOUR_GRAY, 8}, 80);
  for (const bool stops : {false, true}) {
    const l3_loader_options options = shared(2, 2, stops ? 800 : 10000);
    const std::vector<Unit> first = units_of(alone(options), 0, 0), second = units_of(alone(options), 1, 0);
    std::vector<std::unique_ptr<Loader>> loaders;
    for (size_t i = 0; i < 2; ++i) loaders.push_back(std::make_unique<Loader>(*set(), options));
    std::atomic<bool> is_one_through{false};
    at_once(2, [&](size_t i) {
      std::vector<Unit> units;
      for (uint64_t number = 0;; ++number) {
        if (i == 1 && !stops) std::this_thread::sleep_for(2ms);
        while (i == 1 && stops && number == 5 && !is_one_through) std::this_thread::sleep_for(1ms);
        const Batch batch = loaders[i]->next();
        if (!batch) break;
        EXPECT_EQ(batch.info().number, number);
        for (uint32_t k = 0; k < batch.info().units; ++k) units.push_back(unit_of(batch.info(), k));
      }
      EXPECT_EQ(units, first);
      is_one_through = is_one_through || i == 0;
      // If one stops, it depends on the speed of the machine which of them is alone for how long.
      if (!stops) {
        EXPECT_EQ(loaders[i]->info().prepared_alone, 0u);
      }
      // Both are together again in the next epoch.
      const uint64_t before = loaders[i]->info().prepared_alone;
      EXPECT_EQ(units_of_epoch(*loaders[i], 1), second);
      if (!stops) {
        EXPECT_EQ(loaders[i]->info().prepared_alone, before);
      }
    });
  }
}

// What a job that was started again does: it is alone until the epoch ends.
TEST_F(SharedLoaders, ResumeInTheMiddleOfAnEpoch) {
  draw_set({{20, 20}}, {L3_COLOUR_GRAY, 8}, 90);
  const l3_loader_options options = shared(3, 2, 4000);
  const std::vector<Unit> all = units_of(alone(options), 2, 0), next = units_of(alone(options), 3, 0);
  Loader first(*set(), options);
  EXPECT_EQ(l3_loader_start(first.get(), 2, 0, nullptr), L3_OK);
  EXPECT_TRUE(first.next());  // it leads
  std::thread other;
  {
    std::optional<Loader> second(std::in_place, *set(), options);
    other = std::thread([&] {
      std::vector<Unit> units(all.begin(), all.begin() + 3);
      while (const Batch batch = first.next()) {
        std::this_thread::sleep_for(5ms);
        for (uint32_t k = 0; k < batch.info().units; ++k) units.push_back(unit_of(batch.info(), k));
      }
      EXPECT_EQ(units, all);
      EXPECT_EQ(units_of_epoch(first, 3), next);
    });
    EXPECT_EQ(l3_loader_start(second->get(), 2, 0, nullptr), L3_OK);
    for (int i = 0; i < 15; ++i) EXPECT_TRUE(second->next());
  }
  Loader again(*set(), options);
  EXPECT_EQ(units_of_epoch(again, 2, 9), std::vector<Unit>(all.begin() + 9, all.end()));
  EXPECT_EQ(units_of_epoch(again, 3), next);
  EXPECT_EQ(again.info().prepared_alone, 27u);
  other.join();
}

TEST_F(SharedLoaders, ShareFailuresToo) {
  draw_set({{32, 20}}, {L3_COLOUR_RGB, 8}, 30);
  damage(3);
  damage(17);
  for (const l3_on_error on_error : {L3_ON_ERROR_FAIL, L3_ON_ERROR_SKIP, L3_ON_ERROR_ZERO}) {
    l3_loader_options options = shared(4, 3);
    options.on_error = on_error;
    const auto run = [&](Loader& loader) {
      std::string seen;
      for (;;) {
        l3_next next = L3_NEXT_WAITING;
        l3_batch* made = nullptr;
        l3_failure failure{};
        uint64_t position = 0;
        const l3_status status = l3_loader_next(loader.get(), UINT32_MAX, &next, &made, &position, &failure);
        const Batch batch(made);
        seen += std::to_string(position) + ": ";
        if (status != L3_OK) seen += std::to_string(failure.sample) + failure.error.file + failure.error.reason;
        if (status == L3_OK && next == L3_NEXT_END) break;
        for (uint32_t i = 0; batch && i < batch.info().units; ++i) {
          const Unit unit = unit_of(batch.info(), i);
          seen += std::to_string(unit.id) + "/" + std::to_string(unit.label) + "/";
          seen.append(unit.bytes.begin(), unit.bytes.end());
        }
      }
      l3_failure failures[4];
      uint64_t count = 0;
      EXPECT_EQ(l3_loader_failures(loader.get(), failures, 4, &count), L3_OK);
      for (uint64_t i = 0; i < std::min<uint64_t>(count, 4); ++i) {
        seen += std::to_string(failures[i].sample) + " " + std::to_string(failures[i].error.offset) +
                failures[i].error.reason;
      }
      return seen;
    };
    Loader plain(*set(), alone(options));
    const std::string expected = run(plain);
    std::vector<std::unique_ptr<Loader>> loaders;
    for (size_t i = 0; i < 3; ++i) loaders.push_back(std::make_unique<Loader>(*set(), options));
    at_once(3, [&](size_t i) {
      EXPECT_TRUE(run(*loaders[i]) == expected) << "on_error " << on_error;
      EXPECT_EQ(loaders[i]->info().prepared_alone, 0u);
    });
  }
}

// Each rank has its own batches, which the ranks of the same number share.
TEST_F(SharedLoaders, MeetTheirOwnRank) {
  draw_set({{20, 20}}, {L3_COLOUR_GRAY, 8}, 50);
  std::vector<std::vector<Unit>> units(4);
  at_once(4, [&](size_t i) {
    l3_loader_options options = shared(4, 2);
    options.rank = i % 2;
    options.world_size = 2;
    Loader loader(*set(), options);
    units[i] = loader.units();
    EXPECT_EQ(loader.info().prepared_alone, 0u);
  });
  EXPECT_EQ(units[0], units[2]);
  EXPECT_EQ(units[1], units[3]);
  EXPECT_EQ(units[0].size() + units[1].size(), 50u);
}

TEST_F(SharedLoaders, CanBeInterruptedAndWaitNoLongerThanTold) {
  draw_set({{20, 20}}, {L3_COLOUR_GRAY, 8}, 80);
  Loader loader(*set(), shared(4, 2));
  // It takes what the leader prepares ahead, then it waits for the second job.
  const auto taken = [&](uint32_t milliseconds) {
    l3_next next = L3_NEXT_WAITING;
    l3_batch* batch = nullptr;
    EXPECT_EQ(l3_loader_next(loader.get(), milliseconds, &next, &batch, nullptr, nullptr), L3_OK);
    l3_batch_release(batch, nullptr);
    return next;
  };
  int batches = 0;
  while (taken(500) == L3_NEXT_BATCH) ++batches;
  EXPECT_EQ(batches, 6);  // twice `prefetch`
  l3_loader_interrupt(loader.get());
  EXPECT_EQ(taken(UINT32_MAX), L3_NEXT_WAITING);
  std::thread later([&] { std::this_thread::sleep_for(100ms), l3_loader_interrupt(loader.get()); });
  EXPECT_EQ(taken(UINT32_MAX), L3_NEXT_WAITING);
  later.join();
}

// ------------------------------------------------------------------------------------------------- hostile peers

// Connects to the leader as a stranger, and says something.
class Stranger {
 public:
  explicit Stranger(const std::string& name) {
    bool is_free = false, is_foreign = false;
    for (int i = 0; i < 200 && !socket_; ++i) {
      socket_ = loader::connect_to(name, is_free, is_foreign);
      if (!socket_) std::this_thread::sleep_for(10ms);
    }
    EXPECT_TRUE(static_cast<bool>(socket_));
  }
  bool say(const void* bytes, size_t size) { return loader::send_message(socket_, bytes, size); }
  // Whether the leader has closed the connection, after at most two seconds.
  bool is_refused() {
    loader::Greeting said;
    size_t size = 0;
    for (int i = 0; i < 200; ++i) {
      const loader::Received got = loader::receive_message(socket_, said, size);
      if (got == loader::Received::end) return true;
      if (got == loader::Received::nothing) std::this_thread::sleep_for(10ms);
    }
    return false;
  }
  bool receive(loader::Greeting& said, size_t& size) {
    for (int i = 0; i < 200; ++i) {
      const loader::Received got = loader::receive_message(socket_, said, size);
      if (got != loader::Received::nothing) return got == loader::Received::message;
      std::this_thread::sleep_for(10ms);
    }
    return false;
  }
  const loader::Descriptor& socket() const { return socket_; }

 private:
  loader::Descriptor socket_;
};

TEST_F(SharedLoaders, BearStrangers) {
  draw_set({{20, 20}}, {L3_COLOUR_GRAY, 8}, 80);
  const l3_loader_options options = shared(2, 2, 400);
  const std::vector<Unit> expected = units_of(alone(options), 0, 0);
  Loader first(*set(), options), second(*set(), options);
  std::thread leader([&] { EXPECT_EQ(first.units(), expected); });
  std::vector<std::unique_ptr<Stranger>> strangers;
  const auto meet = [&]() -> Stranger& { return *strangers.emplace_back(std::make_unique<Stranger>(socket())); };
  // Nonsense of many sizes.
  for (size_t size = 1; size <= sizeof(loader::Greeting) + 64; size = size * 3 / 2 + 1) {
    const std::vector<uint8_t> nonsense(size, static_cast<uint8_t>(size));
    Stranger& stranger = meet();
    EXPECT_TRUE(stranger.say(nonsense.data(), size));
    EXPECT_TRUE(stranger.is_refused()) << size;
  }
  // A hello with other terms, and one whose terms do not end.
  loader::Greeting hello, welcome;
  hello.head.topic = loader::Topic::hello;
  size_t size = 0;
  Stranger& other = meet();
  EXPECT_TRUE(other.say(&hello, sizeof hello));
  ASSERT_TRUE(other.receive(welcome, size));
  EXPECT_EQ(size, sizeof welcome);
  EXPECT_EQ(welcome.head.flag & loader::kRefused, loader::kRefused);
  EXPECT_TRUE(other.is_refused());
  std::fill(std::begin(hello.text), std::end(hello.text), 'x');
  Stranger& endless = meet();
  EXPECT_TRUE(endless.say(&hello, sizeof hello));
  EXPECT_TRUE(endless.is_refused());
  // The right terms, then a position that does not exist, or a message of the leader.
  std::copy(std::begin(welcome.text), std::end(welcome.text), hello.text);
  for (const loader::Topic topic : {loader::Topic::state, loader::Topic::batch}) {
    Stranger& member = meet();
    EXPECT_TRUE(member.say(&hello, sizeof hello));
    ASSERT_TRUE(member.receive(welcome, size));
    EXPECT_EQ(welcome.head.flag & loader::kRefused, 0u);
    loader::Message message;
    message.topic = topic;
    message.place = {0, 81};
    EXPECT_TRUE(member.say(&message, sizeof message));
    EXPECT_TRUE(member.is_refused());
  }
  // Some leave while others come.
  for (int i = 0; i < 50; ++i) {
    auto leaver = std::make_unique<Stranger>(socket());
    Stranger silent(socket()), member(socket());
    leaver.reset();
    EXPECT_TRUE(member.say(&hello, sizeof hello));
    ASSERT_TRUE(member.receive(welcome, size));
  }
  // The right terms, the wish for a batch, and silence: it holds the others up for the timeout, and no longer.
  hello.head.flag = loader::kWants;
  Stranger& silent = meet();
  EXPECT_TRUE(silent.say(&hello, sizeof hello));
  meet();  // says nothing at all
  EXPECT_EQ(second.units(), expected);
  leader.join();
}

// A leader that says nothing, or nonsense: the loaders go on alone.
TEST_F(SharedLoaders, BearALeaderThatIsNone) {
  draw_set({{20, 20}}, {L3_COLOUR_GRAY, 8}, 20);
  const l3_loader_options options = shared(2, 2, 300);
  const std::vector<Unit> expected = units_of(alone(options), 0, 0), next = units_of(alone(options), 1, 0);
  for (const bool speaks : {false, true}) {
    const loader::Descriptor listening = loader::listen_at(socket());
    ASSERT_TRUE(static_cast<bool>(listening));
    std::atomic<bool> ends{false};
    std::thread leader([&] {
      std::vector<loader::Descriptor> peers;
      loader::Greeting said;
      size_t size = 0;
      while (!ends) {
        std::this_thread::sleep_for(5ms);
        if (!speaks) continue;
        if (loader::Descriptor peer = loader::accept_at(listening)) peers.push_back(std::move(peer));
        for (const loader::Descriptor& peer : peers) {
          if (loader::receive_message(peer, said, size) != loader::Received::message) continue;
          said.head.topic = size == sizeof said ? loader::Topic::welcome : loader::Topic::batch;
          said.head.flag = 0;
          said.head.buffer = 1;
          said.head.bytes = 1 << 20;
          (void)loader::send_message(peer, &said, sizeof said);
          said.head.topic = loader::Topic::batch;
          (void)loader::send_message(peer, &said, sizeof(loader::Message), &listening);
        }
      }
    });
    {
      Loader loader(*set(), options);
      EXPECT_EQ(loader.units(), expected);
      EXPECT_EQ(units_of_epoch(loader, 1), next);
      EXPECT_EQ(loader.info().prepared_alone, 20u);
    }
    ends = true;
    leader.join();
  }
}

}  // namespace
