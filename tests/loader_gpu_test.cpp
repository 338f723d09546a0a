// Tests of whole loaders on a GPU, which is usually the emulated one: their batches equal those of the CPU, and they do
// not overwrite memory that consumers still use.
#include <cuda_runtime_api.h>

#include "data_set.h"
#include "far_store.h"
#include "loader/device.h"
#include "loader_testing.h"

extern "C" loader::Device* l3_data_open_cuda_device(uint32_t version, uint32_t number, l3_error* error);

namespace {

using namespace loader_testing;

void must(cudaError_t error) { ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error); }

class LoadersOnDevices : public LoaderTest {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "there is no GPU";
    LoaderTest::SetUp();
    loader::set_device_entry(l3_data_open_cuda_device);
    copy_from_tensor() = copy_bytes;
  }
  void TearDown() override {
    loader::set_device_entry(nullptr);
    LoaderTest::TearDown();
  }

  // Batches of both kinds are looked at by one function.
  static void copy_bytes(void* to, const void* from, size_t size) {
    if (on_device_) {
      must(cudaMemcpy(to, from, size, cudaMemcpyDeviceToHost));
    } else {
      std::memcpy(to, from, size);
    }
  }

  std::vector<std::vector<Unit>> on(l3_device_kind device, l3_loader_options options, uint64_t epoch = 1,
                                    uint64_t position = 0) {
    options.device = device;
    on_device_ = device == L3_DEVICE_CUDA;
    std::vector<std::vector<Unit>> batches = batches_of(options, epoch, position);
    on_device_ = true;
    return batches;
  }
  // The same for tensors of any size: the values of all tensors and their sizes.
  std::vector<Unit> everything(l3_device_kind device, l3_loader_options options, uint64_t epoch) {
    options.device = device;
    on_device_ = device == L3_DEVICE_CUDA;
    std::vector<Unit> units;
    Loader loader(*set(), options);
    EXPECT_EQ(l3_loader_start(loader.get(), epoch, 0, nullptr), L3_OK);
    while (const Batch batch = loader.next()) {
      for (uint32_t i = 0; i < batch.info().units; ++i) units.push_back(unit_of(batch, i));
    }
    on_device_ = true;
    return units;
  }
  void expect_everything_same(const l3_loader_options& options, uint64_t epoch = 1) {
    const auto expected = everything(L3_DEVICE_CPU, options, epoch);
    EXPECT_FALSE(expected.empty());
    EXPECT_TRUE(everything(L3_DEVICE_CUDA, options, epoch) == expected);
  }
  void expect_same(const l3_loader_options& options, uint64_t epoch = 1, uint64_t position = 0) {
    const auto expected = on(L3_DEVICE_CPU, options, epoch, position);
    EXPECT_FALSE(expected.empty());
    EXPECT_EQ(on(L3_DEVICE_CUDA, options, epoch, position), expected);
  }

  static inline bool on_device_ = true;
};

TEST_F(LoadersOnDevices, GiveWhatProcessorsGive) {
  for (const Type type : {Type{L3_COLOUR_RGB, 8}, Type{L3_COLOUR_GRAY, 12}, Type{L3_COLOUR_PALETTE, 4}}) {
    draw_set({{21, 13}}, type, 7);
    for (uint32_t value = L3_VALUE_STORED; value <= L3_VALUE_F32; ++value) {
      if (value == L3_VALUE_U8 && type.bits > 8) continue;
      l3_tensor_options wanted{};
      wanted.type = value;
      wanted.layout = value % 2;
      wanted.as_colours = value / 2 % 2;
      const float scale[4] = {0.01f, -3.0f, 1.0f / 255, 65536.0f}, bias[4] = {-1.5f, 0, 1e-7f, 3};
      std::copy(scale, scale + 4, wanted.scale);
      std::copy(bias, bias + 4, wanted.bias);
      l3_loader_options options = options_of(3);
      options.order = L3_ORDER_SHUFFLED;
      options.tensors = &wanted;
      options.tensor_count = 1;
      options.flip = 1;
      options.crop = L3_CROP_RANDOM;
      options.crop_width = 9;
      options.crop_height = 10;
      SCOPED_TRACE(testing::Message() << type.bits << " bits, colour " << type.colour << ", type " << value);
      expect_same(options);
    }
  }
}

