// Shared by the tests of the batch decoder: GPU memory, wishes (what to decode and where), batches, and the results of
// libl3 for the same files.
// They run on a real GPU, and on the emulated one where tests/emulated_cuda comes first among the include folders.
#pragma once

#include <cuda_runtime_api.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "codec_testing.h"
#include "l3/l3_cuda.h"

namespace gpu_testing {

using codec_testing::Exact;
using drawing::Bytes;
using drawing::Dice;
using drawing::Drawing;
using drawing::Pattern;
using drawing::Size;

#ifdef L3_EMULATED_CUDA
constexpr bool kEmulated = true;
#else
constexpr bool kEmulated = false;
#endif

// How much is done.
struct Scale {
  uint32_t rounds;      // of tests that roll dice
  uint32_t max_images;  // of a batch
  uint32_t edge;        // of a large image
  uint32_t mutations;   // of files
  uint64_t max_pixels;  // that are decoded of a file that claims more
};
inline const Scale& scale() {
  static constexpr Scale kOnProcessor{1, 12, 200, codec_testing::kSanitized ? 200 : 500, 1 << 12},
      kOnGpu{4, 100, 1500, 5000, 1 << 20};
  return kEmulated ? kOnProcessor : kOnGpu;
}

inline void must(cudaError_t error) { ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error); }

// A test that needs a GPU. The emulated one is always there.
class Gpu : public testing::Test {
 protected:
  void SetUp() override {
    l3_error error{};
    const l3_status status = l3_cuda_check_device(&error);
    if (kEmulated) {
      ASSERT_EQ(status, L3_OK) << error.reason;
    } else if (status != L3_OK) {
      GTEST_SKIP() << error.reason;
    }
  }
};

enum class Place { device, pinned };

// Memory that the device can read and write.
class Memory {
 public:
  Memory() = default;
  Memory(Place place, size_t size) : place_(place), size_(size) {
    if (size == 0) return;
    if (place == Place::device) {
      must(cudaMalloc(&data_, size));
    } else {
      must(cudaHostAlloc(&data_, size, cudaHostAllocDefault));
    }
  }
  Memory(Place place, const Bytes& bytes) : Memory(place, bytes.size()) { put(bytes); }
  ~Memory() {
    if (data_ != nullptr) must(place_ == Place::device ? cudaFree(data_) : cudaFreeHost(data_));
  }
  Memory(Memory&& other) noexcept
      : place_(other.place_), size_(other.size_), data_(std::exchange(other.data_, nullptr)) {}
  Memory& operator=(Memory&& other) noexcept {
    std::swap(place_, other.place_);
    std::swap(size_, other.size_);
    std::swap(data_, other.data_);
    return *this;
  }

  void put(const void* from, size_t size) {
    if (size == 0) return;
    must(cudaMemcpy(data_, from, size, cudaMemcpyDefault));
    must(cudaDeviceSynchronize());  // a copy from memory that is not pinned returns before it has arrived
  }
  void put(const Bytes& bytes) { put(bytes.data(), bytes.size()); }
  Bytes get() const {
    Bytes bytes(size_);
    if (size_ != 0) must(cudaMemcpy(bytes.data(), data_, size_, cudaMemcpyDefault));
    return bytes;
  }
  // From the host only where it is pinned.
  template <class T = uint8_t>
  T* at(size_t offset = 0) const {
    return reinterpret_cast<T*>(static_cast<uint8_t*>(data_) + offset);
  }
  size_t size() const { return size_; }

 private:
  Place place_ = Place::device;
  size_t size_ = 0;
  void* data_ = nullptr;
};

struct Stream {
  Stream() { must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)); }
  ~Stream() { must(cudaStreamDestroy(stream)); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return stream; }
  void wait() const { must(cudaStreamSynchronize(stream)); }

  cudaStream_t stream = nullptr;
};

// ---- numbers as a GPU stores them

inline uint32_t type_bytes(uint32_t type) { return type == L3_CUDA_U8 ? 1 : type == L3_CUDA_F32 ? 4 : 2; }

