// Tests of the batch call: wrong arguments; that it only adds work to a stream; and what may change during a call.
#include <memory>

#include "gpu_wishes.h"

#ifdef L3_EMULATED_CUDA
#include "emulated_cuda/control.h"
#endif

namespace {

using namespace gpu_testing;
using codec_testing::encode;
using codec_testing::options_of;
using drawing::draw;

class GpuCall : public Gpu {};

// A few images of different methods, sizes and outputs.
std::vector<Wish> some_wishes(uint64_t seed, uint32_t count = 6) {
  Dice dice(seed);
  std::vector<Wish> wishes;
  for (uint32_t i = 0; i < count; ++i) {
    wishes.push_back(any_wish(dice, 90));
    wishes.back().image.flags &= ~uint32_t{L3_CUDA_STAGE};
    wishes.back().place = Place::device;
  }
  return wishes;
}
// Room for any of these.
l3_cuda_capacity capacity_for_each(const std::vector<std::vector<Wish>>& batches) {
  l3_cuda_capacity maximum{};
  for (const std::vector<Wish>& wishes : batches) {
    const l3_cuda_capacity one = capacity_for(wishes);
    maximum.images = std::max(maximum.images, one.images);
    maximum.models = std::max(maximum.models, one.models);
    maximum.tiles = std::max(maximum.tiles, one.tiles);
    maximum.staged_bytes = std::max(maximum.staged_bytes, one.staged_bytes);
    maximum.follow_bytes = std::max(maximum.follow_bytes, one.follow_bytes);
  }
  return maximum;
}

TEST_F(GpuCall, RefusesWhatIsWrongAndDoesNothing) {
  Batch batch(some_wishes(31));
  const Bytes results = batch.results_memory().get();
  using Change = std::function<void(l3_cuda_batch&)>;
  const std::pair<const char*, Change> wrong[] = {
      {"no size", [](l3_cuda_batch& b) { b.struct_size = 0; }},
      {"size of images", [](l3_cuda_batch& b) { b.image_bytes = 0; }},
      {"size of images too small", [](l3_cuda_batch& b) { b.image_bytes = 8; }},
      {"images", [](l3_cuda_batch& b) { b.images = nullptr; }},
      {"results", [](l3_cuda_batch& b) { b.results = nullptr; }},
      {"models", [](l3_cuda_batch& b) { b.models = nullptr, b.model_count = 1; }},
      {"more than the capacity", [](l3_cuda_batch& b) { b.image_count = b.capacity.images + 1; }},
      {"far more", [](l3_cuda_batch& b) { b.image_count = UINT32_MAX; }},
      {"no images", [](l3_cuda_batch& b) { b.capacity.images = 0; }},
      {"too many images", [](l3_cuda_batch& b) { b.capacity.images = 65536; }},
      {"no tiles", [](l3_cuda_batch& b) { b.capacity.tiles = 0; }},
      {"too many tiles", [](l3_cuda_batch& b) { b.capacity.tiles = (uint64_t{1} << 31) + 1; }},
      {"far too many tiles", [](l3_cuda_batch& b) { b.capacity.tiles = UINT64_MAX; }},
      {"too many staged bytes", [](l3_cuda_batch& b) { b.capacity.staged_bytes = UINT64_MAX; }},
      {"workspace", [](l3_cuda_batch& b) { b.workspace = nullptr; }},
      {"workspace at 128", [](l3_cuda_batch& b) { b.workspace = static_cast<uint8_t*>(b.workspace) + 128; }},
      {"workspace at 16", [](l3_cuda_batch& b) { b.workspace = static_cast<uint8_t*>(b.workspace) + 16; }},
      {"no workspace", [](l3_cuda_batch& b) { b.workspace_size = 0; }},
      {"small workspace", [](l3_cuda_batch& b) { --b.workspace_size; }},
      {"more tiles than the workspace has room for", [](l3_cuda_batch& b) { b.capacity.tiles += 100000; }},
  };
  const auto expect_refused = [&](const l3_cuda_batch* call) {
    l3_error error{};
    const l3_status status = l3_cuda_decode_batch_async(call, &error, nullptr);
    EXPECT_TRUE(status == L3_ERROR_ARGUMENT || status == L3_ERROR_BUFFER || status == L3_ERROR_LIMIT) << status;
    EXPECT_EQ(error.status, status);
    ASSERT_NE(error.reason, nullptr);
    EXPECT_STRNE(error.reason, "");
    EXPECT_EQ(l3_cuda_decode_batch_async(call, nullptr, nullptr), status);
  };
#ifdef L3_EMULATED_CUDA
  const uint64_t before = emulated::counts().work;
#endif
  for (const auto& [what, change] : wrong) {
    SCOPED_TRACE(what);
    l3_cuda_batch call = batch.call;
    change(call);
    expect_refused(&call);
  }
  expect_refused(nullptr);
#ifdef L3_EMULATED_CUDA
  EXPECT_EQ(emulated::counts().work, before);
#endif
  must(cudaDeviceSynchronize());
  EXPECT_TRUE(batch.results_memory().get() == results);
  for (size_t i = 0; i < batch.size(); ++i) {
    EXPECT_TRUE(batch.out(i).get() == noise_of(batch.out(i).size(), Arrangement{}.seed + i));
  }
  // And nothing of it lasts.
  ASSERT_NO_FATAL_FAILURE(batch.expect_all());
}

TEST_F(GpuCall, ExplainsResults) {
  const l3_cuda_result fine{L3_OK, 0, 0, L3_NO_TILE};
  EXPECT_EQ(l3_cuda_explain(&fine).status, L3_OK);
  EXPECT_STREQ(l3_cuda_explain(&fine).reason, "no error");
  Batch batch({wish_for({'n', 'o', ' ', 'L', '3'})});
  ASSERT_NO_FATAL_FAILURE(batch.expect_all());
  const l3_cuda_result result = batch.results()[0];
  const l3_error error = l3_cuda_explain(&result);
  EXPECT_EQ(error.status, L3_ERROR_NOT_L3);
  EXPECT_STREQ(error.reason, "not an L3 file: the signature is missing");
  // What no decoder has said.
  const l3_cuda_result strange{77, UINT32_MAX, 5, 6};
  EXPECT_NE(l3_cuda_explain(&strange).reason, nullptr);
}

TEST_F(GpuCall, OnlyPutsWorkIntoTheStream) {
  const Stream stream;
  Arrangement arrangement;
  arrangement.results = Place::pinned;
  Batch batch(some_wishes(32), arrangement);
  const Bytes before = batch.results_memory().get();
#ifdef L3_EMULATED_CUDA
  const emulated::Counts counts = emulated::counts();
  ASSERT_EQ(batch.launch(stream), L3_OK);
  EXPECT_EQ(emulated::counts().allocations, counts.allocations);
  EXPECT_GT(emulated::counts().work, counts.work);
  EXPECT_EQ(std::memcmp(batch.results_memory().at(), before.data(), before.size()), 0);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
#else
  // The first call may load the kernels.
  ASSERT_NO_FATAL_FAILURE(batch.expect_all(stream));
  size_t free_before = 0, free_after = 0, total = 0;
  must(cudaMemGetInfo(&free_before, &total));
  ASSERT_EQ(batch.launch(stream), L3_OK);
  must(cudaMemGetInfo(&free_after, &total));
  EXPECT_EQ(free_before, free_after);
#endif
  stream.wait();
  ASSERT_NO_FATAL_FAILURE(batch.expect_done());
#ifndef L3_EMULATED_CUDA
  must(cudaMemGetInfo(&free_after, &total));
  EXPECT_EQ(free_before, free_after);
#endif
}

TEST_F(GpuCall, TheBatchItselfMayGoAway) {
  const Stream stream;
  Batch batch(some_wishes(33));
  auto call = std::make_unique<l3_cuda_batch>(batch.call);
  ASSERT_EQ(l3_cuda_decode_batch_async(call.get(), nullptr, stream), L3_OK);
  std::memset(call.get(), 0xFF, sizeof(*call));
  call.reset();
  stream.wait();
  ASSERT_NO_FATAL_FAILURE(batch.expect_done());
}

// Files from device memory, from pinned memory, and brought in first: the same.
TEST_F(GpuCall, FilesFromAllPlaces) {
  std::vector<Wish> wishes;
  for (const Wish& like : some_wishes(34, 5)) {
    for (int i = 0; i < 3; ++i) {
      wishes.push_back(like);
      wishes.back().name += i == 0 ? " in device memory" : i == 1 ? " in pinned memory" : " brought in";
      wishes.back().place = i == 0 ? Place::device : Place::pinned;
      if (i == 2) wishes.back().image.flags |= L3_CUDA_STAGE;
    }
  }
  Batch batch(std::move(wishes));
  ASSERT_NO_FATAL_FAILURE(batch.expect_all());
}

// Files side by side, each at the next multiple of 16.
TEST_F(GpuCall, FilesInOneMemory) {
  const std::vector<Wish> wishes = some_wishes(35);
  Bytes all(16);
  std::vector<size_t> offsets;
  for (const Wish& wish : wishes) {
    offsets.push_back(all.size());
    all.insert(all.end(), wish.file.begin(), wish.file.end());
    all.resize((all.size() + 15) / 16 * 16, 0xEE);
  }
  const Memory memory(Place::device, all);
  Batch batch(wishes);
  std::vector<l3_cuda_image> images = batch.images();
  for (size_t i = 0; i < images.size(); ++i) images[i].data = memory.at(offsets[i]);
  must(cudaMemcpy(batch.images_memory().at(), images.data(), batch.images_memory().size(), cudaMemcpyHostToDevice));
  ASSERT_NO_FATAL_FAILURE(batch.expect_all());
}

TEST_F(GpuCall, WritesNothingBesideTheWorkspace) {
  constexpr size_t kBeside = 512;
  std::vector<Wish> wishes = some_wishes(36);
  wishes[2].image.flags |= L3_CUDA_STAGE;
  wishes[2].place = Place::pinned;
  Batch batch(wishes);
  for (uint64_t seed = 1; seed < 4; ++seed) {
    const size_t size = batch.call.workspace_size;
    const Bytes noise = noise_of(kBeside + size + kBeside, seed);
    const Memory memory(Place::device, noise);
    batch.call.workspace = memory.at(kBeside);
    ASSERT_NO_FATAL_FAILURE(batch.expect_all());
    const Bytes after = memory.get();
    EXPECT_TRUE(std::equal(noise.begin(), noise.begin() + kBeside, after.begin()));
    EXPECT_TRUE(std::equal(noise.end() - kBeside, noise.end(), after.end() - kBeside));
    batch.fill();
  }
}

// All bits set, none, and what another batch left there.
TEST_F(GpuCall, TheWorkspaceMayHoldAnything) {
  const std::vector<std::vector<Wish>> wishes{some_wishes(37), some_wishes(38, 3)};
  const l3_cuda_capacity capacity = capacity_for_each(wishes);
  Batch first(wishes[0], {}, capacity), second(wishes[1], {}, capacity);
  second.call.workspace = first.call.workspace;
  for (const int value : {0, 255}) {
    must(cudaMemset(first.call.workspace, value, first.call.workspace_size));
    for (Batch* batch : {&first, &second, &first}) {
      batch->fill();
      ASSERT_NO_FATAL_FAILURE(batch->expect_all());
    }
  }
}

// ---- streams

// What comes before in the stream is seen, and what comes after does not matter.
TEST_F(GpuCall, KeepsTheOrderOfItsStream) {
  const Stream stream;
  Batch batch(some_wishes(39));
  std::vector<Memory> pinned;
  for (size_t i = 0; i < batch.size(); ++i) {
    const Memory& file = batch.file(i);
    pinned.emplace_back(Place::pinned, file.get());
    must(cudaMemset(file.at(), 0xAA, file.size()));
  }
  const Memory images(Place::pinned, batch.images_memory().get());
  must(cudaMemset(batch.images_memory().at(), 0, images.size()));
  must(cudaDeviceSynchronize());

  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < batch.size(); ++i) {
      must(cudaMemcpyAsync(batch.file(i).at(), pinned[i].at(), pinned[i].size(), cudaMemcpyHostToDevice, stream));
    }
    must(cudaMemcpyAsync(batch.images_memory().at(), images.at(), images.size(), cudaMemcpyHostToDevice, stream));
    ASSERT_EQ(batch.launch(stream), L3_OK);
    for (size_t i = 0; i < batch.size(); ++i) {
      must(cudaMemsetAsync(batch.file(i).at(), 0xFF, batch.file(i).size(), stream));
    }
    must(cudaMemsetAsync(batch.images_memory().at(), 0xFF, images.size(), stream));
    must(cudaMemsetAsync(batch.call.workspace, 0xFF, batch.call.workspace_size, stream));
  }
  stream.wait();
  ASSERT_NO_FATAL_FAILURE(batch.expect_done());
}