// Every value bit for bit, although a part of them are floats.
TEST_F(LoadersOnDevices, ChangeImagesAsProcessorsDo) {
  const std::vector<Size> sizes = {{61, 43}, {40, 90}, {33, 33}, {150, 20}};
  for (const Type type : {Type{L3_COLOUR_RGB, 8}, Type{L3_COLOUR_GRAY, 12}, Type{L3_COLOUR_PALETTE, 4},
                          Type{L3_COLOUR_RGB_ALPHA, 8}, Type{L3_COLOUR_RGB, 16}, Type{L3_COLOUR_GRAY, 1}}) {
    draw_set(sizes, type, 8);
    for (uint32_t i = 0; i < 40; ++i) {
      l3_tensor_options wanted{};
      const bool is_palette = type.colour == L3_COLOUR_PALETTE;
      wanted.type = 1 + i % 8;
      wanted.layout = i / 2 % 2;
      wanted.as_colours = is_palette && i % 3 != 0;
      wanted.interpolation = 1 + i % 5;
      if (is_palette && wanted.as_colours == 0) wanted.interpolation = L3_INTERPOLATION_NEAREST;
      if (!is_palette || wanted.as_colours != 0) {
        wanted.channels = i / 3 % 3;
        wanted.jitter = i / 4 % 2;
      }
      wanted.alpha = i / 5 % 3;
      const uint32_t bits = wanted.as_colours != 0 ? 8 : type.bits;
      if (bits > 8 && (wanted.type == L3_VALUE_U8 || wanted.type == L3_VALUE_I16 || i % 2 == 1)) wanted.bits = 8;
      wanted.has_pad_value = 1;
      for (uint32_t c = 0; c < 4; ++c) {
        // Labels are padded with what no sample is.
        const bool are_labels = wanted.type >= L3_VALUE_I16;
        wanted.pad_value[c] = are_labels ? -100.0f - static_cast<float>(c) : static_cast<float>(40 * c);
        wanted.scale[c] = 0.01f * static_cast<float>(c + 1);
        wanted.bias[c] = static_cast<float>(c) - 1.5f;
        wanted.background[c] = static_cast<float>(10 * c);
      }
      l3_loader_options options = options_of(3);
      options.order = L3_ORDER_SHUFFLED;
      options.tensors = &wanted;
      options.tensor_count = 1;
      options.flip = i % 2;
      options.flip_vertical = i / 2 % 2;
      options.brightness = options.contrast = options.saturation = 0.4f;
      options.hue = 0.1f;
      if (i % 5 == 2) options.pad_mode = i / 7 % 3;
      switch (i % 5) {
        case 0:
          options.box = L3_BOX_RANDOM;
          options.resize = L3_RESIZE_EXACT;
          options.resize_width = 37;
          options.resize_height = 37;
          options.turn = L3_TURN_RANDOM;
          break;
        case 1:
          options.resize = L3_RESIZE_SHORTER;
          options.resize_width = 24;
          options.crop = L3_CROP_RANDOM;
          options.crop_width = 20;
          options.crop_height = 18;
          options.turn = L3_TURN_90;
          break;
        case 2:
          options.pad = L3_PAD_LETTERBOX;
          options.pad_width = 40;
          options.pad_height = 30;
          break;
        case 3:
          options.batching = L3_BATCHING_LIST;
          options.resize = L3_RESIZE_LONGEST;
          options.resize_width = 7 + i;
          options.turn = L3_TURN_RANDOM;
          break;
        default:
          options.batching = L3_BATCHING_PAD;
          options.pad_multiple = 8;
          options.bucket_by = L3_BUCKET_ASPECT;
          options.turn = L3_TURN_270;
      }
      SCOPED_TRACE(testing::Message() << type.bits << " bits, colour " << type.colour << ", case " << i);
      expect_everything_same(options);
      if (HasFailure()) return;
    }
  }
}

