// Makes loaders of drawn data sets, and the results of libl3 for the same samples.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "data_set_testing.h"
#include "drawing.h"
#include "l3/l3.hpp"
#include "l3/l3_loader.h"
#include "loader/tensor_writer.h"
#include "read_engine.h"

namespace loader_testing {

using data_set_testing::Bytes;
using drawing::Drawing;
using drawing::Pattern;
using drawing::Size;
using drawing::Type;

inline l3_data_info l3_data_info_of(const l3_data_set& set) {
  l3_data_info info = l3_data_info_init();
  EXPECT_EQ(l3_data_describe(&set, &info), L3_OK);
  return info;
}

// How tests look at the memory of tensors, which may be a device's.
using Copy = void (*)(void* to, const void* from, size_t size);
inline Copy& copy_from_tensor() {
  static Copy copy = [](void* to, const void* from, size_t size) { std::memcpy(to, from, size); };
  return copy;
}

class Batch {
 public:
  Batch() = default;
  explicit Batch(l3_batch* batch) : batch_(batch), info_(l3_batch_info_init()) {
    if (batch != nullptr) {
      EXPECT_EQ(l3_batch_describe(batch, &info_), L3_OK);
    }
  }
  ~Batch() { l3_batch_release(batch_, nullptr); }
  Batch(Batch&& other) noexcept : batch_(std::exchange(other.batch_, nullptr)), info_(other.info_) {}
  Batch& operator=(Batch&& other) noexcept {
    std::swap(batch_, other.batch_);
    std::swap(info_, other.info_);
    return *this;
  }

  explicit operator bool() const { return batch_ != nullptr; }
  // A unit of a tensor, with its own size.
  l3_tensor unit(uint32_t i, uint32_t tensor = 0) const {
    l3_tensor told{};
    EXPECT_EQ(l3_batch_unit(batch_, tensor, i, &told), L3_OK);
    return told;
  }
  const l3_batch* get() const { return batch_; }
  const l3_batch_info& info() const { return info_; }
  void release(void* stream) { l3_batch_release(std::exchange(batch_, nullptr), stream); }

 private:
  l3_batch* batch_ = nullptr;
  l3_batch_info info_{};
};

// What came of a unit.
struct Unit {
  int64_t id, label;
  Bytes bytes;  // of its first tensor
  bool operator==(const Unit&) const = default;
};

inline uint64_t bytes_of_unit(const l3_tensor& tensor) {
  return tensor.shape[1] * tensor.shape[2] * tensor.shape[3] * loader::value_bytes(tensor.type);
}

inline Bytes bytes_of(const l3_batch_info& info, uint32_t i, uint32_t tensor = 0) {
  const uint64_t size = bytes_of_unit(info.tensors[tensor]);
  Bytes bytes(size);
  copy_from_tensor()(bytes.data(), static_cast<const uint8_t*>(info.tensors[tensor].data) + i * size, size);
  return bytes;
}
inline Unit unit_of(const l3_batch_info& info, uint32_t i) { return {info.ids[i], info.labels[i], bytes_of(info, i)}; }

// A unit of a batch whose images may differ in size: the bytes of all tensors.
inline Unit unit_of(const Batch& batch, uint32_t i) {
  const l3_batch_info& info = batch.info();
  Unit unit{info.ids[i], info.labels[i], {}};
  for (uint32_t tensor = 0;; ++tensor) {
    l3_tensor told{};
    if (l3_batch_unit(batch.get(), tensor, i, &told) != L3_OK) return unit;
    const bool is_list =
        info.tensors[tensor].shape[1] * info.tensors[tensor].shape[2] * info.tensors[tensor].shape[3] == 0;
    const uint64_t size = is_list ? told.shape[0] * told.shape[1] * told.shape[2] * loader::value_bytes(told.type)
                                  : bytes_of_unit(info.tensors[tensor]);
    Bytes bytes(size);
    copy_from_tensor()(bytes.data(), told.data, size);
    unit.bytes.insert(unit.bytes.end(), bytes.begin(), bytes.end());
    for (const uint64_t edge : told.shape) unit.bytes.push_back(static_cast<uint8_t>(edge));
  }
}

class Loader {
 public:
  Loader(const l3_data_set& set, const l3_loader_options& options) {
    l3_data_error error{};
    EXPECT_EQ(l3_loader_open(&set, &options, &loader_, &error), L3_OK) << l3::message(error);
  }
  ~Loader() { l3_loader_close(loader_); }
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  l3_loader* get() const { return loader_; }
  l3_loader_info info() const {
    l3_loader_info info = l3_loader_info_init();
    EXPECT_EQ(l3_loader_describe(loader_, &info), L3_OK);
    return info;
  }
  // None at the end of the epoch.
  Batch next() {
    l3_next next = L3_NEXT_WAITING;
    l3_batch* batch = nullptr;
    l3_failure failure{};
    const l3_status status = l3_loader_next(loader_, UINT32_MAX, &next, &batch, nullptr, &failure);
    EXPECT_EQ(status, L3_OK) << l3::message(failure.error);
    EXPECT_TRUE(status != L3_OK || (next == L3_NEXT_BATCH) == (batch != nullptr));
    return Batch(batch);
  }
  // All that are left of the epoch, without repeats.
  std::vector<Unit> units() {
    std::vector<Unit> all;
    while (const Batch batch = next()) {
      for (uint32_t i = 0; i < batch.info().units - batch.info().repeats; ++i) all.push_back(unit_of(batch.info(), i));
    }
    return all;
  }

