// Tests of l3_cuda_encode_batch_async: its files are those of l3_encode with the method fast, byte for byte.
#include <functional>

#include "gpu_testing.h"
#include "l3/l3_cuda_encode.h"

#ifdef L3_EMULATED_CUDA
#include "emulated_cuda/control.h"
#endif

namespace {

using namespace gpu_testing;
using codec_testing::encode;
using codec_testing::tiles_of;
using drawing::draw;
using drawing::Type;

class GpuEncode : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    if (IsSkipped()) return;
    ASSERT_EQ(l3_cuda_check_encoder(nullptr), L3_OK);
  }
};

// An image, and how its samples lie in the device's memory.
struct Picture {
  Drawing drawing;
  uint32_t tile_width = 0, tile_height = 0;
  bool is_planar = false, says_strides = false;
  size_t before = 0, row_gap = 0, plane_gap = 0;  // in samples
  Place place = Place::device;

  size_t sample() const { return drawing.sample_bytes(); }
  size_t row() const { return (size_t{drawing.width} * (is_planar ? 1 : drawing.channels()) + row_gap) * sample(); }
  size_t plane() const { return row() * drawing.height + plane_gap * sample(); }
  // Bytes that no sample uses are noise.
  Bytes bytes() const {
    const uint32_t channels = drawing.channels();
    const size_t last_row = size_t{drawing.width} * (is_planar ? 1 : channels) * sample();  // no gap after it
    const size_t end = row() * (drawing.height - 1) + last_row + (is_planar ? plane() * (channels - 1) : 0);
    Bytes all = noise_of(before * sample() + end, drawing.width);
    for (uint32_t y = 0; y < drawing.height; ++y) {
      for (uint32_t x = 0; x < drawing.width; ++x) {
        for (uint32_t c = 0; c < channels; ++c) {
          const size_t column = is_planar ? x : size_t{x} * channels + c;
          const size_t to = (before + column) * sample() + y * row() + (is_planar ? c * plane() : 0);
          const uint32_t value = drawing.sample(x, y, c);
          std::memcpy(&all[to], &value, sample());  // little-endian
        }
      }
    }
    return all;
  }
  l3_cuda_source source() const {
    l3_cuda_source source = l3_cuda_source_init();
    source.width = drawing.width;
    source.height = drawing.height;
    source.channels = drawing.channels();
    source.bits = drawing.bits;
    source.layout = is_planar ? L3_CUDA_CHW : L3_CUDA_HWC;
    source.premultiplied = drawing.alpha == L3_ALPHA_PREMULTIPLIED;
    source.tile_width = tile_width;
    source.tile_height = tile_height;
    if (row_gap != 0 || says_strides) source.row_stride = row();
    if (is_planar && (plane_gap != 0 || says_strides)) source.plane_stride = plane();
    return source;
  }
  Bytes expected() const { return encode(drawing, tiles_of(tile_width, tile_height)); }
  std::string name() const {
    return drawing.name() + " tiles " + std::to_string(tile_width) + "x" + std::to_string(tile_height) +
           (is_planar ? " planar" : "");
  }
};

// The memory of a call. Files have noise behind them.
class Call {
 public:
  static constexpr size_t kBeside = 64;

  explicit Call(std::vector<Picture> pictures, l3_cuda_encode_capacity capacity = {})
      : batch(l3_cuda_encode_batch_init()), pictures_(std::move(pictures)) {
    l3_cuda_encode_capacity needed{};
    for (const Picture& picture : pictures_) {
      l3_cuda_source source = picture.source();
      EXPECT_EQ(l3_cuda_add_to_capacity(&needed, &source), L3_OK);
      source.out_size = l3_cuda_encode_bound(&source);
      pixels_.emplace_back(picture.place, picture.bytes());
      files_.emplace_back(Place::device, noise_of(source.out_size + kBeside, files_.size()));
      source.pixels = pixels_.back().at(picture.before * picture.sample());
      source.out = files_.back().at();
      sources.push_back(source);
    }
    batch.capacity = capacity.images != 0 ? capacity : needed;
    sources_ = Memory(Place::pinned, sources.size() * sizeof(l3_cuda_source));
    results_ = Memory(Place::pinned, sources.size() * sizeof(l3_cuda_encoded));
    workspace_ = Memory(Place::device, noise_of(l3_cuda_encode_workspace_size(&batch.capacity), 5));
    batch.image_count = sources.size();
    batch.images = sources_.at<l3_cuda_source>();
    batch.results = results_.at<l3_cuda_encoded>();
    batch.workspace = workspace_.at();
    batch.workspace_size = workspace_.size();
  }