// The number of so many bits of mantissa (the leading one among them) that is nearest, ties to even; multiples of
// 2^least only.
inline double rounded(double v, int bits, int minimum) {
  int exponent;
  std::frexp(v, &exponent);
  const int unit = std::max(exponent - bits, minimum);
  return std::ldexp(std::nearbyint(std::ldexp(v, -unit)), unit);
}
inline uint32_t half_of(float v) {
  const uint32_t sign = std::signbit(v) ? 0x8000 : 0;
  if (std::isinf(v)) return sign | 0x7C00;
  const double r = std::fabs(rounded(double{v}, 11, -24));
  if (r >= 0x1p16) return sign | 0x7C00;
  if (r < 0x1p-14) return sign | static_cast<uint32_t>(std::ldexp(r, 24));
  int exponent;
  const double mantissa = std::frexp(r, &exponent);
  return sign | (static_cast<uint32_t>(exponent + 14) << 10) | (static_cast<uint32_t>(mantissa * 2048) - 1024);
}
inline uint32_t bfloat_of(float v) {
  const uint32_t sign = std::signbit(v) ? 0x8000 : 0;
  const double r = std::isinf(v) ? 0x1p128 : rounded(double{v}, 8, -133);
  if (std::fabs(r) >= 0x1p128) return sign | 0x7F80;
  const float exact = static_cast<float>(r);
  uint32_t bits;
  std::memcpy(&bits, &exact, sizeof(bits));
  return bits >> 16;
}

inline void store_sample(uint8_t* to, uint32_t type, uint32_t sample, float by, float plus) {
  const float number = std::fmaf(static_cast<float>(sample), by, plus);
  uint32_t bits = sample;
  if (type == L3_CUDA_F16) bits = half_of(number);
  if (type == L3_CUDA_BF16) bits = bfloat_of(number);
  if (type == L3_CUDA_F32) std::memcpy(&bits, &number, sizeof(bits));
  std::memcpy(to, &bits, type_bytes(type));  // little-endian, as GPUs are
}

// ---- wishes

// What is asked of an image of a batch.
struct Wish {
  Bytes file;
  l3_cuda_image image = l3_cuda_image_init();  // but for pointers, size and strides
  Place place = Place::device;
  size_t before = 0, after = 0;       // bytes of the output's memory that are not the image's
  size_t row_gap = 0, plane_gap = 0;  // the same between rows and planes
  bool says_strides = false;          // also where there are no gaps
  bool empty = false;
  std::string name = {};
};

inline l3_limits no_limits() { return {UINT64_MAX, UINT64_MAX, UINT64_MAX}; }
inline l3_model_info describe(const l3_model* model) {
  l3_model_info info = l3_model_info_init();
  EXPECT_EQ(l3_describe_model(model, &info, nullptr), L3_OK);
  return info;
}

// The models that files may name: those of the folder that spec/vectors/build.py has filled, where there is one.
struct ModelCloser {
  void operator()(l3_model* model) const { l3_close_model(model); }
};
inline const std::vector<const l3_model*>& named_models() {
  static const std::vector<std::unique_ptr<l3_model, ModelCloser>> opened = [] {
    std::vector<std::unique_ptr<l3_model, ModelCloser>> models;
    const char* folder = std::getenv("L3_VECTORS");
    if (folder == nullptr) return models;
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(folder) / "models")) {
      paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    for (const std::filesystem::path& path : paths) {
      std::ifstream in(path, std::ios::binary);
      const Bytes bytes{std::istreambuf_iterator<char>(in), {}};
      l3_model* model = nullptr;
      EXPECT_EQ(l3_open_model(bytes.data(), bytes.size(), &model, nullptr), L3_OK);
      models.emplace_back(model);
    }
    return models;
  }();
  static const std::vector<const l3_model*> models = [] {
    std::vector<const l3_model*> borrowed;
    for (const auto& model : opened) borrowed.push_back(model.get());
    return borrowed;
  }();
  return models;
}