 private:
  l3_loader* loader_ = nullptr;
};

class LoaderTest : public data_set_testing::DataSets {
 protected:
  // Breaks a byte in the middle of a sample's payloads.
  void damage(uint64_t sample) {
    const l3::Sample told = set_->sample(sample);
    const std::string file = l3_data_shard_name(set(), told.shard);
    std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
    const auto at = static_cast<std::streamoff>(told.offset + told.size - 8);
    stream.seekg(at);
    const char byte = static_cast<char>(stream.get() ^ 0x10);
    stream.seekp(at);
    stream.put(byte);
  }

  const l3_data_set* set() const { return set_->get(); }

  static Bytes encode(const Drawing& drawing) {
    const l3_image image = drawing.image();
    l3_encode_options options = l3_encode_options_init();
    options.method = L3_METHOD_FAST;
    Bytes file(l3_encode_bound(&image, &options));
    size_t size = 0;
    EXPECT_EQ(l3_encode(&image, &options, file.data(), file.size(), &size, nullptr), L3_OK);
    file.resize(size);
    return file;
  }

  // `count` images, of each size in turn, in as many shards.
  void draw_set(const std::vector<Size>& sizes, Type type, size_t count, size_t shards = 2) {
    std::vector<std::vector<Item>> items(shards);
    for (size_t i = 0; i < count; ++i) {
      Drawing drawing = drawing::draw(sizes[i % sizes.size()], type, Pattern::natural, i + 1);
      if (drawing.alpha != L3_ALPHA_NONE && i % 2 == 1) drawing.alpha = L3_ALPHA_PREMULTIPLIED;
      Item item{"image " + std::to_string(i), encode(drawing)};
      if (i % 5 != 4) item.label = static_cast<uint32_t>(i % 3);
      items[i * shards / count].push_back(item);
    }
    write_set(items);
  }

  // Groups of an RGB image and a mask, which is the image's first channel.
  void draw_pairs(size_t count) {
    std::vector<std::vector<Item>> items(2);
    for (size_t i = 0; i < count; ++i) {
      const Size size{30 + static_cast<uint32_t>(i), 20};
      const Drawing image = drawing::draw(size, {L3_COLOUR_RGB, 8}, Pattern::noise, i + 1);
      Drawing mask = drawing::blank(size, {L3_COLOUR_GRAY, 8});
      for (uint32_t y = 0; y < size.height; ++y) {
        for (uint32_t x = 0; x < size.width; ++x) mask.set_sample(x, y, 0, image.sample(x, y, 0));
      }
      std::vector<Item>& shard = items[i * 2 / count];
      shard.push_back({std::to_string(i) + "/image", encode(image)});
      Item second{std::to_string(i) + "/mask", encode(mask)};
      second.role = "mask";
      second.opens_group = false;
      shard.push_back(second);
    }
    write_set(items);
  }

  void write_set(const std::vector<std::vector<Item>>& items) {
    loader::DataSetIndex whole;
    whole.classes = {"a", "b", "c"};
    for (size_t i = 0; i < items.size(); ++i) {
      whole.shards.push_back(shard("shard-" + std::to_string(i) + ".l3s", items[i]));
    }
    index(whole);
    open_set();
  }
  void open_set() {
    set_.reset();
    auto opened = l3::DataSet::open(folder_.string());
    ASSERT_TRUE(opened) << l3::message(opened.error());
    set_.emplace(std::move(*opened));
  }

  static l3_loader_options options_of(uint32_t batch_size) {
    l3_loader_options options = l3_loader_options_init();
    options.batch_size = batch_size;
    options.seed = 7;
    return options;
  }