  l3_status launch(cudaStream_t stream = nullptr, l3_error* error = nullptr) {
    std::memcpy(sources_.at(), sources.data(), sources_.size());
    return l3_cuda_encode_batch_async(&batch, error, stream);
  }
  void run() {
    l3_error error{};
    ASSERT_EQ(launch(nullptr, &error), L3_OK) << error.reason;
    must(cudaDeviceSynchronize());
  }
  const l3_cuda_encoded& result(size_t i) const { return results_.at<l3_cuda_encoded>()[i]; }
  Bytes file(size_t i) const { return files_[i].get(); }

  void expect_file(size_t i) const {
    SCOPED_TRACE(pictures_[i].name());
    ASSERT_EQ(result(i).result.status, uint32_t{L3_OK}) << l3_cuda_explain(&result(i).result).reason;
    const Bytes expected = pictures_[i].expected(), all = file(i);
    ASSERT_EQ(result(i).size, expected.size());
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), all.begin()));
    expect_untouched(i, expected.size());
  }
  // Nothing was written from here on.
  void expect_untouched(size_t i, size_t from) const {
    const Bytes noise = noise_of(files_[i].size(), i), all = file(i);
    ASSERT_TRUE(std::equal(noise.begin() + static_cast<ptrdiff_t>(from), noise.end(),
                           all.begin() + static_cast<ptrdiff_t>(from)));
  }
  void expect_failure(size_t i, l3_status status) const {
    EXPECT_EQ(result(i).result.status, uint32_t{status}) << l3_cuda_explain(&result(i).result).reason;
    expect_untouched(i, 0);
  }
  void expect_all() {
    ASSERT_NO_FATAL_FAILURE(run());
    for (size_t i = 0; i < sources.size(); ++i) ASSERT_NO_FATAL_FAILURE(expect_file(i));
  }

  l3_cuda_encode_batch batch;
  std::vector<l3_cuda_source> sources;

 private:
  std::vector<Picture> pictures_;
  std::vector<Memory> pixels_, files_;
  Memory sources_, results_, workspace_;
};

std::vector<Type> types_without_palette() {
  std::vector<Type> types;
  for (const Type& type : drawing::all_types()) {
    if (type.colour != L3_COLOUR_PALETTE) types.push_back(type);
  }
  return types;
}

Picture any_picture(Dice& dice, Size size, Type type, Pattern pattern) {
  Picture picture{draw(size, type, pattern)};
  for (Bytes* section : {&picture.drawing.transparency, &picture.drawing.colour_space, &picture.drawing.icc,
                         &picture.drawing.exif, &picture.drawing.metadata}) {
    section->clear();
  }
  if (type.colour == L3_COLOUR_GRAY_ALPHA || type.colour == L3_COLOUR_RGB_ALPHA) {
    picture.drawing.alpha = dice.chance(2) ? L3_ALPHA_STRAIGHT : L3_ALPHA_PREMULTIPLIED;
  }
  picture.is_planar = dice.chance(2);
  picture.says_strides = dice.chance(3);
  picture.before = dice.roll(4);
  if (dice.chance(2)) picture.row_gap = dice.roll(5);
  if (dice.chance(2)) picture.plane_gap = dice.roll(5);
  if (dice.chance(4)) picture.place = Place::pinned;
  if (dice.chance(2)) {
    picture.tile_width = 32 * (1 + dice.roll(4));
    picture.tile_height = 32 * (1 + dice.roll(4));
  }
  return picture;
}

TEST_F(GpuEncode, AllTypesAndPatterns) {
  Dice dice(61);
  for (const Pattern pattern : drawing::kPatterns) {
    SCOPED_TRACE(drawing::name_of(pattern));
    std::vector<Picture> pictures;
    for (const Type& type : types_without_palette()) {
      pictures.push_back(any_picture(dice, {1 + dice.roll(80), 1 + dice.roll(60)}, type, pattern));
    }
    Call call(std::move(pictures));
    ASSERT_NO_FATAL_FAILURE(call.expect_all());
  }
}

