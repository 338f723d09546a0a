// Shared by the tests of the loader's device: requested images, batches of them, and the results of libl3 for them.
#pragma once

#include "by_hand.h"
#include "control.h"
#include "gpu_wishes.h"
#include "loader/device.h"

extern "C" loader::Device* l3_data_open_cuda_device(uint32_t version, uint32_t number, l3_error* error);

namespace device_testing {

using codec_testing::Exact;
using codec_testing::Said;
using drawing::Bytes;
using drawing::Dice;
using gpu_testing::must;

using Model = std::unique_ptr<l3_model, gpu_testing::ModelCloser>;

inline std::unique_ptr<loader::Device> open_device(uint32_t number = 0) {
  l3_error error{};
  std::unique_ptr<loader::Device> device(l3_data_open_cuda_device(loader::kDeviceVersion, number, &error));
  EXPECT_NE(device, nullptr) << error.reason;
  EXPECT_EQ(error.status, L3_OK);
  return device;
}
inline std::unique_ptr<loader::DeviceSlot> make_slot(loader::Device& device) {
  l3_error error{};
  auto slot = device.make_slot(&error);
  EXPECT_NE(slot, nullptr) << error.reason;
  return slot;
}

// An image of a batch, as a loader asks for it.
struct Ask {
  Bytes file;
  l3_info info{};
  uint32_t x = 0, y = 0, width = 0, height = 0;
  bool flip = false;
  l3_tensor_options wanted{};
  bool in_parts = false;  // only what the region needs is there
  std::string name;