inline l3_decode_options cpu_options(const Wish& wish) {
  l3_decode_options options = l3_decode_options_init();
  options.as_colours = (wish.image.flags & L3_CUDA_COLOURS) != 0;
  options.limits = no_limits();
  options.models = named_models().data();
  options.model_count = named_models().size();
  return options;
}
inline l3_status read_info(const Bytes& file, l3_info* info, l3_error* error = nullptr) {
  *info = l3_info_init();
  const l3_limits none = no_limits();
  const Exact exact(file);
  return l3_read_info(exact.data(), exact.size(), &none, info, error);
}
inline uint32_t cpu_pixel_bytes(const Wish& wish, const l3_info& info) {
  const l3_decode_options options = cpu_options(wish);
  return l3_pixel_bytes(&info, wish.file.data(), wish.file.size(), &options);
}

// Says what the file says, or, where it says nothing sound, something.
inline void claim(Wish& wish) {
  l3_info info;
  l3_cuda_image& image = wish.image;
  image.width = image.height = image.channels = 1;
  if (read_info(wish.file, &info) != L3_OK) return;
  image.width = info.width;
  image.height = info.height;
  image.channels = cpu_pixel_bytes(wish, info) / (info.sample_type == L3_SAMPLE_U16 ? 2 : 1);
}

// A whole image, as it is.
inline Wish wish_for(Bytes file, uint32_t flags = 0) {
  Wish wish;
  wish.file = std::move(file);
  wish.image.flags = flags;
  claim(wish);
  l3_info info;
  if (read_info(wish.file, &info) == L3_OK && info.bits > 8) wish.image.type = L3_CUDA_U16;
  return wish;
}
inline Wish nothing() {
  Wish wish;
  wish.empty = true;
  return wish;
}

// Where samples of an output lie.
struct Frame {
  explicit Frame(const Wish& wish) : sample(type_bytes(wish.image.type)) {
    const l3_cuda_image& image = wish.image;
    const bool all = image.region_width == 0 && image.region_height == 0;
    width = all ? image.width : image.region_width;
    height = all ? image.height : image.region_height;
    channels = image.channels;
    is_planar = image.layout == L3_CUDA_CHW;
    row = size_t{width} * sample * (is_planar ? 1 : channels);
    row_stride = row + wish.row_gap;
    plane_stride = row_stride * height + wish.plane_gap;
    begin = wish.before;
    end = begin + row_stride * (height - 1) + row + (is_planar ? plane_stride * (channels - 1) : 0);
    size = wish.empty ? 0 : end + wish.after;
  }
  size_t at(uint32_t x, uint32_t y, uint32_t c) const {
    const size_t line = begin + y * row_stride;
    return is_planar ? line + c * plane_stride + size_t{x} * sample : line + (size_t{x} * channels + c) * sample;
  }

  uint32_t width = 0, height = 0, channels = 0, sample;
  bool is_planar = false;
  size_t row = 0, row_stride = 0, plane_stride = 0, begin = 0, end = 0, size = 0;
};

// What output memory holds before a call.
inline Bytes noise_of(size_t size, uint64_t seed) { return Dice(seed).bytes(size); }

// What libl3 makes of a wish.
struct Expected {
  explicit Expected(const Wish& wish) {
    error.reason = "no error";
    error.tile = L3_NO_TILE;
    if (wish.empty) return;
    const Exact file(wish.file);
    const l3_decode_options options = cpu_options(wish);
    const l3_cuda_image& image = wish.image;
    const Frame frame(wish);
    l3_info info;
    if (read_info(wish.file, &info, &error) != L3_OK) return;
    const uint32_t wide = info.sample_type == L3_SAMPLE_U16 ? 2 : 1;
    const uint32_t channels = cpu_pixel_bytes(wish, info) / wide;
    is_lie = image.width != info.width || image.height != info.height || image.channels != channels ||
             (image.type == L3_CUDA_U8 && wide == 2);
    if (is_lie) return;
    const Exact pixels(size_t{frame.width} * frame.height * channels * wide);
    (void)!l3_decode_region(file.data(), file.size(), image.x, image.y, frame.width, frame.height, &options,
                            pixels.data(), pixels.size(), 0, &error);
    if (error.status != L3_OK) return;
    samples.resize(pixels.size() / wide);
    for (size_t i = 0; i < samples.size(); ++i) {
      uint16_t both = pixels.data()[wide * i];
      if (wide == 2) std::memcpy(&both, pixels.data() + 2 * i, 2);
      samples[i] = both;
    }
  }