TEST_F(LoadersOnDevices, LeaveOutImagesOfListsAndPads) {
  draw_set({{24, 16}, {9, 31}, {40, 8}}, {L3_COLOUR_RGB, 8}, 12);
  for (const uint64_t sample : {1u, 2u, 6u, 7u, 8u}) damage(sample);
  for (const l3_on_error on_error : {L3_ON_ERROR_SKIP, L3_ON_ERROR_ZERO}) {
    for (const l3_batching batching : {L3_BATCHING_LIST, L3_BATCHING_PAD}) {
      l3_loader_options options = options_of(4);
      options.on_error = on_error;
      options.batching = batching;
      expect_everything_same(options, 0);
    }
  }
}

TEST_F(LoadersOnDevices, ReadAndBringOnlyWhatCropsNeed) {
  draw_set({{700, 500}, {513, 900}}, {L3_COLOUR_GRAY, 8}, 4);
  l3_loader_options options = options_of(2);
  options.crop = L3_CROP_RANDOM;
  options.crop_width = 17;
  options.crop_height = 12;
  options.threads = 2;
  expect_same(options);
}

TEST_F(LoadersOnDevices, TakeGroupsAndRanksAndPositions) {
  draw_pairs(11);
  l3_tensor_options wanted[2] = {};
  wanted[0].role = "mask";
  wanted[0].role_size = 4;
  wanted[1].role = "image";
  wanted[1].role_size = 5;
  wanted[1].type = L3_VALUE_F16;
  l3_loader_options options = options_of(2);
  options.tensors = wanted;
  options.tensor_count = 2;
  options.order = L3_ORDER_WINDOWS;
  options.crop = L3_CROP_CENTRE;
  options.crop_width = 20;
  options.crop_height = 10;
  options.world_size = 2;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    options.rank = rank;
    expect_same(options);
    expect_same(options, 3, 5);
  }
}

TEST_F(LoadersOnDevices, TakeErrorsAsProcessorsDo) {
  draw_set({{24, 16}}, {L3_COLOUR_RGB, 8}, 12);
  for (const uint64_t sample : {1u, 2u, 6u, 7u, 8u}) damage(sample);
  for (const l3_on_error on_error : {L3_ON_ERROR_SKIP, L3_ON_ERROR_ZERO}) {
    l3_loader_options options = options_of(3);
    options.on_error = on_error;
    expect_same(options, 0);
  }
  l3_loader_options options = options_of(3);
  options.device = L3_DEVICE_CUDA;
  Loader loader(*set(), options);
  uint32_t failed = 0, good = 0;
  for (l3_next next = L3_NEXT_BATCH; next != L3_NEXT_END;) {
    l3_batch* raw = nullptr;
    l3_failure failure{};
    if (l3_loader_next(loader.get(), UINT32_MAX, &next, &raw, nullptr, &failure) != L3_OK) {
      ++failed;
      EXPECT_EQ(failure.error.status, L3_ERROR_CORRUPT);
      next = L3_NEXT_BATCH;
    }
    const Batch batch(raw);
    good += batch ? 1u : 0u;
  }
  EXPECT_EQ(failed, 2u);
  EXPECT_EQ(good, 2u);
}

TEST_F(LoadersOnDevices, RefuseImagesOfAnotherShard) { expect_images_of_another_shard_refused({L3_DEVICE_CUDA}); }

