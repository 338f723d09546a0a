// Decodes and encodes files on a GPU, through the same device interface as the loader.
#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "encode.h"
#include "files.h"
#include "loader/device.h"
#include "raise.h"

namespace l3_python {
namespace {

// The most that goes to a GPU at once.
constexpr uint64_t kMaxStaged = uint64_t{1} << 28;
constexpr size_t kMaxImages = 256;

class DeviceMemory : public Memory {
 public:
  DeviceMemory(std::shared_ptr<loader::Device> device, void* output) : device_(std::move(device)), output_(output) {}
  ~DeviceMemory() override {
    for (void* stream : streams_) device_->use_until(output_, stream);
    device_->free_output(output_);
  }

  void used_by(void* stream) override {
    const std::lock_guard lock(mutex_);
    if (std::find(streams_.begin(), streams_.end(), stream) == streams_.end()) streams_.push_back(stream);
  }

 private:
  std::shared_ptr<loader::Device> device_;
  void* output_;
  std::mutex mutex_;
  std::vector<void*> streams_;
};

// Open devices and their idle slots, which are kept because pinned memory is expensive. They are never freed, because
// at the end of a process the driver may be gone before them.
class OpenDevices {
 public:
  static OpenDevices& get() {
    static OpenDevices& devices = *new OpenDevices;
    return devices;
  }

  std::shared_ptr<loader::Device> open(uint32_t number, l3_data_error& error) {
    std::shared_ptr<loader::Device> device = loader::open_cuda_device(number, &error);
    const std::lock_guard lock(mutex_);
    if (device != nullptr) devices_[number].device = device;
    return device;
  }
  std::unique_ptr<loader::DeviceSlot> take_slot(uint32_t number, l3_error& error) {
    std::shared_ptr<loader::Device> device;
    {
      const std::lock_guard lock(mutex_);
      Known& known = devices_[number];
      if (!known.idle.empty()) {
        auto slot = std::move(known.idle.back());
        known.idle.pop_back();
        return slot;
      }
      device = known.device;
    }
    return device->make_slot(&error);
  }
  void release(uint32_t number, std::unique_ptr<loader::DeviceSlot> slot) {
    const std::lock_guard lock(mutex_);
    devices_[number].idle.push_back(std::move(slot));
  }

 private:
  struct Known {
    std::shared_ptr<loader::Device> device;
    std::vector<std::unique_ptr<loader::DeviceSlot>> idle;
  };

  std::mutex mutex_;
  std::map<uint32_t, Known> devices_;
};

uint64_t padded(uint64_t size) { return (size + 15) / 16 * 16; }

// Decodes some files and sets the error of each. The return value is the error of the device as a whole.
l3_error decode_some(std::span<File> files, std::span<uint8_t* const> to, const Output& output,
                     const l3_decode_options& options, loader::DeviceSlot& slot, void* stream) {
  l3_error error{L3_OK, 0, L3_NO_TILE, ""};
  uint64_t size = 0;
  for (const File& file : files) size += padded(file.bytes.size());
  uint8_t* staging = slot.staging(size);
  if (staging == nullptr) return {L3_ERROR_MEMORY, 0, L3_NO_TILE, "out of memory"};

  std::vector<l3_tensor_options> wanted(files.size());
  std::vector<loader::DeviceImage> images(files.size());
  uint64_t at = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    const File& file = files[i];
    std::memcpy(staging + at, file.bytes.data(), file.bytes.size());
    std::memset(staging + at + file.bytes.size(), 0, padded(file.bytes.size()) - file.bytes.size());
    wanted[i] = wanted_of(output, file.bits, file.channels);
    wanted[i].as_colours = options.as_colours;
    loader::DeviceImage& image = images[i];
    image.at = at;
    image.size = file.bytes.size();
    image.info = file.opened->info();
    image.x = file.region.x;
    image.y = file.region.y;
    image.width = file.region.width;
    image.height = file.region.height;
    image.flip = output.flip;
    image.wanted = &wanted[i];
    image.channels = file.channels;
    image.out = to[i];
    at += padded(file.bytes.size());
  }
  loader::DeviceWork work;
  work.images = images;
  work.models = {options.models, options.model_count};
  work.ordered = true;
  work.after_stream = stream;
  if (slot.begin(work, &error) != L3_OK) return error;
  std::vector<l3_error> verdicts(files.size(), l3_error{L3_OK, 0, L3_NO_TILE, ""});
  loader::DeviceTimes times;
  if (slot.finish(verdicts, times, &error) != L3_OK) return error;
  for (size_t i = 0; i < files.size(); ++i) files[i].error = verdicts[i];
  error.status = L3_OK;
  return error;
}

// The images of a tensor. Its shape has a dimension more if there are several of them.
void add_images(const Tensor& tensor, const std::vector<int64_t>& shape, const loader::DevicePixels& like,
                std::vector<loader::DevicePixels>& images) {
  const size_t several = shape.size() == 4 ? 1 : 0;
  const auto length = [&](size_t i) {
    return static_cast<uint32_t>(std::min<int64_t>(shape[several + i], UINT32_MAX));
  };
  loader::DevicePixels image = like;
  image.channels = length(like.planar ? 0 : 2);
  image.height = length(like.planar ? 1 : 0);
  image.width = length(like.planar ? 2 : 1);
  const int64_t count = several != 0 ? shape[0] : 1;
  const uint64_t bytes = tensor.bytes() / static_cast<uint64_t>(count);
  for (int64_t i = 0; i < count; ++i) {
    image.pixels = static_cast<const uint8_t*>(tensor.data) + static_cast<uint64_t>(i) * bytes;
    images.push_back(image);
  }
}

uint64_t bytes_of(const loader::DevicePixels& image) {
  return uint64_t{image.width} * image.height * image.channels * (image.bits > 8 ? 2 : 1);
}

}  // namespace