TEST_F(GpuEncode, AllSizes) {
  Dice dice(62);
  const std::vector<Type> types = types_without_palette();
  for (const Type& type : {Type{L3_COLOUR_RGB, 8}, Type{L3_COLOUR_GRAY, 12}, Type{L3_COLOUR_GRAY_ALPHA, 8}}) {
    std::vector<Picture> pictures;
    for (const Size& size : drawing::kSizes) {
      pictures.push_back(any_picture(dice, size, type, dice.chance(3) ? Pattern::noise : Pattern::natural));
    }
    Call call(std::move(pictures));
    ASSERT_NO_FATAL_FAILURE(call.expect_all());
  }
}

// Tiles of every method, and every predictor and transform, in one large image.
TEST_F(GpuEncode, ALargeImage) {
  Dice dice(63);
  Drawing large = draw({scale().edge * 2, scale().edge}, {L3_COLOUR_RGB, 8}, Pattern::natural);
  for (uint32_t y = 0; y < large.height; ++y) {
    for (uint32_t x = 0; x < large.width; ++x) {
      for (uint32_t c = 0; c < 3; ++c) {
        if (x < 64 && y < 64) large.set_sample(x, y, c, 7 + c);
        if (x >= 64 && x < 128 && y < 64) large.set_sample(x, y, c, dice.byte());
        if (y >= 64 && x < 64) large.set_sample(x, y, c, x * 3 + y * (c + 1));
      }
    }
  }
  for (const uint32_t edge : {32u, 64u, 128u, 512u}) {
    Picture picture{large};
    picture.tile_width = picture.tile_height = edge;
    Call call({picture});
    ASSERT_NO_FATAL_FAILURE(call.expect_all());
  }
}

// The pixels of all files that decode in the folder of test vectors, and in L3_IMAGES, which may name another one. The
// files are decoded again.
TEST_F(GpuEncode, ImagesOfFiles) {
  for (const char* variable : {"L3_VECTORS", "L3_IMAGES"}) {
    const char* const folder = std::getenv(variable);
    if (folder == nullptr) continue;
    uint32_t count = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.path().extension() != ".l3") continue;
      std::ifstream in(entry.path(), std::ios::binary);
      const Bytes file{std::istreambuf_iterator<char>(in), {}};
      l3_info info = l3_info_init();
      const l3_decode_options options = cpu_options(wish_for(file));
      if (l3_read_info(file.data(), file.size(), nullptr, &info, nullptr) != L3_OK) continue;
      if (folder == std::getenv("L3_VECTORS") && uint64_t{info.width} * info.height > scale().max_pixels) continue;
      Drawing d{};
      d.width = info.width;
      d.height = info.height;
      d.bits = info.bits;
      d.colour = info.colour == L3_COLOUR_PALETTE ? L3_COLOUR_GRAY : static_cast<l3_colour>(info.colour);
      d.alpha = static_cast<l3_alpha>(info.alpha);
      d.pixels.resize(d.row_bytes() * d.height);
      if (l3_decode(file.data(), file.size(), &options, d.pixels.data(), d.pixels.size(), 0, nullptr) != L3_OK)
        continue;
      SCOPED_TRACE(entry.path().string());
      Call call({Picture{d}});
      ASSERT_NO_FATAL_FAILURE(call.expect_all());
      Batch decoded({wish_for(Picture{d}.expected())});
      ASSERT_NO_FATAL_FAILURE(decoded.expect_all());
      ++count;
    }
    EXPECT_GT(count, 5u) << folder;
  }
}

TEST_F(GpuEncode, EmptySlotsAndOneImageBesideOthers) {
  Dice dice(64);
  std::vector<Picture> pictures;
  for (uint32_t i = 0; i < 70; ++i) {
    pictures.push_back(any_picture(dice, {1 + dice.roll(20), 1 + dice.roll(20)},
                                   dice.chance(2) ? Type{L3_COLOUR_RGB, 8} : Type{L3_COLOUR_GRAY, 10},
                                   Pattern::natural));
  }
  Call call(pictures);
  for (const size_t i : {0u, 31u, 32u, 50u, 69u}) call.sources[i] = l3_cuda_source_init();
  ASSERT_NO_FATAL_FAILURE(call.run());
  for (size_t i = 0; i < pictures.size(); ++i) {
    if (call.sources[i].pixels != nullptr) {
      ASSERT_NO_FATAL_FAILURE(call.expect_file(i));
    } else {
      call.expect_failure(i, L3_OK);
      EXPECT_EQ(call.result(i).size, 0u);
    }
  }
}