TEST_F(LoadersOnDevices, TakeMoreBatchesOfAFarStoreThanTheyHaveSlots) {
  draw_set({{40, 24}, {300, 310}}, {L3_COLOUR_RGB, 8}, 46);
  const auto store = std::make_shared<FarStore>(folder_.string());
  store->refuse = [](const loader::Read& read) {
    if (read.sample != 7) return loader::StoreFault{};
    return loader::StoreFault{L3_ERROR_FILE, ETIMEDOUT, L3_DATA_NONE, "no answer"};
  };
  l3_data_set* far = nullptr;
  ASSERT_EQ(loader::open_data_set(store, "", l3_data_options_init(), &far, nullptr), L3_OK);
  l3_loader_options options = options_of(2);
  options.prefetch = 2;
  options.on_error = L3_ON_ERROR_SKIP;
  options.crop = L3_CROP_RANDOM;
  options.crop_width = options.crop_height = 20;
  std::vector<Unit> expected;
  for (const auto& batch : on(L3_DEVICE_CPU, options, 2)) {
    for (const Unit& unit : batch) {
      if (unit.id != 7 && unit.id != 30) expected.push_back(unit);  // sample 7 of both shards
    }
  }
  options.device = L3_DEVICE_CUDA;
  store->set_delay(10, 20);
  store->reset_counts();
  {
    Loader loader(*far, options);
    ASSERT_EQ(l3_loader_start(loader.get(), 2, 0, nullptr), L3_OK);
    EXPECT_EQ(loader.units(), expected);
    EXPECT_GT(store->counts().most_at_once, 4u);
    ASSERT_EQ(l3_loader_start(loader.get(), 3, 0, nullptr), L3_OK);
    EXPECT_TRUE(loader.next());
  }
  l3_data_close(far);
}

TEST_F(LoadersOnDevices, ReadDamagedFilesOfAFarStoreOnceMore) {
  draw_set({{40, 24}, {300, 310}}, {L3_COLOUR_RGB, 8}, 24);
  const auto store = std::make_shared<FarStore>(folder_.string());
  std::set<std::pair<const loader::Object*, uint64_t>> seen;
  // The first answer about each second sample is damaged: in the head, or in the pixels.
  store->change = [&](loader::Read& read) {
    if (read.sample == loader::kNoSample || read.sample % 2 == 0) return;
    if (seen.insert({read.object, read.sample}).second) read.to[read.sample % 4 == 1 ? 20 : read.size - 9] ^= 4;
  };
  l3_data_set* far = nullptr;
  ASSERT_EQ(loader::open_data_set(store, "", l3_data_options_init(), &far, nullptr), L3_OK);
  l3_loader_options options = options_of(4);
  options.crop = L3_CROP_RANDOM;
  options.crop_width = options.crop_height = 20;
  std::vector<Unit> expected;
  for (const auto& batch : on(L3_DEVICE_CPU, options, 2)) expected.insert(expected.end(), batch.begin(), batch.end());
  options.device = L3_DEVICE_CUDA;
  {
    Loader loader(*far, options);
    ASSERT_EQ(l3_loader_start(loader.get(), 2, 0, nullptr), L3_OK);
    EXPECT_EQ(loader.units(), expected);
    EXPECT_EQ(seen.size(), 12u);
  }
  l3_data_close(far);
}

TEST_F(LoadersOnDevices, BringLabels) {
  draw_set({{8, 8}}, {L3_COLOUR_GRAY, 8}, 10);
  l3_loader_options options = options_of(4);
  options.device = L3_DEVICE_CUDA;
  Loader loader(*set(), options);
  while (const Batch batch = loader.next()) {
    const l3_tensor& labels = batch.info().device_labels;
    ASSERT_EQ(labels.shape[0], batch.info().units);
    std::vector<int64_t> got(batch.info().units);
    must(cudaMemcpy(got.data(), labels.data, got.size() * sizeof(int64_t), cudaMemcpyDeviceToHost));
    EXPECT_EQ(got, std::vector<int64_t>(batch.info().labels, batch.info().labels + batch.info().units));
  }
}

