// The loader's CUDA device against libl3, on the emulated GPU.
#include <array>
#include <thread>

#include "control.h"
#include "loader_device_testing.h"

namespace {

using namespace device_testing;
using drawing::draw;
using drawing::Pattern;
using gpu_testing::Memory;
using gpu_testing::Place;

// Everything that was made is gone in the end.
class LoaderDevice : public testing::Test {
 protected:
  void SetUp() override { before_ = emulated::resources(); }
  void TearDown() override {
    emulated::control() = {};
    EXPECT_EQ(emulated::resources(), before_);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }

 private:
  uint32_t before_ = 0;
};

Model any_named_model(Dice& dice, uint32_t channels) {
  const Bytes bytes = by_hand::any_model(dice, channels);
  l3_model* model = nullptr;
  EXPECT_EQ(l3_open_model(bytes.data(), bytes.size(), &model, nullptr), L3_OK);
  return Model(model);
}
Bytes named_file(const drawing::Drawing& d, const l3_model* model) {
  l3_encode_options options = codec_testing::options_of(L3_METHOD_DENSE, 32, 32, 1);
  options.named_model = model;
  options.model_origin = L3_MODEL_NAMED;
  return codec_testing::encode(d, options);
}

// ---- what comes out

TEST_F(LoaderDevice, MixedBatches) {
  const auto device = open_device();
  const auto slot = make_slot(*device);
  for (uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    Round round(*device, any_asks(seed, 1 + seed % 8), {}, seed);
    ASSERT_NO_FATAL_FAILURE(round.expect_all(*slot));
    EXPECT_EQ(round.bad_images(), 0u);
  }
}

TEST_F(LoaderDevice, EveryTypeAndLayout) {
  const auto device = open_device();
  const auto slot = make_slot(*device);
  std::vector<Ask> asks;
  Dice dice(7);
  for (const drawing::Type type : {drawing::Type{L3_COLOUR_RGB, 8}, {L3_COLOUR_GRAY, 12}, {L3_COLOUR_PALETTE, 4}}) {
    const Bytes file = codec_testing::encode(draw({21, 9}, type, Pattern::noise));
    for (uint32_t i = type.bits > 8 ? L3_VALUE_U16 : L3_VALUE_U8; i <= L3_VALUE_F32; ++i) {
      for (const uint32_t layout : {L3_LAYOUT_CHW, L3_LAYOUT_HWC}) {
        Ask ask = ask_for(file);
        ask.wanted.type = i;
        ask.wanted.layout = layout;
        ask.wanted.as_colours = dice.roll(2);
        ask.flip = dice.chance(2);
        if (dice.chance(2)) std::fill_n(ask.wanted.scale, 4, 1 / 255.0f);
        if (dice.chance(2)) std::fill_n(ask.wanted.bias, 4, -0.5f);
        asks.push_back(ask);
      }
    }
  }
  Round round(*device, std::move(asks));
  ASSERT_NO_FATAL_FAILURE(round.expect_all(*slot));
}

TEST_F(LoaderDevice, NothingOrCopiesAlone) {
  const auto device = open_device();
  const auto slot = make_slot(*device);
  Round copies(*device, {});
  ASSERT_NO_FATAL_FAILURE(copies.expect_all(*slot));
  l3_error error{};
  loader::DeviceTimes times;
  ASSERT_EQ(slot->begin({}, &error), L3_OK) << error.reason;
  ASSERT_EQ(slot->finish({}, times, &error), L3_OK) << error.reason;
}

TEST_F(LoaderDevice, OnlyWhatIsThereTravels) {
  const auto device = open_device();
  const auto slot = make_slot(*device);
  l3_encode_options options = codec_testing::tiles_of(64, 64);
  Ask ask = ask_for(codec_testing::encode(draw({512, 512}, {L3_COLOUR_RGB, 8}, Pattern::noise), options));
  ask.x = 100;
  ask.y = 300;
  ask.width = ask.height = 20;
  uint64_t travelled[2];
  for (const bool in_parts : {false, true}) {
    ask.in_parts = in_parts;
    Round round(*device, {ask});
    ASSERT_TRUE(round.take_output());
    const uint64_t before = emulated::counts().bytes_to_device;
    ASSERT_NO_FATAL_FAILURE(round.expect_all(*slot));
    travelled[in_parts] = emulated::counts().bytes_to_device - before;
  }
  EXPECT_GE(travelled[0], ask.file.size());
  EXPECT_LT(travelled[1], ask.file.size() / 10);
}

TEST_F(LoaderDevice, NamedAndDefaultModels) {
  const auto device = open_device();
  const auto slot = make_slot(*device), other = make_slot(*device);
  Dice dice(3);
  const Model gray = any_named_model(dice, 1), rgb = any_named_model(dice, 3), missing = any_named_model(dice, 3);
  std::vector<Ask> asks;
  for (uint64_t i = 0; i < 3; ++i) {
    asks.push_back(ask_for(named_file(draw({40, 30}, {L3_COLOUR_GRAY, 8}, Pattern::natural, i), gray.get())));
    asks.push_back(ask_for(named_file(draw({40, 30}, {L3_COLOUR_RGB, 8}, Pattern::natural, i), rgb.get())));
    asks.push_back(ask_for(named_file(draw({40, 30}, {L3_COLOUR_RGB, 8}, Pattern::natural, i), missing.get())));
    l3_encode_options options = codec_testing::options_of(L3_METHOD_DENSE, 32, 32, 1);
    options.model_origin = L3_MODEL_DEFAULT;
    asks.push_back(ask_for(codec_testing::encode(draw({40, 30}, {L3_COLOUR_RGB, 8}, Pattern::natural, i), options)));
    EXPECT_EQ(asks.back().info.model_origin, static_cast<uint32_t>(L3_MODEL_DEFAULT));
  }
  const std::vector<const l3_model*> models = {rgb.get(), gray.get()};
  // At once, so that one brings the models and the other waits for them.
  Round first(*device, asks, models), second(*device, asks, models), third(*device, asks, models);
  for (Round* round : {&first, &second, &third}) ASSERT_TRUE(round->take_output());
  ASSERT_TRUE(first.stage(*slot) && second.stage(*other));
  l3_error error{};
  ASSERT_EQ(slot->begin(first.work(), &error), L3_OK) << error.reason;
  const uint64_t before = emulated::counts().bytes_to_device;
  ASSERT_EQ(other->begin(second.work(), &error), L3_OK) << error.reason;
  const uint64_t without_models = emulated::counts().bytes_to_device - before;
  ASSERT_EQ(second.finish(*other), L3_OK);
  ASSERT_EQ(first.finish(*slot), L3_OK);
  for (const Round* round : {&first, &second}) {
    ASSERT_NO_FATAL_FAILURE(round->expect_verdicts());
    ASSERT_NO_FATAL_FAILURE(round->expect_output());
    EXPECT_EQ(round->bad_images(), 3u);
    EXPECT_EQ(round->verdicts()[2].status, L3_ERROR_MODEL);
  }
  const uint64_t again = emulated::counts().bytes_to_device;
  ASSERT_NO_FATAL_FAILURE(third.expect_all(*slot));
  EXPECT_EQ(emulated::counts().bytes_to_device - again, without_models);
  // What was brought for one call is not known to another.
  Round none(*device, asks, {gray.get()});
  ASSERT_NO_FATAL_FAILURE(none.expect_all(*slot));
  EXPECT_EQ(none.bad_images(), 6u);
}

TEST_F(LoaderDevice, BadImagesBesideGoodOnes) {
  const auto device = open_device();
  const auto slot = make_slot(*device);
  uint64_t bad = 0, all = 0;
  for (uint64_t seed = 100; seed < 106; ++seed) {
    Dice dice(seed);
    std::vector<Ask> asks = any_asks(seed, 4);
    for (int i = 0; i < 8; ++i) asks.push_back(any_ask(dice, damaged(dice, asks[dice.roll(4)].file)));
    Round round(*device, std::move(asks), {}, seed);
    ASSERT_NO_FATAL_FAILURE(round.expect_all(*slot));
    bad += round.bad_images();
    all += 8;
  }
  EXPECT_GT(bad, all / 4);
}

// A header that claims the most tiles costs no more memory than its file has bytes.
TEST_F(LoaderDevice, AClaimOfTilesTakesNoMemory) {
  const auto device = open_device();
  const auto slot = make_slot(*device);
  l3_encode_options options = codec_testing::tiles_of(32, 32);
  Bytes file = codec_testing::encode(draw({4096, 4096}, {L3_COLOUR_GRAY, 1}, Pattern::flat), options);
  Ask claims = ask_for(file);
  claims.file.resize(100);
  Ask good = ask_for(codec_testing::encode(draw({30, 30}, {L3_COLOUR_GRAY, 8}, Pattern::noise)));
  Round round(*device, {claims, good});
  ASSERT_TRUE(round.take_output());
  size_t before = 0, after = 0, total = 0;
  must(cudaMemGetInfo(&before, &total));
  ASSERT_NO_FATAL_FAILURE(round.expect_all(*slot));
  must(cudaMemGetInfo(&after, &total));
  EXPECT_EQ(round.bad_images(), 1u);
  EXPECT_LT(before - after, size_t{1} << 20);
}

// ---- several at once, and in order

TEST_F(LoaderDevice, SlotsAreUnderWayAtOnce) {
  const auto device = open_device();
  for (uint64_t seed = 0; seed < 4; ++seed) {
    emulated::dice().seed(static_cast<uint32_t>(seed));
    std::vector<std::unique_ptr<loader::DeviceSlot>> slots;
    std::vector<std::unique_ptr<Round>> rounds;
    for (uint64_t i = 0; i < 4; ++i) {
      slots.push_back(make_slot(*device));
      rounds.push_back(
          std::make_unique<Round>(*device, any_asks(200 + 4 * seed + i, 3), std::vector<const l3_model*>{}, i));
      ASSERT_TRUE(rounds[i]->take_output() && rounds[i]->stage(*slots[i]));
    }
    l3_error error{};
    for (size_t i = 0; i < 4; ++i) ASSERT_EQ(slots[i]->begin(rounds[i]->work(), &error), L3_OK) << error.reason;
    for (const size_t i : {2u, 0u, 3u, 1u}) {
      ASSERT_EQ(rounds[i]->finish(*slots[i], &error), L3_OK) << error.reason;
      ASSERT_NO_FATAL_FAILURE(rounds[i]->expect_verdicts());
      ASSERT_NO_FATAL_FAILURE(rounds[i]->expect_output());
    }
  }
}

// The streams that consumers have: of their own, that wait for the default one or do not, and the default ones.
class Consumer {
 public:
  explicit Consumer(uint64_t kind) {
    if (kind % 5 == 0) must(cudaStreamCreateWithFlags(&made_, cudaStreamNonBlocking));
    if (kind % 5 == 1) must(cudaStreamCreate(&made_));
    stream = made_ != nullptr ? made_ : reinterpret_cast<cudaStream_t>(kind % 5 - 2);
  }
  ~Consumer() {
    if (made_ != nullptr) must(cudaStreamDestroy(made_));
  }
  Consumer(const Consumer&) = delete;
  Consumer& operator=(const Consumer&) = delete;