TEST_F(GpuEncode, WrongDescriptors) {
  using Change = std::function<void(l3_cuda_source&)>;
  const std::pair<const char*, Change> wrong[] = {
      {"no pixels", [](l3_cuda_source& s) { s.pixels = nullptr; }},
      {"no out", [](l3_cuda_source& s) { s.out = nullptr; }},
      {"out at 8", [](l3_cuda_source& s) { s.out = static_cast<uint8_t*>(s.out) + 8; }},
      {"no width", [](l3_cuda_source& s) { s.width = 0; }},
      {"no height", [](l3_cuda_source& s) { s.height = 0; }},
      {"width", [](l3_cuda_source& s) { s.width = (1u << 20) + 1; }},
      {"height", [](l3_cuda_source& s) { s.height = UINT32_MAX; }},
      {"no channels", [](l3_cuda_source& s) { s.channels = 0; }},
      {"channels", [](l3_cuda_source& s) { s.channels = 5; }},
      {"no bits", [](l3_cuda_source& s) { s.bits = 0; }},
      {"bits", [](l3_cuda_source& s) { s.bits = 17; }},
      {"layout", [](l3_cuda_source& s) { s.layout = 2; }},
      {"premultiplied without alpha", [](l3_cuda_source& s) { s.premultiplied = 1; }},
      {"premultiplied", [](l3_cuda_source& s) { s.channels = 4, s.premultiplied = 2; }},
      {"tile width", [](l3_cuda_source& s) { s.tile_width = 48; }},
      {"tile height", [](l3_cuda_source& s) { s.tile_height = 1056; }},
      {"tile", [](l3_cuda_source& s) { s.tile_width = s.tile_height = 1024; }},
      {"stride below a row", [](l3_cuda_source& s) { s.row_stride = 1; }},
      {"odd stride", [](l3_cuda_source& s) { s.bits = 16, s.row_stride = 1001; }},
      {"odd pixels", [](l3_cuda_source& s) { s.bits = 16, s.pixels = static_cast<const uint8_t*>(s.pixels) + 1; }},
  };
  const Picture sound{draw({40, 30}, {L3_COLOUR_RGB, 8}, Pattern::natural)};
  for (const auto& [what, change] : wrong) {
    SCOPED_TRACE(what);
    Call call({sound, sound, sound});
    change(call.sources[1]);
    ASSERT_NO_FATAL_FAILURE(call.run());
    call.expect_failure(1, L3_ERROR_ARGUMENT);
    EXPECT_EQ(call.result(1).size, 0u);
    ASSERT_NO_FATAL_FAILURE(call.expect_file(0));
    ASSERT_NO_FATAL_FAILURE(call.expect_file(2));
    l3_cuda_encode_capacity capacity{};
    if (l3_cuda_encode_bound(&call.sources[1]) == 0) {
      EXPECT_EQ(l3_cuda_add_to_capacity(&capacity, &call.sources[1]), L3_ERROR_ARGUMENT);
      EXPECT_EQ(capacity.images + capacity.tiles + capacity.payload_bytes, 0u);
    }
  }
  EXPECT_EQ(l3_cuda_encode_bound(nullptr), 0u);
  EXPECT_EQ(l3_cuda_encode_workspace_size(nullptr), 0u);
  EXPECT_EQ(l3_cuda_add_to_capacity(nullptr, nullptr), L3_ERROR_ARGUMENT);
}