  // Batches of an epoch from a position on, without repeats.
  std::vector<std::vector<Unit>> batches_of(const l3_loader_options& options, uint64_t epoch, uint64_t position) {
    Loader loader(*set(), options);
    EXPECT_EQ(l3_loader_start(loader.get(), epoch, position, nullptr), L3_OK);
    std::vector<std::vector<Unit>> batches;
    while (const Batch batch = loader.next()) {
      batches.emplace_back();
      for (uint32_t i = 0; i < batch.info().units - batch.info().repeats; ++i) {
        batches.back().push_back(unit_of(batch.info(), i));
      }
    }
    return batches;
  }
  std::vector<Unit> units_of(const l3_loader_options& options, uint64_t epoch, uint64_t position) {
    std::vector<Unit> units;
    for (const std::vector<Unit>& batch : batches_of(options, epoch, position)) {
      units.insert(units.end(), batch.begin(), batch.end());
    }
    return units;
  }

  // What a tensor may hold of a sample: whole images one way, mirrored ones two, random crops as many as there are.
  std::vector<Bytes> decoded(uint64_t sample, const l3_loader_options& options, uint32_t tensor = 0) const {
    const l3_tensor_options none{};
    const l3_tensor_options& wanted = options.tensor_count > 0 ? options.tensors[tensor] : none;
    const l3::Sample told = set_->sample(sample);
    const auto file = set_->read(sample);
    EXPECT_TRUE(file);
    l3_decode_options decode = set_->decode_options();
    decode.as_colours = wanted.as_colours;
    const auto pixels = l3::decode(*file, decode);
    EXPECT_TRUE(pixels);
    const bool is_colour = wanted.as_colours != 0 && told.colour == L3_COLOUR_PALETTE;
    const uint32_t bits = is_colour ? 8 : told.bits, channels = is_colour ? 3 : told.channels;
    uint32_t type = wanted.type;
    if (type == L3_VALUE_STORED) type = bits > 8 ? L3_VALUE_U16 : L3_VALUE_U8;
    const bool crops = options.crop != L3_CROP_NONE;
    const uint32_t width = crops ? options.crop_width : told.width, height = crops ? options.crop_height : told.height;

    std::vector<Bytes> all;
    const auto add = [&](uint32_t x0, uint32_t y0, bool flip) {
      Bytes out(size_t{width} * height * channels * loader::value_bytes(type));
      uint8_t* to = out.data();
      const auto put = [&](uint32_t x, uint32_t y, uint32_t c) {
        const size_t at = ((size_t{y0} + y) * told.width + x0 + (flip ? width - 1 - x : x)) * channels + c;
        uint32_t value = pixels->bytes[bits > 8 ? 2 * at : at];
        if (bits > 8) {
          uint16_t wide = 0;
          std::memcpy(&wide, &pixels->bytes[2 * at], 2);
          value = wide;
        }
        to = put_value(to, type, value, wanted, c);
      };
      if (wanted.layout == L3_LAYOUT_CHW) {
        for (uint32_t c = 0; c < channels; ++c) {
          for (uint32_t y = 0; y < height; ++y) {
            for (uint32_t x = 0; x < width; ++x) put(x, y, c);
          }
        }
      } else {
        for (uint32_t y = 0; y < height; ++y) {
          for (uint32_t x = 0; x < width; ++x) {
            for (uint32_t c = 0; c < channels; ++c) put(x, y, c);
          }
        }
      }
      all.push_back(std::move(out));
    };
    for (uint32_t flip = 0; flip <= options.flip; ++flip) {
      if (options.crop == L3_CROP_RANDOM) {
        for (uint32_t y = 0; y <= told.height - height; ++y) {
          for (uint32_t x = 0; x <= told.width - width; ++x) {
            if (all.size() < kMaxCrops) add(x, y, flip != 0);
          }
        }
      } else {
        // Half the rest, rounded to even.
        const auto half = [](uint32_t rest) { return static_cast<uint32_t>(std::nearbyint(rest / 2.0)); };
        add(half(told.width - width), half(told.height - height), flip != 0);
      }
    }
    return all;
  }