  // Puts the samples where the wish wants them.
  void draw(const Wish& wish, Bytes& out) const {
    const Frame frame(wish);
    const l3_cuda_image& image = wish.image;
    const uint16_t* sample = samples.data();
    for (uint32_t y = 0; y < frame.height; ++y) {
      for (uint32_t x = 0; x < frame.width; ++x) {
        const uint32_t to = (image.flags & L3_CUDA_FLIP) != 0 ? frame.width - 1 - x : x;
        for (uint32_t c = 0; c < frame.channels; ++c) {
          store_sample(&out[frame.at(to, y, c)], image.type, *sample++, image.scale[c], image.bias[c]);
        }
      }
    }
  }

  l3_error error{};
  bool is_lie = false;  // the caller says other things of the file than the file; some error is expected
  std::vector<uint16_t> samples;
};

// ---- batches

// Where the parts of a call lie, and how much room it has.
struct Arrangement {
  Place images = Place::device, results = Place::device;
  l3_cuda_capacity more = {};  // than is needed
  bool models_by_default = false;
  uint64_t seed = 1;
};

inline Arrangement any_arrangement(Dice& dice) {
  const auto place = [&] { return dice.chance(2) ? Place::device : Place::pinned; };
  Arrangement arrangement;
  arrangement.images = place();
  arrangement.results = place();
  if (dice.chance(2)) arrangement.more = {dice.roll(3), dice.roll(3), dice.roll(70), 16 * dice.roll(5), 0};
  arrangement.models_by_default = dice.chance(3);
  arrangement.seed = dice.next();
  return arrangement;
}

inline uint64_t tiles_of(const Wish& wish) {
  l3_info info;
  if (wish.empty || read_info(wish.file, &info) != L3_OK) return 0;
  return l3_cuda_count_tiles(&info, wish.image.region_width, wish.image.region_height);
}
inline uint64_t follow_bytes_of(const Wish& wish) {
  if (wish.empty) return 0;
  const std::vector<const l3_model*>& models = named_models();
  return l3_cuda_count_follow_bytes(wish.file.data(), wish.file.size(), models.data(), models.size(),
                                    wish.image.region_width, wish.image.region_height);
}
inline bool is_staged(const Wish& wish) { return !wish.empty && (wish.image.flags & L3_CUDA_STAGE) != 0; }
inline bool has_model(const Wish& wish) {
  l3_info info;
  return !wish.empty && (read_info(wish.file, &info) != L3_OK || info.model_origin != L3_MODEL_NONE);
}
inline l3_cuda_capacity capacity_for(const std::vector<Wish>& wishes) {
  l3_cuda_capacity capacity{};
  for (const Wish& wish : wishes) {
    ++capacity.images;
    capacity.models += has_model(wish);
    capacity.tiles += tiles_of(wish);
    capacity.follow_bytes += follow_bytes_of(wish);
    if (is_staged(wish)) capacity.staged_bytes += (wish.file.size() + 15) / 16 * 16;
  }
  capacity.tiles = std::max<uint64_t>(capacity.tiles, 1);
  capacity.models = std::max(capacity.models, 1u);  // 0 stands for one for each image
  return capacity;
}