TEST_F(GpuCall, CallsOfOneStreamShareAWorkspace) {
  const Stream stream;
  const std::vector<std::vector<Wish>> wishes{some_wishes(40), some_wishes(41, 2), some_wishes(42)};
  const l3_cuda_capacity capacity = capacity_for_each(wishes);
  std::vector<std::unique_ptr<Batch>> batches;
  for (const std::vector<Wish>& some : wishes) {
    batches.push_back(std::make_unique<Batch>(some, Arrangement{}, capacity));
    batches.back()->call.workspace = batches[0]->call.workspace;
  }
  for (int round = 0; round < 2; ++round) {
    for (const auto& batch : batches) ASSERT_EQ(batch->launch(stream), L3_OK);
  }
  stream.wait();
  for (const auto& batch : batches) ASSERT_NO_FATAL_FAILURE(batch->expect_done());
}

TEST_F(GpuCall, TwoStreamsWithTwoWorkspaces) {
  const Stream streams[2];
  Batch one(some_wishes(43)), other(some_wishes(44));
  for (uint32_t round = 0; round < 3 * scale().rounds; ++round) {
    one.fill();
    other.fill();
    must(cudaDeviceSynchronize());
    for (int again = 0; again < 2; ++again) {
      ASSERT_EQ(one.launch(streams[0]), L3_OK);
      ASSERT_EQ(other.launch(streams[1]), L3_OK);
    }
    streams[1].wait();
    ASSERT_NO_FATAL_FAILURE(other.expect_done());
    streams[0].wait();
    ASSERT_NO_FATAL_FAILURE(one.expect_done());
  }
}