  uint64_t out_bytes(uint32_t channels) const {
    return uint64_t{width} * height * channels * gpu_testing::type_bytes(wanted.type - L3_VALUE_U8);
  }
};

// All of an image, as it is.
inline Ask ask_for(Bytes file) {
  Ask ask;
  ask.file = std::move(file);
  EXPECT_EQ(gpu_testing::read_info(ask.file, &ask.info), L3_OK);
  ask.width = ask.info.width;
  ask.height = ask.info.height;
  ask.wanted.type = ask.info.bits > 8 ? L3_VALUE_U16 : L3_VALUE_U8;
  return ask;
}

// Anything that may be asked of a file.
inline Ask any_ask(Dice& dice, Bytes file) {
  Ask ask = ask_for(std::move(file));
  if (dice.chance(2)) ask.wanted.type = ask.wanted.type + dice.roll(L3_VALUE_F32 - ask.wanted.type + 1);
  ask.wanted.layout = dice.roll(2);
  ask.wanted.as_colours = dice.roll(2);
  ask.flip = dice.chance(3);
  if (!dice.chance(3)) {
    ask.width = 1 + dice.roll(ask.info.width);
    ask.height = 1 + dice.roll(ask.info.height);
    ask.x = dice.roll(ask.info.width - ask.width + 1);
    ask.y = dice.roll(ask.info.height - ask.height + 1);
  }
  ask.in_parts = dice.chance(2);
  if (!dice.chance(4)) {
    for (float& scale : ask.wanted.scale) scale = gpu_testing::any_number(dice);
  }
  for (float& bias : ask.wanted.bias) bias = gpu_testing::any_number(dice);
  return ask;
}
inline Ask any_ask(Dice& dice, uint32_t maximum = 90) {
  std::string name;
  Bytes file = gpu_testing::any_file(dice, maximum, &name);
  Ask ask = any_ask(dice, std::move(file));
  ask.name = std::move(name);
  return ask;
}
inline std::vector<Ask> any_asks(uint64_t seed, uint32_t count = 4) {
  Dice dice(seed);
  std::vector<Ask> asks;
  for (uint32_t i = 0; i < count; ++i) asks.push_back(any_ask(dice));
  return asks;
}

// A byte of it changed, so that its header can still be read.
inline Bytes damaged(Dice& dice, const Bytes& file) {
  for (;;) {
    Bytes changed = file;
    const bool is_tiny = by_hand::is_tiny(file.data(), file.size());
    if (dice.chance(4) && !is_tiny) {
      changed.resize(dice.roll(file.size()));
    } else {
      changed[dice.roll(file.size())] ^= static_cast<uint8_t>(1u << dice.roll(8));
    }
    // The check of a tiny file would find whatever is wrong with it.
    if (is_tiny) by_hand::put(&changed[4], 4, by_hand::check(&changed[8], changed.size() - 8));
    l3_info info;
    if (gpu_testing::read_info(changed, &info) == L3_OK) return changed;
  }
}

// What is expected of an image: a verdict, and bytes where it is a good one.
struct Expected {
  Said said;
  Bytes bytes;
};
inline Expected expected_of(const Ask& ask, uint32_t channels, const std::vector<const l3_model*>& models) {
  l3_decode_options options = l3_decode_options_init();
  options.as_colours = ask.wanted.as_colours;
  options.limits = gpu_testing::no_limits();
  options.models = models.data();
  options.model_count = models.size();
  const uint32_t wide = ask.info.bits > 8 ? 2 : 1;
  const Exact file(ask.file);
  Bytes samples(uint64_t{ask.width} * ask.height * channels * wide);
  l3_error error{};
  error.tile = L3_NO_TILE;
  error.reason = "no error";
  const l3_status status = l3_decode_region(file.data(), file.size(), ask.x, ask.y, ask.width, ask.height, &options,
                                            samples.data(), samples.size(), 0, &error);
  Expected expected{codec_testing::said(status, error), {}};
  if (status != L3_OK) return expected;
  expected.bytes.resize(ask.out_bytes(channels));
  const uint32_t type = ask.wanted.type - L3_VALUE_U8, size = gpu_testing::type_bytes(type);
  const bool no_scale = std::all_of(ask.wanted.scale, ask.wanted.scale + 4, [](float scale) { return scale == 0; });
  for (uint64_t i = 0; i < samples.size() / wide; ++i) {
    const uint64_t c = i % channels, x = i / channels % ask.width, y = i / channels / ask.width;
    const uint64_t column = ask.flip ? ask.width - 1 - x : x;
    const uint64_t place = ask.wanted.layout == L3_LAYOUT_CHW ? (c * ask.height + y) * ask.width + column
                                                              : (y * ask.width + column) * channels + c;
    uint16_t sample = samples[wide * i];
    if (wide == 2) std::memcpy(&sample, &samples[2 * i], 2);
    gpu_testing::store_sample(&expected.bytes[place * size], type, sample, no_scale ? 1.0f : ask.wanted.scale[c],
                              ask.wanted.bias[c]);
  }
  return expected;
}

// A batch of one slot, and where it goes.
class Round {
 public:
  Round(loader::Device& device, std::vector<Ask> asks, std::vector<const l3_model*> models = {}, uint64_t seed = 1)
      : device_(&device), asks_(std::move(asks)), models_(std::move(models)), dice_(seed) {
    uint64_t at = 16 * dice_.roll(4), out = dice_.roll(5) * 16;
    for (const Ask& ask : asks_) {
      l3_decode_options options = l3_decode_options_init();
      options.as_colours = ask.wanted.as_colours;
      const uint32_t bytes = l3_pixel_bytes(&ask.info, ask.file.data(), ask.file.size(), &options);
      loader::DeviceImage image;
      image.at = at;
      image.size = ask.file.size();
      image.info = ask.info;
      image.x = ask.x;
      image.y = ask.y;
      image.width = ask.width;
      image.height = ask.height;
      image.flip = ask.flip;
      image.wanted = &ask.wanted;
      image.channels = bytes / (ask.info.bits > 8 ? 2 : 1);
      ranges_.push_back(ranges_of(ask));
      image.present = ranges_.back();
      images_.push_back(image);
      outs_.push_back(out);
      at += (ask.file.size() + 15) / 16 * 16 + 16 * dice_.roll(3);
      out += (ask.out_bytes(image.channels) + 15) / 16 * 16 + 16 * dice_.roll(3);
    }
    label_at_ = at;
    staging_bytes_ = at + kLabels;
    label_out_ = out;
    out_bytes_ = out + kLabels + 16;
    labels_ = dice_.bytes(kLabels);
    before_ = dice_.bytes(out_bytes_);
  }
  Round(const Round&) = delete;
  Round& operator=(const Round&) = delete;
  ~Round() {
    if (owns_output_) device_->free_output(output_);
  }