TEST_F(GpuEncode, SamplesAboveTheRange) {
  for (const Type& type : {Type{L3_COLOUR_RGB, 5}, Type{L3_COLOUR_GRAY, 12}}) {
    Drawing bad = draw({150, 40}, type, Pattern::natural);
    bad.set_sample(149, 39, 0, 1u << type.bits);
    Drawing flat = draw({40, 40}, type, Pattern::flat);
    for (uint32_t y = 0; y < 40; ++y) {
      for (uint32_t x = 0; x < 40; ++x) {
        for (uint32_t c = 0; c < flat.channels(); ++c) flat.set_sample(x, y, c, 1u << type.bits);
      }
    }
    const Picture sound{draw({50, 40}, type, Pattern::natural)};
    Call call({sound, {bad}, {flat}, sound});
    ASSERT_NO_FATAL_FAILURE(call.run());
    for (const size_t i : {1u, 2u}) {
      call.expect_failure(i, L3_ERROR_ARGUMENT);
      EXPECT_STREQ(l3_cuda_explain(&call.result(i).result).reason, "a sample is above 2^bits - 1");
    }
    ASSERT_NO_FATAL_FAILURE(call.expect_file(0));
    ASSERT_NO_FATAL_FAILURE(call.expect_file(3));
  }
}

// A file that has exactly the room that it needs, and one that lacks a byte: its size says what it needs.
TEST_F(GpuEncode, TheRoomForAFile) {
  const Picture picture{draw({200, 100}, {L3_COLOUR_RGB, 8}, Pattern::natural)};
  const size_t size = picture.expected().size();
  Call call({picture, picture, picture});
  call.sources[0].out_size = size;
  call.sources[1].out_size = size - 1;
  call.sources[2].out_size = 0;
  ASSERT_NO_FATAL_FAILURE(call.run());
  ASSERT_NO_FATAL_FAILURE(call.expect_file(0));
  for (const size_t i : {1u, 2u}) {
    call.expect_failure(i, L3_ERROR_BUFFER);
    EXPECT_EQ(call.result(i).size, size);
  }
}

// All images from the first one that does not fit on fail, whichever part of the capacity is short.
TEST_F(GpuEncode, MoreThanTheCapacity) {
  Dice dice(65);
  std::vector<Picture> pictures;
  l3_cuda_encode_capacity needed{};
  std::vector<l3_cuda_encode_capacity> up_to;
  for (uint32_t i = 0; i < 6; ++i) {
    pictures.push_back(any_picture(dice, {100 + 30 * i, 70}, {L3_COLOUR_RGB, i % 2 == 0 ? 8u : 12u}, Pattern::natural));
    const l3_cuda_source source = pictures.back().source();
    ASSERT_EQ(l3_cuda_add_to_capacity(&needed, &source), L3_OK);
    up_to.push_back(needed);
  }
  for (const bool of_tiles : {false, true}) {
    for (size_t last = 0; last < pictures.size(); ++last) {
      l3_cuda_encode_capacity less = needed;
      (of_tiles ? less.tiles : less.payload_bytes) = (of_tiles ? up_to[last].tiles : up_to[last].payload_bytes) - 1;
      if (less.tiles == 0) continue;
      Call call(pictures, less);
      ASSERT_NO_FATAL_FAILURE(call.run());
      for (size_t i = 0; i < pictures.size(); ++i) {
        if (i < last) {
          ASSERT_NO_FATAL_FAILURE(call.expect_file(i));
        } else {
          call.expect_failure(i, L3_ERROR_LIMIT);
        }
      }
    }
  }
}