// ---- graphs

TEST_F(GpuCall, ACapturedCallReadsItsImagesAnew) {
  const Stream stream;
  std::vector<std::vector<Wish>> wishes{some_wishes(45), some_wishes(46), some_wishes(47)};
  wishes[1][3] = nothing();
  wishes[2][1].file[9] ^= 0x55;  // the head's check is wrong
  wishes[2][4].image.flags |= L3_CUDA_STAGE;
  wishes[2][4].place = Place::pinned;
  const l3_cuda_capacity capacity = capacity_for_each(wishes);
  Arrangement arrangement;
  arrangement.images = arrangement.results = Place::pinned;
  std::vector<std::unique_ptr<Batch>> batches;
  batches.reserve(wishes.size());
  for (const std::vector<Wish>& some : wishes) batches.push_back(std::make_unique<Batch>(some, arrangement, capacity));
  const Batch& captured = *batches[0];

  must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  ASSERT_EQ(captured.launch(stream), L3_OK);
  cudaGraph_t graph = nullptr;
  must(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec = nullptr;
  must(cudaGraphInstantiate(&exec, graph, 0));
  must(cudaGraphDestroy(graph));

  for (const size_t k : {size_t{0}, size_t{1}, size_t{2}, size_t{0}}) {
    Batch& batch = *batches[k];
    SCOPED_TRACE("images of batch " + std::to_string(k));
    const std::vector<l3_cuda_image> images = batch.images();
    batch.fill();
    std::memcpy(captured.images_memory().at(), images.data(), captured.images_memory().size());
    must(cudaGraphLaunch(exec, stream));
    stream.wait();
    const std::vector<l3_cuda_result> results = captured.results();
    for (size_t i = 0; i < batch.size(); ++i) {
      SCOPED_TRACE("image " + std::to_string(i));
      ASSERT_NO_FATAL_FAILURE(batch.expect_result(i, results[i]));
      ASSERT_NO_FATAL_FAILURE(batch.expect_output(i));
    }
  }
  // Several times without waiting.
  batches[0]->fill();
  for (int i = 0; i < 3; ++i) must(cudaGraphLaunch(exec, stream));
  stream.wait();
  ASSERT_NO_FATAL_FAILURE(batches[0]->expect_done());
  must(cudaGraphExecDestroy(exec));
}

// ---- errors that were there before

// What a call of the caller's own left behind is the caller's: this call works, and says so.
TEST_F(GpuCall, AnErrorOfTheCallersBeforeIsNotOurs) {
  Batch batch(some_wishes(51));
  void* too_much = nullptr;
  ASSERT_NE(cudaMalloc(&too_much, size_t{1} << 60), cudaSuccess);  // not asked for with cudaGetLastError()
  l3_error error{};
  EXPECT_EQ(batch.launch(nullptr, &error), L3_OK) << error.reason;
  (void)cudaGetLastError();
  must(cudaDeviceSynchronize());
  ASSERT_NO_FATAL_FAILURE(batch.expect_done());
}

// ---- devices that fail

#ifdef L3_EMULATED_CUDA

TEST_F(GpuCall, WorkThatIsRefusedIsAnErrorOfTheDevice) {
  Batch batch(some_wishes(48));
  uint64_t failed = 0;
  for (;; ++failed) {
    ASSERT_LT(failed, 100u);
    emulated::control().work_accepted = failed;
    l3_error error{};
    const l3_status status = batch.launch(nullptr, &error);
    emulated::control().work_accepted = UINT64_MAX;
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);  // it has been reported
    must(cudaDeviceSynchronize());
    if (status == L3_OK) break;
    ASSERT_EQ(status, L3_ERROR_DEVICE);
    EXPECT_EQ(error.status, L3_ERROR_DEVICE);
    ASSERT_NE(error.reason, nullptr);
  }
  EXPECT_GT(failed, 1u);
  batch.fill();
  ASSERT_NO_FATAL_FAILURE(batch.expect_all());
}

