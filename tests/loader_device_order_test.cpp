// The loader's CUDA device: several batches at once, and their order among what others do.
#include <thread>

#include "loader_device_testing.h"

namespace {

using namespace device_testing;
using drawing::draw;
using drawing::Pattern;
using gpu_testing::Memory;
using gpu_testing::Place;

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

// Keeps a stream busy for a while.
void hold_up(cudaStream_t stream, const Memory& device_memory) {
  for (int i = 0; i < 40; ++i) must(cudaMemsetAsync(device_memory.at(), i, device_memory.size(), stream));
}

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
    const Memory a(Place::pinned, first.out_bytes()), b(Place::pinned, first.out_bytes()),
        other_memory(Place::device, 9);
    hold_up(seed % 2 == 0 ? one.stream : two.stream, other_memory);
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

// Whoever comes second waits for the models that the first one brings, however long that takes.
TEST_F(LoaderDevice, ModelsAreThereBeforeTheyAreUsed) {
  Dice dice(4);
  const Model model = any_named_model(dice, 1);
  const Ask named = ask_for(named_file(draw({40, 30}, {L3_COLOUR_GRAY, 8}, Pattern::natural), model.get()));
  Ask column = ask_for(
      codec_testing::encode(draw({640, 1024}, {L3_COLOUR_GRAY, 8}, Pattern::noise), codec_testing::tiles_of(64, 32)));
  column.width = 1;
  column.in_parts = true;  // copies that take their time
  for (uint32_t seed = 0; seed < 10; ++seed) {
    emulated::dice().seed(seed);
    const auto device = open_device();
    const auto slot = make_slot(*device), other = make_slot(*device);
    Round first(*device, {named, column}, {model.get()}), second(*device, {named}, {model.get()});
    ASSERT_TRUE(first.take_output() && second.take_output() && first.stage(*slot) && second.stage(*other));
    l3_error error{};
    ASSERT_EQ(slot->begin(first.work(), &error), L3_OK) << error.reason;
    ASSERT_EQ(other->begin(second.work(), &error), L3_OK) << error.reason;
    ASSERT_EQ(second.finish(*other), L3_OK);
    ASSERT_NO_FATAL_FAILURE(second.expect_verdicts());
    ASSERT_EQ(first.finish(*slot), L3_OK);
    ASSERT_NO_FATAL_FAILURE(first.expect_verdicts());
  }
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
  void* const first = device->allocate_output(1);
  EXPECT_NE(first, nullptr);
  device->free_output(first);
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
  // What this thread may do meanwhile is what it was.
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  must(cudaThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(mode, cudaStreamCaptureModeGlobal);
}

}  // namespace