  cudaStream_t stream = nullptr;

 private:
  cudaStream_t made_ = nullptr;
};

Bytes bytes_of(const Memory& pinned) { return {pinned.at(), pinned.at() + pinned.size()}; }

// What was in the consumer's stream before reads and writes the output first, and what comes there afterwards finds
// all that the batch has written.
TEST_F(LoaderDevice, OrderedWorkKeepsItsPlaceInAStream) {
  const auto device = open_device();
  const auto slot = make_slot(*device);
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    emulated::dice().seed(static_cast<uint32_t>(seed));
    const Consumer consumer(seed);
    Round round(*device, {ask_for(codec_testing::encode(draw({16, 9}, {L3_COLOUR_RGB, 8}, Pattern::noise)))});
    ASSERT_TRUE(round.take_output() && round.stage(*slot));
    const Memory before(Place::pinned, round.out_bytes()), after(Place::pinned, round.out_bytes());
    const Bytes noise = Dice(seed).bytes(round.out_bytes());
    const Memory noise_memory(Place::pinned, noise);
    const auto copy = [&](void* to, const void* from) {
      must(cudaMemcpyAsync(to, from, noise.size(), cudaMemcpyDefault, consumer.stream));
    };
    copy(round.output(), noise_memory.at());
    copy(before.at(), round.output());
    loader::DeviceWork work = round.work();
    work.ordered = true;
    work.after_stream = consumer.stream;
    work.output = nullptr;
    l3_error error{};
    ASSERT_EQ(slot->begin(work, &error), L3_OK) << error.reason;
    copy(after.at(), round.output());
    copy(round.output(), noise_memory.at());
    must(cudaStreamSynchronize(consumer.stream));
    EXPECT_EQ(bytes_of(before), noise);
    ASSERT_EQ(round.finish(*slot), L3_OK);
    ASSERT_NO_FATAL_FAILURE(round.expect_verdicts());
    // Between images there is what the consumer wrote.
    round.forget_noise();
    ASSERT_NO_FATAL_FAILURE(round.expect_bytes(bytes_of(after)));
  }
}