TEST_F(GpuCall, DevicesThatCannot) {
  Batch batch(some_wishes(49));
  const auto expect_failure = [&] {
    l3_error error{};
    EXPECT_EQ(l3_cuda_check_device(&error), L3_ERROR_DEVICE);
    EXPECT_EQ(error.status, L3_ERROR_DEVICE);
    ASSERT_NE(error.reason, nullptr);
    EXPECT_EQ(l3_cuda_check_device(nullptr), L3_ERROR_DEVICE);
    EXPECT_EQ(batch.launch(nullptr, &error), L3_ERROR_DEVICE);
    EXPECT_EQ(error.status, L3_ERROR_DEVICE);
  };
  emulated::control().devices = 0;
  expect_failure();
  emulated::control().devices = 1;
  emulated::control().has_code = false;
  expect_failure();
  emulated::control().has_code = true;
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(l3_cuda_check_device(nullptr), L3_OK);
  ASSERT_NO_FATAL_FAILURE(batch.expect_all());
}

// Results do not depend on how many blocks run at once.
TEST_F(GpuCall, ManyMultiprocessorsOrOne) {
  for (const int count : {1, 3, 40}) {
    emulated::control().multiprocessors = count;
    Batch batch(some_wishes(50, 3));
    ASSERT_NO_FATAL_FAILURE(batch.expect_all());
  }
  emulated::control().multiprocessors = emulated::Control{}.multiprocessors;
}