std::vector<nb::bytes> encode_on_gpu(const std::vector<const Tensor*>& tensors,
                                     const std::vector<std::vector<int64_t>>& shapes, bool planar,
                                     const std::vector<uint32_t>& bits, bool premultiplied, uint32_t tile_width,
                                     uint32_t tile_height, uint32_t number, uintptr_t stream) {
  std::vector<loader::DevicePixels> images;
  for (size_t i = 0; i < tensors.size(); ++i) {
    loader::DevicePixels like;
    like.bits = bits[i];
    like.planar = planar;
    like.premultiplied = premultiplied;
    like.tile_width = tile_width;
    like.tile_height = tile_height;
    add_images(*tensors[i], shapes[i], like, images);
  }
  std::vector<loader::DeviceFile> files(images.size());
  l3_data_error why{};
  l3_error error{L3_OK, 0, L3_NO_TILE, ""};
  std::shared_ptr<loader::Device> device;
  {
    const nb::gil_scoped_release unlocked;
    device = OpenDevices::get().open(number, why);
    for (size_t first = 0; device != nullptr && error.status == L3_OK && first < images.size();) {
      size_t end = first;
      for (uint64_t size = 0; end < images.size() && end - first < kMaxImages; ++end) {
        size += bytes_of(images[end]);
        if (end > first && size > kMaxStaged) break;
      }
      (void)!device->encode(std::span(images).subspan(first, end - first), reinterpret_cast<void*>(stream),
                            std::span(files).subspan(first, end - first), &error);
      first = end;
    }
  }
  if (device == nullptr) raise_error(why);
  if (error.status != L3_OK) raise_error(error);
  std::vector<nb::bytes> all;
  for (size_t i = 0; i < files.size(); ++i) {
    if (files[i].error.status != L3_OK) {
      raise_error(files[i].error, files.size() > 1 ? "image " + std::to_string(i) : std::string());
    }
    all.emplace_back(files[i].bytes.data(), files[i].bytes.size());
  }
  return all;
}

std::vector<Tensor> Files::decode_on_gpu(const std::vector<const Tensor*>& to, const Output& output, uint32_t device,
                                         void* stream) {
  l3_data_error why{};
  std::vector<Tensor> made;
  std::vector<uint8_t*> out;
  const auto opened = [&] {
    const nb::gil_scoped_release unlocked;
    return OpenDevices::get().open(device, why);
  }();
  if (opened == nullptr) raise_error(why);
  if (!to.empty()) {
    for (const Tensor* tensor : to) {
      if (!tensor->is_on_gpu()) throw std::runtime_error("l3: an output is not on a GPU");
    }
    out = places(to, output);
  } else {
    for (const File& file : files_) {
      void* memory = opened->allocate_output(output_bytes(file, output));
      if (memory == nullptr) raise_memory_error();
      const l3_tensor_options wanted = wanted_of(output, file.bits, file.channels);
      Tensor tensor;
      tensor.memory = std::make_shared<DeviceMemory>(opened, memory);
      tensor.data = memory;
      tensor.type = wanted.type;
      if (output.layout == L3_LAYOUT_CHW) {
        tensor.shape = {file.channels, file.region.height, file.region.width};
      } else {
        tensor.shape = {file.region.height, file.region.width, file.channels};
      }
      tensor.device = {kDLCUDA, static_cast<int32_t>(device)};
      tensor.usual_stream = stream;
      out.push_back(static_cast<uint8_t*>(memory));
      made.push_back(std::move(tensor));
    }
  }
  l3_error error{L3_OK, 0, L3_NO_TILE, ""};
  {
    const nb::gil_scoped_release unlocked;
    auto slot = OpenDevices::get().take_slot(device, error);
    for (size_t first = 0; slot != nullptr && error.status == L3_OK && first < files_.size();) {
      size_t end = first;
      for (uint64_t size = 0; end < files_.size() && end - first < kMaxImages; ++end) {
        size += padded(files_[end].bytes.size());
        if (end > first && size > kMaxStaged) break;
      }
      error = decode_some(std::span(files_).subspan(first, end - first), std::span(out).subspan(first, end - first),
                          output, options_, *slot, stream);
      first = end;
    }
    if (slot != nullptr && error.status == L3_OK) OpenDevices::get().release(device, std::move(slot));
  }
  if (error.status != L3_OK) raise_error(error);
  raise_first_error();
  return made;
}

}  // namespace l3_python