// An output that consumers still read is written when the last of them is through.
TEST_F(LoaderDevice, OutputsAreWrittenAfterTheirUsers) {
  const auto device = open_device();
  const auto slot = make_slot(*device), other = make_slot(*device);
  const Bytes file = codec_testing::encode(draw({16, 9}, {L3_COLOUR_RGB, 8}, Pattern::noise, 1));
  const Bytes next = codec_testing::encode(draw({16, 9}, {L3_COLOUR_RGB, 8}, Pattern::noise, 2));
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    emulated::dice().seed(static_cast<uint32_t>(seed));
    const Consumer one(seed), two(seed + 1 + seed / 5 % 4);
    Round first(*device, {ask_for(file)}), second(*device, {ask_for(next)}), third(*device, {ask_for(file)});
    ASSERT_NO_FATAL_FAILURE(first.expect_all(*slot));
    const Memory a(Place::pinned, first.out_bytes()), b(Place::pinned, first.out_bytes());
    must(cudaMemcpyAsync(a.at(), first.output(), a.size(), cudaMemcpyDefault, one.stream));
    device->use_until(first.output(), one.stream);
    must(cudaMemcpyAsync(b.at(), first.output(), b.size(), cudaMemcpyDefault, two.stream));
    device->use_until(first.output(), two.stream);
    second.take_output_of(first);
    third.take_output_of(first);
    ASSERT_TRUE(second.stage(*slot) && third.stage(*other));
    l3_error error{};
    ASSERT_EQ(slot->begin(second.work(), &error), L3_OK) << error.reason;
    // Not before the one that was begun earlier.
    ASSERT_EQ(other->begin(third.work(), &error), L3_OK) << error.reason;
    ASSERT_EQ(third.finish(*other), L3_OK);
    ASSERT_NO_FATAL_FAILURE(first.expect_bytes(bytes_of(a)));
    ASSERT_NO_FATAL_FAILURE(first.expect_bytes(bytes_of(b)));
    ASSERT_NO_FATAL_FAILURE(third.expect_output());
    ASSERT_EQ(second.finish(*slot), L3_OK);
  }
}