// The largest room that a tile needs, beside the most tables, on devices whose blocks have 99 KB (sm_86, 89 and 120).
// The tile is wrong: where no warp had room for it, nobody would say so.
TEST_F(GpuCall, TheLargestTileFitsOnTheSmallestDevice) {
  emulated::control().shared_of_block = 99 << 10;
  emulated::control().shared_of_processor = 100 << 10;
  Dice dice(52);
  Bytes model;
  while (model.empty() || model[2] != 24) model = by_hand::any_model(dice, 2);
  const Drawing d = draw({1024, 480}, {L3_COLOUR_GRAY_ALPHA, 8}, Pattern::flat);
  l3_encode_options options = options_of(L3_METHOD_FAST, 1024, 480, 1);
  by_hand::Parts parts = by_hand::take_apart(encode(d, options));
  ASSERT_EQ(parts.tiles.size(), 1u);
  parts.sections.push_back({L3_SECTION_MODEL, model});
  parts.tiles[0] = {3, 0, {}, dice.bytes(64)};
  Batch batch({wish_for(by_hand::put_together(parts))});
  ASSERT_NO_FATAL_FAILURE(batch.expect_all());
  EXPECT_NE(batch.expected_of(0).error.status, L3_OK);
  EXPECT_EQ(batch.expected_of(0).error.tile, 0u);
  emulated::control().shared_of_block = emulated::Control{}.shared_of_block;
  emulated::control().shared_of_processor = emulated::Control{}.shared_of_processor;
}

#endif

}  // namespace
