// The loader's CUDA device against libl3, on the emulated GPU.
#include <thread>

#include "loader_device_testing.h"

namespace {

using namespace device_testing;
using drawing::draw;
using drawing::Pattern;
using gpu_testing::Memory;
using gpu_testing::Place;

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

// They need room in the workspace, also if only a part of the file is there.
TEST_F(LoaderDevice, PixelsThatFollowOthers) {
  const auto device = open_device();
  const auto slot = make_slot(*device);
  Dice dice(5);
  std::vector<Ask> asks = any_asks(5, 2);
  for (const gpu_testing::Vector& vector : gpu_testing::vectors_with("token_follow")) {
    asks.push_back(ask_for(vector.file));
    for (int i = 0; i < 3; ++i) asks.push_back(any_ask(dice, vector.file));
  }
  ASSERT_GE(asks.size(), 18u) << "L3_VECTORS must name a folder that spec/vectors/build.py has filled";
  Round round(*device, std::move(asks));
  ASSERT_NO_FATAL_FAILURE(round.expect_all(*slot));
  EXPECT_EQ(round.bad_images(), 0u);
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

// The same name in images of another kind is another model to the device: no one behind it is out of room.
TEST_F(LoaderDevice, AModelOfTheWrongKindTakesNobodysRoom) {
  const auto device = open_device();
  const auto slot = make_slot(*device);
  Dice dice(8);
  const Model model = any_named_model(dice, 3);
  const Bytes file = named_file(draw({40, 30}, {L3_COLOUR_RGB, 8}, Pattern::natural), model.get());
  by_hand::Parts gray = by_hand::take_apart(file);
  gray.header[32] = 1;
  gray.header[36] = L3_COLOUR_GRAY;
  const Bytes own = by_hand::any_model(dice, 1);
  l3_encode_options options = codec_testing::options_of(L3_METHOD_DENSE, 32, 32, 1);
  options.model = own.data();
  options.model_size = own.size();
  options.model_origin = L3_MODEL_OWN;
  const Bytes last = codec_testing::encode(draw({40, 30}, {L3_COLOUR_GRAY, 8}, Pattern::natural), options);
  Round round(*device, {ask_for(file), ask_for(by_hand::put_together(gray)), ask_for(last)}, {model.get()});
  ASSERT_NO_FATAL_FAILURE(round.expect_all(*slot));
  EXPECT_EQ(round.bad_images(), 1u);
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
      EXPECT_TRUE(emulated::is_idle());
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
    l3_tensor_options wanted = *images[1].wanted;
    spoil(work, round.images()[1], wanted);
    if (std::memcmp(&wanted, images[1].wanted, sizeof(wanted)) != 0) round.images()[1].wanted = &wanted;
    l3_error error{};
    EXPECT_EQ(slot->begin(work, &error), L3_ERROR_ARGUMENT);
    EXPECT_EQ(error.status, L3_ERROR_ARGUMENT);
    round.images() = images;
  };
  using Work = loader::DeviceWork;
  using Image = loader::DeviceImage;
  refuses([](Work&, Image& image, l3_tensor_options&) { image.at += 8; });
  refuses([](Work&, Image& image, l3_tensor_options&) { image.at = uint64_t{1} << 32; });
  refuses([](Work&, Image& image, l3_tensor_options&) { image.size = UINT64_MAX; });
  const l3_range outside{16, UINT64_MAX - 100};
  refuses([&](Work&, Image& image, l3_tensor_options&) { image.present = {&outside, 1}; });
  refuses([](Work&, Image& image, l3_tensor_options&) { image.width = 0; });
  refuses([](Work&, Image& image, l3_tensor_options&) { image.out = nullptr; });
  refuses([](Work&, Image&, l3_tensor_options& wanted) { wanted.type = L3_VALUE_STORED; });
  refuses([](Work&, Image&, l3_tensor_options& wanted) { wanted.type = L3_VALUE_F32 + 1; });
  refuses([](Work&, Image&, l3_tensor_options& wanted) { wanted.layout = 2; });
  const loader::DeviceCopy copy{0, UINT64_MAX, round.output()};
  refuses([&](Work& work, Image&, l3_tensor_options&) { work.copies = {&copy, 1}; });
  int not_an_output = 0;
  refuses([&](Work& work, Image&, l3_tensor_options&) { work.output = &not_an_output; });
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

// ---- the library

TEST_F(LoaderDevice, DevicesThatAreNot) {
  const auto refused = [](uint32_t version, uint32_t number) {
    l3_error error{};
    EXPECT_EQ(l3_data_open_cuda_device(version, number, &error), nullptr);
    EXPECT_EQ(l3_data_open_cuda_device(version, number, nullptr), nullptr);
    EXPECT_EQ(error.status, L3_ERROR_DEVICE);
    return std::string(error.reason);
  };
  EXPECT_EQ(refused(loader::kDeviceVersion, 1), "there is no CUDA device with this number");
  EXPECT_EQ(refused(loader::kDeviceVersion + 1, 0), "libl3_data_cuda.so has another version");
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
  EXPECT_STREQ(error.reason, "CUDA device 2: there is no CUDA device with this number");
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
  EXPECT_NE(std::string(error.reason).find("this build has no CUDA part: libl3_data_cuda.so is not next to"),
            std::string::npos)
      << error.reason;
}

// ---- encoding

struct Pixels {
  explicit Pixels(const drawing::Drawing& d) : memory(Place::device, d.pixels) {
    image.pixels = memory.at();
    image.width = d.width;
    image.height = d.height;
    image.channels = d.channels();
    image.bits = d.bits;
    image.tile_width = image.tile_height = 64;
    expected = codec_testing::encode(d, codec_testing::tiles_of(64, 64));
  }

  Memory memory;
  loader::DevicePixels image;
  Bytes expected;
};

void expect_files(loader::Device& device, uint64_t seed, uint32_t count, cudaStream_t stream) {
  Dice dice(seed);
  std::vector<Pixels> pixels;
  std::vector<loader::DevicePixels> images;
  for (uint32_t i = 0; i < count; ++i) {
    pixels.emplace_back(
        draw({1 + dice.roll(90), 1 + dice.roll(50)}, {L3_COLOUR_RGB, dice.chance(2) ? 12u : 8u}, Pattern::natural));
    images.push_back(pixels.back().image);
  }
  images.push_back(images[0]);
  images.back().bits = 17;
  std::vector<loader::DeviceFile> files(images.size());
  l3_error error{};
  ASSERT_EQ(device.encode(images, stream, files, &error), L3_OK) << error.reason;
  for (size_t i = 0; i < pixels.size(); ++i) {
    EXPECT_EQ(files[i].error.status, L3_OK);
    EXPECT_TRUE(files[i].bytes == pixels[i].expected);
  }
  EXPECT_EQ(files.back().error.status, L3_ERROR_ARGUMENT);
  EXPECT_TRUE(files.back().bytes.empty());
}

// For several threads at once, with more images than before and with fewer.
TEST_F(LoaderDevice, EncodesAsProcessorsDo) {
  const auto device = open_device();
  const gpu_testing::Stream streams[2];
  std::thread other([&] {
    for (const uint32_t count : {2u, 9u}) expect_files(*device, 81 + count, count, streams[0]);
  });
  for (const uint32_t count : {5u, 1u}) expect_files(*device, 91 + count, count, streams[1]);
  other.join();
  EXPECT_EQ(device->encode({}, nullptr, {}, nullptr), L3_OK);
}

TEST_F(LoaderDevice, EncodingNeedsMemoryAndAStreamThatIsNotCapturing) {
  const auto device = open_device();
  uint64_t made = 0;
  for (bool done = false; !done; ++made) {
    ASSERT_LT(made, 100u);
    const Pixels pixels(draw({40, 30}, {L3_COLOUR_RGB, 8}, Pattern::natural));
    loader::DeviceFile file;
    l3_error error{};
    emulated::control().resources_accepted = made;
    const l3_status status = device->encode({&pixels.image, 1}, nullptr, {&file, 1}, &error);
    emulated::control().resources_accepted = UINT64_MAX;
    done = status == L3_OK;
    EXPECT_TRUE(done ? file.bytes == pixels.expected : status == L3_ERROR_MEMORY || status == L3_ERROR_DEVICE);
  }
  EXPECT_GT(made, 3u);
  const gpu_testing::Stream stream;
  must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  loader::DevicePixels image;
  loader::DeviceFile file;
  l3_error error{};
  EXPECT_EQ(device->encode({&image, 1}, stream, {&file, 1}, &error), L3_ERROR_ARGUMENT);
  EXPECT_STREQ(error.reason, "the stream is capturing a graph");
  cudaGraph_t graph = nullptr;
  must(cudaStreamEndCapture(stream, &graph));
  must(cudaGraphDestroy(graph));
}

}  // namespace