TEST_F(GpuEncode, RefusesWrongCalls) {
  Call call({Picture{draw({40, 30}, {L3_COLOUR_RGB, 8}, Pattern::natural)}});
  using Change = std::function<void(l3_cuda_encode_batch&)>;
  const std::pair<const char*, Change> wrong[] = {
      {"no size", [](l3_cuda_encode_batch& b) { b.struct_size = 0; }},
      {"size of sources", [](l3_cuda_encode_batch& b) { b.source_bytes = 8; }},
      {"images", [](l3_cuda_encode_batch& b) { b.images = nullptr; }},
      {"results", [](l3_cuda_encode_batch& b) { b.results = nullptr; }},
      {"more than the capacity", [](l3_cuda_encode_batch& b) { b.image_count = UINT64_MAX; }},
      {"no capacity", [](l3_cuda_encode_batch& b) { b.capacity = {}; }},
      {"too many images", [](l3_cuda_encode_batch& b) { b.capacity.images = 65536; }},
      {"too many tiles", [](l3_cuda_encode_batch& b) { b.capacity.tiles = UINT64_MAX; }},
      {"too many bytes", [](l3_cuda_encode_batch& b) { b.capacity.payload_bytes = UINT64_MAX; }},
      {"workspace", [](l3_cuda_encode_batch& b) { b.workspace = nullptr; }},
      {"workspace at 16", [](l3_cuda_encode_batch& b) { b.workspace = static_cast<uint8_t*>(b.workspace) + 16; }},
      {"small workspace", [](l3_cuda_encode_batch& b) { --b.workspace_size; }},
  };
  for (const auto& [what, change] : wrong) {
    SCOPED_TRACE(what);
    l3_cuda_encode_batch bad = call.batch;
    change(bad);
    l3_error error{};
    const l3_status status = l3_cuda_encode_batch_async(&bad, &error, nullptr);
    EXPECT_TRUE(status == L3_ERROR_ARGUMENT || status == L3_ERROR_BUFFER) << status;
    EXPECT_EQ(error.status, status);
    EXPECT_STRNE(error.reason, "");
  }
  EXPECT_EQ(l3_cuda_encode_batch_async(nullptr, nullptr, nullptr), L3_ERROR_ARGUMENT);
  l3_cuda_encode_batch none = call.batch;
  none.image_count = 0;
  EXPECT_EQ(l3_cuda_encode_batch_async(&none, nullptr, nullptr), L3_OK);
  must(cudaDeviceSynchronize());
  call.expect_untouched(0, 0);
  ASSERT_NO_FATAL_FAILURE(call.expect_all());
}

// A captured call reads its descriptors anew.
TEST_F(GpuEncode, InAGraph) {
  const Stream stream;
  Dice dice(66);
  std::vector<Picture> pictures;
  for (uint32_t i = 0; i < 3; ++i) {
    pictures.push_back(any_picture(dice, {90, 70}, {L3_COLOUR_RGB, 8}, Pattern::natural));
  }
  Call call(pictures);
  must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  ASSERT_EQ(call.launch(stream), L3_OK);
  cudaGraph_t graph = nullptr;
  must(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec = nullptr;
  must(cudaGraphInstantiate(&exec, graph, 0));
  must(cudaGraphDestroy(graph));
  auto* const sources = const_cast<l3_cuda_source*>(call.batch.images);  // pinned memory of the test
  sources[1] = l3_cuda_source_init();
  must(cudaGraphLaunch(exec, stream));
  stream.wait();
  ASSERT_NO_FATAL_FAILURE(call.expect_file(0));
  call.expect_failure(1, L3_OK);
  sources[1] = call.sources[1];
  must(cudaGraphLaunch(exec, stream));
  must(cudaGraphLaunch(exec, stream));
  stream.wait();
  for (size_t i = 0; i < pictures.size(); ++i) ASSERT_NO_FATAL_FAILURE(call.expect_file(i));
  must(cudaGraphExecDestroy(exec));
}

#ifdef L3_EMULATED_CUDA

TEST_F(GpuEncode, WorkThatIsRefusedIsAnErrorOfTheDevice) {
  Call call({Picture{draw({40, 30}, {L3_COLOUR_RGB, 8}, Pattern::natural)}});
  uint64_t failed = 0;
  for (;; ++failed) {
    ASSERT_LT(failed, 100u);
    emulated::control().work_accepted = failed;
    const l3_status status = call.launch();
    emulated::control().work_accepted = UINT64_MAX;
    must(cudaDeviceSynchronize());
    if (status == L3_OK) break;
    ASSERT_EQ(status, L3_ERROR_DEVICE);
  }
  EXPECT_GT(failed, 4u);
  emulated::control().devices = 0;
  EXPECT_EQ(l3_cuda_check_encoder(nullptr), L3_ERROR_DEVICE);
  EXPECT_EQ(call.launch(), L3_ERROR_DEVICE);
  emulated::control().devices = 1;
  ASSERT_NO_FATAL_FAILURE(call.expect_all());
}

TEST_F(GpuEncode, ManyMultiprocessorsOrOne) {
  Dice dice(67);
  for (const int count : {1, 3, 40}) {
    emulated::control().multiprocessors = count;
    Call call({any_picture(dice, {150, 140}, {L3_COLOUR_RGB, 8}, Pattern::natural)});
    ASSERT_NO_FATAL_FAILURE(call.expect_all());
  }
  emulated::control().multiprocessors = emulated::Control{}.multiprocessors;
}

#endif

}  // namespace