  // Takes an epoch, and compares each unit of it. Gives the bytes that were read.
  uint64_t expect_epoch(const l3_loader_options& options) {
    Loader loader(*set(), options);
    uint64_t bytes = 0, units = 0;
    while (const Batch batch = loader.next()) {
      bytes += batch.info().times.bytes_read;
      units += batch.info().units;
      for (uint32_t t = 0; t < loader.info().tensors; ++t) {
        for (uint32_t i = 0; i < batch.info().units; ++i) {
          const uint64_t sample = static_cast<uint64_t>(batch.info().ids[i]) + t;
          const l3::Sample told = set_->sample(sample);
          if (t == 0) {
            EXPECT_EQ(batch.info().labels[i], told.label == L3_NO_LABEL ? -1 : static_cast<int64_t>(told.label));
          }
          // Of large images with random crops there are too many to try.
          const uint64_t crops = options.crop != L3_CROP_RANDOM
                                     ? 1
                                     : uint64_t{told.width - options.crop_width + 1} *
                                           (told.height - options.crop_height + 1) * (options.flip + 1);
          if (crops > kMaxCrops) continue;
          const std::vector<Bytes> possible = decoded(sample, options, t);
          EXPECT_NE(std::find(possible.begin(), possible.end(), bytes_of(batch.info(), i, t)), possible.end())
              << "sample " << sample << ", tensor " << t;
        }
      }
    }
    EXPECT_EQ(units, loader.info().units);
    return bytes;
  }

  // Two shards whose samples have equal sizes, and the samples of one in the other: whole images and crops of that one
  // are refused on each device, and those of the other one are delivered.
  void expect_images_of_another_shard_refused(const std::vector<l3_device_kind>& devices) {
    const Size sizes[] = {{40, 24}, {300, 310}};  // read at once, and in parts
    for (const Size size : sizes) {
      std::vector<std::vector<Item>> items(2);
      for (size_t i = 0; i < 4; ++i) {
        items[i / 2].push_back(
            {std::to_string(i), encode(drawing::draw(size, {L3_COLOUR_GRAY, 8}, Pattern::noise, i))});
        ASSERT_EQ(items[i / 2].back().bytes.size(), items[0][0].bytes.size());
      }
      write_set(items);
      const l3::Sample last = set_->sample(1);
      copy_between(l3_data_shard_name(set(), 1), l3_data_shard_name(set(), 0), set_->sample(0).offset,
                   last.offset + last.size);
      l3_loader_options options = options_of(4);
      options.on_error = L3_ON_ERROR_SKIP;
      for (const l3_device_kind device : devices) {
        for (const l3_crop crop : {L3_CROP_NONE, L3_CROP_CENTRE}) {
          options.device = device;
          options.crop = crop;
          options.crop_width = options.crop_height = crop == L3_CROP_NONE ? 0 : 16;
          Loader loader(*set(), options);
          const Batch batch = loader.next();
          ASSERT_TRUE(batch);
          ASSERT_EQ(batch.info().units, 2u);
          for (uint32_t i = 0; i < 2; ++i) {
            EXPECT_EQ(batch.info().ids[i], i + 2);
            EXPECT_EQ(bytes_of(batch.info(), i), decoded(i + 2, options)[0]);
          }
          l3_failure failures[2];
          uint64_t count = 0;
          ASSERT_EQ(l3_loader_failures(loader.get(), failures, 2, &count), L3_OK);
          ASSERT_EQ(count, 2u);
          for (uint64_t i = 0; i < 2; ++i) {
            EXPECT_EQ(failures[i].sample, i);
            EXPECT_EQ(failures[i].error.status, L3_ERROR_CORRUPT);
            EXPECT_STREQ(failures[i].error.reason, "the digest of an image differs from the index");
          }
        }
      }
    }
  }

  std::optional<l3::DataSet> set_;

 private:
  static constexpr size_t kMaxCrops = 2000;

  // By the compiler's own types, not by the loader's tables.
  static uint8_t* put_value(uint8_t* to, uint32_t type, uint32_t value, const l3_tensor_options& wanted, uint32_t c) {
    const bool no_scale = wanted.scale[0] == 0 && wanted.scale[1] == 0 && wanted.scale[2] == 0 && wanted.scale[3] == 0;
    const float number = std::fma(static_cast<float>(value), no_scale ? 1.0f : wanted.scale[c], wanted.bias[c]);
    const auto put = [&](auto what) {
      std::memcpy(to, &what, sizeof what);
      return to + sizeof what;
    };
    switch (type) {
      case L3_VALUE_U8: return put(static_cast<uint8_t>(value));
      case L3_VALUE_U16: return put(static_cast<uint16_t>(value));
      case L3_VALUE_F16: return put(loader::to_f16(number));
      case L3_VALUE_BF16: return put(loader::to_bf16(number));
      default: return put(number);
    }
  }
};

}  // namespace loader_testing