TEST_F(LoaderDevice, ADestroyedSlotHasDoneItsWork) {
  const auto device = open_device();
  Round round(*device, any_asks(9));
  {
    const auto slot = make_slot(*device);
    ASSERT_TRUE(round.take_output() && round.stage(*slot));
    ASSERT_EQ(slot->begin(round.work(), nullptr), L3_OK);
  }
  ASSERT_NO_FATAL_FAILURE(round.expect_output());
}

// ---- memory

TEST_F(LoaderDevice, StagingGrows) {
  const auto device = open_device();
  const auto slot = make_slot(*device);
  uint8_t* const small = slot->staging(100);
  ASSERT_NE(small, nullptr);
  std::memset(small, 7, 100);
  EXPECT_EQ(slot->staging(50), small);
  EXPECT_EQ(slot->staging(100), small);
  EXPECT_TRUE(std::all_of(small, small + 100, [](uint8_t byte) { return byte == 7; }));
  EXPECT_EQ(slot->staging(uint64_t{1} << 40), nullptr);
  for (uint64_t seed = 0; seed < 3; ++seed) {
    Round round(*device, any_asks(300 + seed, 1 + 4 * static_cast<uint32_t>(seed)));
    ASSERT_NE(slot->staging(300'000 * seed), nullptr);
    ASSERT_NO_FATAL_FAILURE(round.expect_all(*slot));
  }
  EXPECT_EQ(device->allocate_output(uint64_t{1} << 40), nullptr);
  void* const nothing = device->allocate_output(0);
  EXPECT_NE(nothing, nullptr);
  device->free_output(nothing);
  device->free_output(nullptr);
  (void)cudaGetLastError();
}

// Each thing that can be refused is, one after the other; afterwards everything still works.
TEST_F(LoaderDevice, MemoryIsRefused) {
  Dice dice(5);
  const Model model = any_named_model(dice, 1);
  const Ask named = ask_for(named_file(draw({40, 30}, {L3_COLOUR_GRAY, 8}, Pattern::natural), model.get()));
  const std::vector<Ask> asks = any_asks(10, 2);
  uint64_t refused = 0;
  for (bool done = false; !done; ++refused) {
    ASSERT_LT(refused, 60u);
    const uint32_t before = emulated::resources();
    emulated::control().resources_accepted = refused;
    l3_error error{};
    std::unique_ptr<loader::Device> device(l3_data_open_cuda_device(loader::kDeviceVersion, 0, &error));
    ASSERT_NE(device, nullptr);
    auto slot = device->make_slot(&error);
    if (slot == nullptr) {
      EXPECT_EQ(error.status, L3_ERROR_MEMORY);
      slot = make_slot(*device);
    }
    ASSERT_NE(slot, nullptr);
    Round round(*device, {asks[0], named, asks[1]}, {model.get()});
    ASSERT_TRUE(round.take_output() || round.take_output());
    ASSERT_TRUE(round.stage(*slot) || round.stage(*slot));
    if (slot->begin(round.work(), &error) != L3_OK) {
      EXPECT_EQ(error.status, L3_ERROR_MEMORY);
      ASSERT_EQ(slot->begin(round.work(), &error), L3_OK) << error.reason;
    }
    ASSERT_EQ(round.finish(*slot, &error), L3_OK) << error.reason;
    device->use_until(round.output(), nullptr);  // where an event is refused, it waits
    ASSERT_NO_FATAL_FAILURE(round.expect_verdicts());
    ASSERT_NO_FATAL_FAILURE(round.expect_output());
    done = emulated::control().resources_accepted != UINT64_MAX;
    emulated::control().resources_accepted = UINT64_MAX;
    device->free_output(round.give_output());
    slot.reset();
    device.reset();
    EXPECT_EQ(emulated::resources(), before);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }
  EXPECT_GT(refused, 12u);
}

// The same of all that goes into streams.
TEST_F(LoaderDevice, WorkIsRefused) {
  Dice dice(6);
  const Model model = any_named_model(dice, 1);
  const Ask named = ask_for(named_file(draw({40, 30}, {L3_COLOUR_GRAY, 8}, Pattern::natural), model.get()));
  const std::vector<Ask> asks = any_asks(11, 2);
  const Consumer consumer(0);
  uint64_t refused = 0;
  for (bool done = false; !done; ++refused) {
    ASSERT_LT(refused, 100u);
    const auto device = open_device();
    const auto slot = make_slot(*device);
    Round round(*device, {asks[0], named, asks[1]}, {model.get()});
    ASSERT_TRUE(round.take_output() && round.stage(*slot));
    loader::DeviceWork work = round.work();
    work.ordered = true;
    work.after_stream = consumer.stream;
    emulated::control().work_accepted = refused;
    l3_error error{};
    done = slot->begin(work, &error) == L3_OK;
    emulated::control().work_accepted = UINT64_MAX;
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    if (!done) {
      EXPECT_EQ(error.status, L3_ERROR_DEVICE);
      ASSERT_NE(error.reason, nullptr);
      // Nothing is under way: its memory may be filled again at once.
      loader::DeviceTimes times;
      EXPECT_EQ(slot->finish({}, times, nullptr), L3_ERROR_ARGUMENT);
      ASSERT_TRUE(round.stage(*slot));
      ASSERT_EQ(slot->begin(work, &error), L3_OK) << error.reason;
    }
    ASSERT_EQ(round.finish(*slot, &error), L3_OK) << error.reason;
    ASSERT_NO_FATAL_FAILURE(round.expect_verdicts());
    ASSERT_NO_FATAL_FAILURE(round.expect_output());
    must(cudaStreamSynchronize(consumer.stream));
  }
  EXPECT_GT(refused, 15u);
}

// ---- calls

TEST_F(LoaderDevice, WrongCalls) {
  const auto device = open_device();
  const auto slot = make_slot(*device);
  Round round(*device, any_asks(12, 2));
  ASSERT_TRUE(round.take_output() && round.stage(*slot));
  const auto refuses = [&](const auto& spoil) {
    const std::vector<loader::DeviceImage> images = round.images();
    loader::DeviceWork work = round.work();
    l3_wanted wanted = *images[1].wanted;
    spoil(work, round.images()[1], wanted);
    if (std::memcmp(&wanted, images[1].wanted, sizeof(wanted)) != 0) round.images()[1].wanted = &wanted;
    l3_error error{};
    EXPECT_EQ(slot->begin(work, &error), L3_ERROR_ARGUMENT);
    EXPECT_EQ(error.status, L3_ERROR_ARGUMENT);
    round.images() = images;
  };
  using Work = loader::DeviceWork;
  using Image = loader::DeviceImage;
  refuses([](Work&, Image& image, l3_wanted&) { image.at += 8; });
  refuses([](Work&, Image& image, l3_wanted&) { image.at = uint64_t{1} << 32; });
  refuses([](Work&, Image& image, l3_wanted&) { image.size = UINT64_MAX; });
  const l3_range outside{16, UINT64_MAX - 100};
  refuses([&](Work&, Image& image, l3_wanted&) { image.present = {&outside, 1}; });
  refuses([](Work&, Image& image, l3_wanted&) { image.width = 0; });
  refuses([](Work&, Image& image, l3_wanted&) { image.out = nullptr; });
  refuses([](Work&, Image&, l3_wanted& wanted) { wanted.type = L3_VALUE_STORED; });
  refuses([](Work&, Image&, l3_wanted& wanted) { wanted.type = L3_VALUE_F32 + 1; });
  refuses([](Work&, Image&, l3_wanted& wanted) { wanted.layout = 2; });
  const loader::DeviceCopy copy{0, UINT64_MAX, round.output()};
  refuses([&](Work& work, Image&, l3_wanted&) { work.copies = {&copy, 1}; });
  int not_an_output = 0;
  refuses([&](Work& work, Image&, l3_wanted&) { work.output = &not_an_output; });
  device->use_until(&not_an_output, nullptr);
  device->free_output(&not_an_output);

  loader::DeviceTimes times;
  l3_error verdict{}, error{};
  EXPECT_EQ(slot->finish({}, times, &error), L3_ERROR_ARGUMENT);
  ASSERT_EQ(slot->begin(round.work(), &error), L3_OK) << error.reason;
  EXPECT_EQ(slot->begin(round.work(), &error), L3_ERROR_ARGUMENT);
  EXPECT_EQ(slot->finish({&verdict, 1}, times, &error), L3_ERROR_ARGUMENT);
  EXPECT_EQ(slot->staging(1), nullptr);
  ASSERT_EQ(round.finish(*slot, &error), L3_OK) << error.reason;
  ASSERT_NO_FATAL_FAILURE(round.expect_output());
}

// A thread has afterwards what it had before, and devices that are not used get no context.
TEST_F(LoaderDevice, ThreadsKeepTheirDevice) {
  emulated::control().devices = 3;
  const std::unique_ptr<loader::Device> device = open_device(2);
  const auto in_use = [] { return emulated::counts().contexts; };
  const uint64_t before = in_use();
  EXPECT_EQ(before & 2, 0u);
  std::thread([&] {
    emulated::forget_contexts();
    const auto slot = make_slot(*device);
    Round round(*device, any_asks(13, 2));
    const auto still = [&] {
      int current = -1;
      EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
      EXPECT_EQ(current, 0);
      EXPECT_EQ(in_use(), 4u);
    };
    void* const output = device->allocate_output(1000);
    still();
    ASSERT_NE(slot->staging(1000), nullptr);
    still();
    device->free_output(output);
    still();
    must(cudaSetDevice(1));
    ASSERT_NO_FATAL_FAILURE(round.expect_all(*slot));
    int current = -1;
    must(cudaGetDevice(&current));
    EXPECT_EQ(current, 1);
    EXPECT_EQ(in_use() & 1, 0u);
    const Consumer consumer(0);  // of device 1: whoever gives back an output in the wrong stream has to wait
    device->use_until(round.output(), consumer.stream);
  }).join();
}

TEST_F(LoaderDevice, ThreadsAtOnce) {
  const auto device = open_device();
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      const auto slot = make_slot(*device);
      for (uint64_t k = 0; k < 4; ++k) {
        Round round(*device, any_asks(400 + 4 * i + k, 2), {}, k);
        ASSERT_NO_FATAL_FAILURE(round.expect_all(*slot));
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    void* const output = device->allocate_output(100);
    ASSERT_NE(output, nullptr);
    device->use_until(output, nullptr);
    device->free_output(output);
  }
  for (std::thread& thread : threads) thread.join();
}

// Someone captures a graph meanwhile: neither side notices.
TEST_F(LoaderDevice, CapturesOfOthersGoOn) {
  const auto device = open_device();
  const Memory memory(Place::device, 100);
  const Consumer consumer(0);
  must(cudaStreamBeginCapture(consumer.stream, cudaStreamCaptureModeGlobal));
  must(cudaMemsetAsync(memory.at(), 0, memory.size(), consumer.stream));
  {
    const auto slot = make_slot(*device);
    Round round(*device, any_asks(14, 2));
    void* const output = device->allocate_output(round.out_bytes());
    ASSERT_NE(output, nullptr);
    round.use_output(output);
    ASSERT_TRUE(round.stage(*slot));
    loader::DeviceWork work = round.work();
    l3_error error{};
    ASSERT_EQ(slot->begin(work, &error), L3_OK) << error.reason;
    ASSERT_EQ(round.finish(*slot, &error), L3_OK) << error.reason;
    work.ordered = true;
    work.after_stream = consumer.stream;
    EXPECT_EQ(slot->begin(work, &error), L3_ERROR_ARGUMENT);
    device->use_until(output, consumer.stream);
    device->free_output(output);
  }
  cudaGraph_t graph = nullptr;
  must(cudaStreamEndCapture(consumer.stream, &graph));
  must(cudaGraphDestroy(graph));
}

// ---- the library

TEST_F(LoaderDevice, DevicesThatAreNot) {
  const auto refused = [](uint32_t version, uint32_t number) {
    l3_error error{};
    EXPECT_EQ(l3_data_open_cuda_device(version, number, &error), nullptr);
    EXPECT_EQ(l3_data_open_cuda_device(version, number, nullptr), nullptr);
    EXPECT_EQ(error.status, L3_ERROR_DEVICE);
    return std::string(error.reason);
  };
  EXPECT_EQ(refused(loader::kDeviceVersion, 1), "there is no CUDA device of that number");
  EXPECT_EQ(refused(loader::kDeviceVersion + 1, 0), "libl3_data_cuda.so is of another version");
  emulated::control().has_code = false;
  EXPECT_NE(refused(loader::kDeviceVersion, 0), "");
  emulated::control().has_code = true;
  emulated::control().devices = 0;
  EXPECT_EQ(refused(loader::kDeviceVersion, 0), "no CUDA-capable device is detected");
}

TEST_F(LoaderDevice, OneIsSharedByAllWhoAsk) {
  loader::set_device_entry(l3_data_open_cuda_device);
  emulated::control().devices = 2;
  l3_data_error error{};
  auto first = loader::open_cuda_device(0, &error), second = loader::open_cuda_device(0, nullptr);
  ASSERT_NE(first, nullptr) << error.reason;
  EXPECT_EQ(error.status, L3_OK);
  EXPECT_EQ(first, second);
  const auto other = loader::open_cuda_device(1, &error);
  ASSERT_NE(other, nullptr) << error.reason;
  EXPECT_NE(other, first);
  EXPECT_EQ(loader::open_cuda_device(2, &error), nullptr);
  EXPECT_EQ(error.status, L3_ERROR_DEVICE);
  EXPECT_STREQ(error.reason, "CUDA device 2: there is no CUDA device of that number");
  const std::weak_ptr<loader::Device> gone = first;
  first.reset();
  second.reset();
  EXPECT_TRUE(gone.expired());
  EXPECT_NE(loader::open_cuda_device(0, &error), nullptr);
  loader::set_device_entry(nullptr);
}

TEST_F(LoaderDevice, WithoutTheLibraryThereIsAReason) {
  loader::set_device_entry(nullptr);
  l3_data_error error{};
  EXPECT_EQ(loader::open_cuda_device(0, &error), nullptr);
  EXPECT_EQ(loader::open_cuda_device(0, nullptr), nullptr);
  EXPECT_EQ(error.status, L3_ERROR_DEVICE);
  EXPECT_NE(std::string(error.reason).find("this build has no CUDA part: libl3_data_cuda.so is not beside"),
            std::string::npos)
      << error.reason;
}

}  // namespace