// A batch with all that it needs on the device, whose outputs hold noise.
class Batch {
 public:
  explicit Batch(std::vector<Wish> wishes, const Arrangement& arrangement = {})
      : wishes_(std::move(wishes)), arrangement_(arrangement) {
    l3_cuda_capacity capacity = capacity_for(wishes_);
    capacity.images += arrangement.more.images;
    capacity.models = arrangement.models_by_default ? 0 : capacity.models + arrangement.more.models;
    capacity.tiles += arrangement.more.tiles;
    capacity.staged_bytes += arrangement.more.staged_bytes;
    prepare(capacity);
  }
  Batch(std::vector<Wish> wishes, const Arrangement& arrangement, const l3_cuda_capacity& capacity)
      : wishes_(std::move(wishes)), arrangement_(arrangement) {
    prepare(capacity);
  }

  l3_status launch(cudaStream_t stream = nullptr, l3_error* error = nullptr) const {
    return l3_cuda_decode_batch_async(&call, error, stream);
  }
  // Launches, waits, and expects what libl3 makes of each wish.
  void expect_all(cudaStream_t stream = nullptr) {
    l3_error error{};
    ASSERT_EQ(launch(stream, &error), L3_OK) << error.reason;
    must(cudaStreamSynchronize(stream));
    expect_done();
  }
  // The same where the stream has passed the call.
  void expect_done() const {
    const std::vector<l3_cuda_result> found = results();
    for (size_t i = 0; i < wishes_.size(); ++i) {
      SCOPED_TRACE("image " + std::to_string(i) + " of " + std::to_string(wishes_.size()) + " " + wishes_[i].name);
      ASSERT_NO_FATAL_FAILURE(expect_result(i, found[i]));
      ASSERT_NO_FATAL_FAILURE(expect_output(i));
    }
  }
  // What was said of an image.
  void expect_result(size_t i, const l3_cuda_result& found) const {
    const Expected& expected = expected_of(i);
    const l3_error said = l3_cuda_explain(&found);
    ASSERT_EQ(static_cast<uint32_t>(said.status), found.status);
    ASSERT_NE(said.reason, nullptr);
    if (expected.is_lie) {
      ASSERT_NE(found.status, L3_OK);
      return;
    }
    ASSERT_EQ(codec_testing::said(said.status, said), codec_testing::said(expected.error.status, expected.error));
    if (found.status != L3_OK) {
      ASSERT_EQ(found.offset, expected.error.offset);
      ASSERT_EQ(found.tile, expected.error.tile);
    }
  }
  // Its pixels, where there are to be any, and that nothing else was written.
  void expect_output(size_t i) const {
    const Wish& wish = wishes_[i];
    if (wish.empty) return;
    const Frame frame(wish);
    Bytes wanted = noise_of(frame.size, arrangement_.seed + i), found = outs_[i].get();
    if (!expected_of(i).is_lie && expected_of(i).error.status == L3_OK) {
      expected_of(i).draw(wish, wanted);
    } else {
      forget_pixels(frame, wanted);
      forget_pixels(frame, found);
    }
    if (wanted == found) return;
    const size_t at =
        static_cast<size_t>(std::mismatch(wanted.begin(), wanted.end(), found.begin()).first - wanted.begin());
    FAIL() << "byte " << at << " of " << frame.size << " is " << int{found[at]} << ", not " << int{wanted[at]}
           << "; rows of " << frame.row << " bytes, every " << frame.row_stride << " from " << frame.begin << " on";
  }

  std::vector<l3_cuda_result> results() const {
    const Bytes bytes = results_.get();
    std::vector<l3_cuda_result> found(wishes_.size());
    if (!found.empty()) std::memcpy(found.data(), bytes.data(), bytes.size());
    return found;
  }
  const Expected& expected_of(size_t i) const {
    if (!expected_[i]) expected_[i].emplace(wishes_[i]);
    return *expected_[i];
  }
  const Wish& wish(size_t i) const { return wishes_[i]; }
  size_t size() const { return wishes_.size(); }
  // Of the call, for those who change them between launches.
  std::vector<l3_cuda_image> images() const { return images_; }
  const Memory& images_memory() const { return images_memory_; }
  const Memory& results_memory() const { return results_; }
  const Memory& file(size_t i) const { return files_[i]; }
  const Memory& out(size_t i) const { return outs_[i]; }