  // Memory of its own for the output, full of noise; or another round's.
  bool take_output() {
    output_ = device_->allocate_output(out_bytes_);
    owns_output_ = output_ != nullptr;
    if (owns_output_) must(cudaMemcpy(output_, before_.data(), before_.size(), cudaMemcpyDefault));
    return owns_output_;
  }
  void take_output_of(const Round& other) {
    use_output(other.output_);
    ASSERT_LE(out_bytes_, other.out_bytes_);
  }

  // The caller's.
  void use_output(void* output) {
    output_ = output;
    forget_noise();
  }
  void* give_output() {
    owns_output_ = false;
    return output_;
  }
  // What is between the images may be anything.
  void forget_noise() { before_.clear(); }

  // Puts what is there of the files into the slot, and noise everywhere else.
  bool stage(loader::DeviceSlot& slot) {
    uint8_t* const staging = slot.staging(staging_bytes_);
    if (staging == nullptr) return false;
    const Bytes noise = dice_.bytes(staging_bytes_);
    std::copy(noise.begin(), noise.end(), staging);
    for (size_t i = 0; i < asks_.size(); ++i) {
      const Bytes& file = asks_[i].file;
      const auto put = [&](uint64_t offset, uint64_t size) {
        std::copy_n(file.begin() + static_cast<ptrdiff_t>(offset), std::min(size, file.size() - offset),
                    staging + images_[i].at + offset);
      };
      if (ranges_[i].empty()) put(0, file.size());
      for (const l3_range& range : ranges_[i]) put(range.offset, range.size);
      images_[i].out = static_cast<uint8_t*>(output_) + outs_[i];
    }
    std::copy(labels_.begin(), labels_.end(), staging + label_at_);
    copy_ = {label_at_, labels_.size(), static_cast<uint8_t*>(output_) + label_out_};
    return true;
  }
  loader::DeviceWork work() const {
    loader::DeviceWork work;
    work.images = images_;
    work.copies = {&copy_, 1};
    work.models = models_;
    work.output = output_;
    return work;
  }
  l3_status finish(loader::DeviceSlot& slot, l3_error* error = nullptr) {
    verdicts_.assign(asks_.size(), {});
    return slot.finish(verdicts_, times_, error);
  }

  // Stages, begins, finishes and compares.
  void expect_all(loader::DeviceSlot& slot) {
    ASSERT_TRUE(output_ != nullptr || take_output());
    ASSERT_TRUE(stage(slot));
    l3_error error{};
    ASSERT_EQ(slot.begin(work(), &error), L3_OK) << error.reason;
    ASSERT_EQ(finish(slot, &error), L3_OK) << error.reason;
    ASSERT_NO_FATAL_FAILURE(expect_verdicts());
    ASSERT_NO_FATAL_FAILURE(expect_output());
  }
  void expect_verdicts() const {
    for (size_t i = 0; i < asks_.size(); ++i) {
      const Said found = codec_testing::said(verdicts_[i].status, verdicts_[i]);
      ASSERT_EQ(found, expected(i).said) << "image " << i << " " << asks_[i].name;
    }
    ASSERT_LE(times_.copied, times_.decoded);
  }
  void expect_output() const {
    Bytes found(out_bytes_);
    must(cudaMemcpy(found.data(), output_, found.size(), cudaMemcpyDefault));
    ASSERT_NO_FATAL_FAILURE(expect_bytes(found));
  }
  // What the output is to hold: of good images their samples; nothing of the noise between them has changed.
  void expect_bytes(Bytes found) const {
    ASSERT_EQ(found.size(), out_bytes_);
    Bytes wanted = before_.empty() ? found : before_;
    for (size_t i = 0; i < asks_.size(); ++i) {
      const auto at = static_cast<ptrdiff_t>(outs_[i]);
      const Bytes& bytes = expected(i).bytes;
      std::copy(bytes.begin(), bytes.end(), wanted.begin() + at);
      if (expected(i).said.status == L3_OK) continue;
      const auto size = static_cast<ptrdiff_t>(asks_[i].out_bytes(images_[i].channels));
      std::copy(found.begin() + at, found.begin() + at + size, wanted.begin() + at);
    }
    std::copy(labels_.begin(), labels_.end(), wanted.begin() + static_cast<ptrdiff_t>(label_out_));
    if (found == wanted) return;
    const auto at = std::mismatch(found.begin(), found.end(), wanted.begin()).first - found.begin();
    const auto image = std::upper_bound(outs_.begin(), outs_.end(), static_cast<uint64_t>(at)) - outs_.begin() - 1;
    FAIL() << "byte " << at << " of the output is wrong, of image " << image << " "
           << (image >= 0 ? asks_[static_cast<size_t>(image)].name : "");
  }