// Consumers only put their work into a stream and give the batch back at once. The emulated device runs that work as
// late as it may, in an order of its own.
TEST_F(LoadersOnDevices, LeaveBatchesAloneThatAStreamStillReads) {
  draw_set({{16, 8}}, {L3_COLOUR_GRAY, 8}, 24);
  l3_loader_options options = options_of(2);
  options.prefetch = 2;
  const std::vector<std::vector<Unit>> expected = on(L3_DEVICE_CPU, options, 0);
  options.device = L3_DEVICE_CUDA;
  constexpr size_t kBytes = 2 * 16 * 8;
  for (int round = 0; round < 8; ++round) {
    cudaStream_t stream = nullptr;
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    Loader loader(*set(), options);
    std::vector<void*> copies;
    void* scratch = nullptr;
    must(cudaMalloc(&scratch, 16));
    for (bool ended = false; !ended;) {
      // Several at once: what is opened next takes their memory while their copies still wait.
      std::vector<Batch> held;
      while (!ended && held.size() < 3) {
        held.push_back(loader.next());
        ended = !held.back();
      }
      // The consumer is busy with something else first.
      for (int i = 0; i < 100; ++i) must(cudaMemsetAsync(scratch, i, 16, stream));
      for (Batch& batch : held) {
        if (!batch) continue;
        void* copy = nullptr;
        must(cudaMalloc(&copy, kBytes));
        must(cudaMemcpyAsync(copy, batch.info().tensors[0].data, kBytes, cudaMemcpyDeviceToDevice, stream));
        copies.push_back(copy);
        batch.release(stream);
      }
    }
    must(cudaStreamSynchronize(stream));
    ASSERT_EQ(copies.size(), expected.size());
    for (size_t i = 0; i < copies.size(); ++i) {
      Bytes got(kBytes), wanted = expected[i][0].bytes;
      wanted.insert(wanted.end(), expected[i][1].bytes.begin(), expected[i][1].bytes.end());
      must(cudaMemcpy(got.data(), copies[i], kBytes, cudaMemcpyDeviceToHost));
      must(cudaFree(copies[i]));
      ASSERT_EQ(got, wanted) << round << " " << i;
    }
    must(cudaFree(scratch));
    must(cudaStreamDestroy(stream));
  }
}

TEST_F(LoadersOnDevices, EndAndBeginAtAnyMoment) {
  draw_set({{16, 16}}, {L3_COLOUR_GRAY, 8}, 20);
  l3_loader_options options = options_of(3);
  options.device = L3_DEVICE_CUDA;
  options.order = L3_ORDER_SHUFFLED;
  std::vector<Batch> held;
  for (int taken = 0; taken < 5; ++taken) {
    Loader loader(*set(), options);
    for (int i = 0; i < taken; ++i) held.push_back(loader.next());
    ASSERT_EQ(l3_loader_start(loader.get(), 4, 3, nullptr), L3_OK);
    held.push_back(loader.next());
  }
  for (size_t i = 0; i < held.size(); ++i) EXPECT_EQ(bytes_of(held[i].info(), 0).size(), 256u);
}

TEST_F(LoadersOnDevices, SayWhenThingsHappened) {
  draw_set({{32, 32}}, {L3_COLOUR_GRAY, 8}, 6);
  l3_loader_options options = options_of(3);
  options.device = L3_DEVICE_CUDA;
  Loader loader(*set(), options);
  while (const Batch batch = loader.next()) {
    const l3_batch_times& of = batch.info().times;
    EXPECT_LE(of.fetched, of.copy_begun);
    EXPECT_LE(of.copy_begun, of.copied);
    EXPECT_LE(of.copied, of.decoded);
    EXPECT_LE(of.decoded, of.given + 1000000);  // the device's clock and ours
  }
}

}  // namespace