  // Noise again, as before the first call.
  void fill() {
    results_.put(noise_of(results_.size(), arrangement_.seed ^ 1));
    for (size_t i = 0; i < wishes_.size(); ++i) outs_[i].put(noise_of(outs_[i].size(), arrangement_.seed + i));
  }

  l3_cuda_batch call = l3_cuda_batch_init();

 private:
  void prepare(const l3_cuda_capacity& capacity) {
    expected_.resize(wishes_.size());
    for (size_t i = 0; i < wishes_.size(); ++i) {
      Wish& wish = wishes_[i];
      if (is_staged(wish)) wish.place = Place::pinned;
      files_.emplace_back(wish.place, wish.file);
      const Frame frame(wish);
      outs_.emplace_back(Place::device, frame.size);
      l3_cuda_image image = wish.image;
      if (wish.empty) {
        image = l3_cuda_image{};
      } else {
        // Memory of no bytes has no address, and a file that is not empty would be no empty slot.
        if (files_[i].size() == 0) files_[i] = Memory(wish.place, 16);
        image.data = files_[i].at();
        image.size = wish.file.size();
        image.out = outs_[i].at(wish.before);
        image.row_stride = wish.row_gap == 0 && !wish.says_strides ? 0 : frame.row_stride;
        image.plane_stride = wish.plane_gap == 0 && !wish.says_strides ? 0 : frame.plane_stride;
      }
      images_.push_back(image);
    }
    prepare_models();
    images_memory_ = Memory(arrangement_.images, images_.size() * sizeof(l3_cuda_image));
    images_memory_.put(images_.data(), images_memory_.size());
    results_ = Memory(arrangement_.results, images_.size() * sizeof(l3_cuda_result));
    fill();
    const uint64_t size = l3_cuda_workspace_size(&capacity);
    ASSERT_NE(size, 0u);
    workspace_ = Memory(Place::device, size);
    workspace_.put(noise_of(size, arrangement_.seed ^ 2));
    call.image_count = static_cast<uint32_t>(images_.size());
    call.images = images_memory_.at<l3_cuda_image>();
    call.results = results_.at<l3_cuda_result>();
    call.capacity = capacity;
    call.workspace = workspace_.at();
    call.workspace_size = size;
  }
  // The models that files may name, where the images' descriptors are too.
  void prepare_models() {
    std::vector<l3_cuda_model> models;
    for (const l3_model* model : named_models()) {
      const l3_model_info info = describe(model);
      Bytes bytes(info.bytes, info.bytes + info.size);
      bytes.resize((bytes.size() + 15) / 16 * 16);
      model_bytes_.emplace_back(arrangement_.images, bytes);
      l3_cuda_model known{model_bytes_.back().at(), info.size, {}};
      std::memcpy(known.name, info.name, sizeof(known.name));
      models.push_back(known);
    }
    models_ = Memory(arrangement_.images, models.size() * sizeof(l3_cuda_model));
    models_.put(models.data(), models_.size());
    call.models = models_.at<l3_cuda_model>();
    call.model_count = static_cast<uint32_t>(models.size());
  }
  static void forget_pixels(const Frame& frame, Bytes& bytes) {
    for (uint32_t c = 0; c < (frame.is_planar ? frame.channels : 1); ++c) {
      for (uint32_t y = 0; y < frame.height; ++y) {
        std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(frame.at(0, y, c)), frame.row, uint8_t{0});
      }
    }
  }

  std::vector<Wish> wishes_;
  Arrangement arrangement_;
  std::vector<Memory> files_, outs_;
  std::vector<l3_cuda_image> images_;
  Memory images_memory_, results_, workspace_, models_;
  std::vector<Memory> model_bytes_;
  mutable std::vector<std::optional<Expected>> expected_;
};

}  // namespace gpu_testing