  void* output() const { return output_; }
  uint64_t out_bytes() const { return out_bytes_; }
  uint64_t staging_bytes() const { return staging_bytes_; }
  uint64_t bad_images() const {
    uint64_t bad = 0;
    for (size_t i = 0; i < asks_.size(); ++i) bad += expected(i).said.status != L3_OK;
    return bad;
  }
  std::vector<loader::DeviceImage>& images() { return images_; }
  const std::vector<l3_error>& verdicts() const { return verdicts_; }

 private:
  static constexpr uint64_t kLabels = 24;

  // The file up to its payloads, and those of the region; nothing where that cannot be told.
  static std::vector<l3_range> ranges_of(const Ask& ask) {
    std::vector<l3_range> ranges(64);
    size_t count = 0;
    if (!ask.in_parts || ask.file.size() < ask.info.payload_start ||
        l3_find_payloads(ask.file.data(), ask.info.payload_start, ask.file.size(), ask.x, ask.y, ask.width, ask.height,
                         0, ranges.data(), ranges.size(), &count, nullptr) != L3_OK) {
      return {};
    }
    ranges.resize(count);
    ranges.insert(ranges.begin(), l3_range{0, ask.info.payload_start});
    return ranges;
  }
  const Expected& expected(size_t i) const {
    if (expected_.empty()) {
      for (size_t k = 0; k < asks_.size(); ++k) {
        expected_.push_back(expected_of(asks_[k], images_[k].channels, models_));
      }
    }
    return expected_[i];
  }

  loader::Device* device_;
  std::vector<Ask> asks_;
  std::vector<const l3_model*> models_;
  Dice dice_;
  std::vector<std::vector<l3_range>> ranges_;
  std::vector<loader::DeviceImage> images_;
  std::vector<uint64_t> outs_;
  uint64_t label_at_ = 0, staging_bytes_ = 0, label_out_ = 0, out_bytes_ = 0;
  Bytes labels_, before_;
  loader::DeviceCopy copy_;
  void* output_ = nullptr;
  bool owns_output_ = false;
  std::vector<l3_error> verdicts_;
  loader::DeviceTimes times_;
  mutable std::vector<Expected> expected_;
};

// Tests that everything is freed at the end.
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

inline Model any_named_model(Dice& dice, uint32_t channels) {
  const Bytes bytes = by_hand::any_model(dice, channels);
  l3_model* model = nullptr;
  EXPECT_EQ(l3_open_model(bytes.data(), bytes.size(), &model, nullptr), L3_OK);
  return Model(model);
}
inline Bytes named_file(const drawing::Drawing& d, const l3_model* model) {
  l3_encode_options options = codec_testing::options_of(L3_METHOD_DENSE, 32, 32, 1);
  options.named_model = model;
  options.model_origin = L3_MODEL_NAMED;
  return codec_testing::encode(d, options);
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

}  // namespace device_testing
