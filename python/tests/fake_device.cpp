// A stand-in for libl3_data_cuda.so. Its device memory is host memory, and its streams are numbers that it logs. Tests
// read from the log what the package asks of a device, and when.
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "loader/device.h"
#include "loader/tensor_writer.h"

namespace {

struct Log {
  std::mutex mutex;
  std::string text;
  std::map<void*, int> outputs;  // numbered in the order of allocation
  int made = 0;

  void write(const std::string& line) { text += line + "\n"; }
};
Log& log() {
  static Log& the_one = *new Log;
  return the_one;
}

std::string number_of(void* stream) { return std::to_string(reinterpret_cast<uintptr_t>(stream)); }

class Slot : public loader::DeviceSlot {
 public:
  uint8_t* staging(uint64_t size) override {
    if (staging_.size() < size) staging_.resize(size);
    return staging_.data();
  }
  l3_status begin(const loader::DeviceWork& work, l3_error*) override {
    {
      const std::lock_guard lock(log().mutex);
      if (work.ordered) log().write("ordered " + number_of(work.after_stream));
    }
    verdicts_.clear();
    for (const loader::DeviceImage& image : work.images) verdicts_.push_back(decode(image, work));
    for (const loader::DeviceCopy& copy : work.copies) std::memcpy(copy.out, staging_.data() + copy.at, copy.size);
    return L3_OK;
  }
  l3_status finish(std::span<l3_error> verdicts, loader::DeviceTimes& times, l3_error*) override {
    for (size_t i = 0; i < verdicts.size(); ++i) verdicts[i] = verdicts_[i];
    times = {1, 2};
    return L3_OK;
  }

 private:
  l3_error decode(const loader::DeviceImage& image, const loader::DeviceWork& work) {
    l3_error error{L3_OK, 0, L3_NO_TILE, ""};
    const bool as_colours = image.wanted->as_colours != 0 && image.info.colour == L3_COLOUR_PALETTE;
    const uint32_t bits = as_colours ? 8 : image.info.bits;
    l3_decode_options options = l3_decode_options_init();
    options.as_colours = image.wanted->as_colours;
    options.models = work.models.data();
    options.model_count = work.models.size();
    std::vector<uint8_t> pixels(size_t{image.width} * image.height * image.channels * (bits > 8 ? 2 : 1));
    if (l3_decode_region(staging_.data() + image.at, image.size, image.x, image.y, image.width, image.height, &options,
                         pixels.data(), pixels.size(), 0, &error) == L3_OK) {
      const loader::TensorWriter writer(*image.wanted, bits, image.channels);
      if (writer.is_same() && !image.flip) {
        std::memcpy(image.out, pixels.data(), pixels.size());
      } else {
        writer.write(pixels.data(), image.width, image.height, image.flip, static_cast<uint8_t*>(image.out));
      }
    }
    return error;
  }

  std::vector<uint8_t> staging_;
  std::vector<l3_error> verdicts_;
};

class Device : public loader::Device {
 public:
  std::unique_ptr<loader::DeviceSlot> make_slot(l3_error*) override {
    const std::lock_guard lock(log().mutex);
    log().write("slot");
    return std::make_unique<Slot>();
  }
  void* allocate_output(uint64_t size) override {
    const std::lock_guard lock(log().mutex);
    void* const output = std::aligned_alloc(256, (size + 255) / 256 * 256);
    log().outputs[output] = log().made++;
    return output;
  }
  void free_output(void* output) override {
    const std::lock_guard lock(log().mutex);
    log().write("free " + name_of(output));
    log().outputs.erase(output);
    std::free(output);
  }
  void use_until(void* output, void* stream) override {
    const std::lock_guard lock(log().mutex);
    log().write("use " + name_of(output) + " " + number_of(stream));
  }

  l3_status encode(std::span<const loader::DevicePixels> images, void* stream, std::span<loader::DeviceFile> files,
                   l3_error* error) override {
    {
      const std::lock_guard lock(log().mutex);
      log().write("encode " + std::to_string(images.size()) + " after " + number_of(stream));
    }
    for (size_t i = 0; i < images.size(); ++i) files[i] = encode(images[i]);
    *error = {L3_OK, 0, L3_NO_TILE, ""};
    return L3_OK;
  }

 private:
  static loader::DeviceFile encode(const loader::DevicePixels& pixels) {
    const size_t sample = pixels.bits > 8 ? 2 : 1, plane = size_t{pixels.width} * pixels.height;
    const auto* const from = static_cast<const uint8_t*>(pixels.pixels);
    std::vector<uint8_t> in_order(plane * pixels.channels * sample);
    for (size_t i = 0; i < plane; ++i) {
      for (size_t c = 0; c < pixels.channels; ++c) {
        const size_t place = pixels.planar ? c * plane + i : i * pixels.channels + c;
        std::memcpy(&in_order[(i * pixels.channels + c) * sample], from + place * sample, sample);
      }
    }
    l3_image image = l3_image_init();
    image.width = pixels.width;
    image.height = pixels.height;
    image.bits = pixels.bits;
    image.colour = pixels.channels - 1;
    image.alpha = pixels.channels % 2 != 0 ? L3_ALPHA_NONE
                  : pixels.premultiplied   ? L3_ALPHA_PREMULTIPLIED
                                           : L3_ALPHA_STRAIGHT;
    image.pixels = in_order.data();
    l3_encode_options options = l3_encode_options_init();
    options.method = L3_METHOD_FAST;
    options.tile_width = pixels.tile_width;
    options.tile_height = pixels.tile_height;
    loader::DeviceFile file;
    file.bytes.resize(l3_encode_bound(&image, &options));
    size_t size = 0;
    (void)!l3_encode(&image, &options, file.bytes.data(), file.bytes.size(), &size, &file.error);
    file.bytes.resize(size);
    return file;
  }
  static std::string name_of(void* output) {
    const auto known = log().outputs.find(output);
    return known == log().outputs.end() ? "unknown" : std::to_string(known->second);
  }
};

}  // namespace

extern "C" {

__attribute__((visibility("default"))) loader::Device* l3_data_open_cuda_device(uint32_t version, uint32_t number,
                                                                                l3_error* error) {
  if (version == loader::kDeviceVersion && number < 2) return new Device;
  *error = {L3_ERROR_DEVICE, 0, L3_NO_TILE, "there is no such device"};
  return nullptr;
}

// Returns the log since the last call. It is valid until the next call.
__attribute__((visibility("default"))) const char* fake_log() {
  static std::string& text = *new std::string;
  const std::lock_guard lock(log().mutex);
  text = log().text;
  log().text.clear();
  return text.c_str();
}

__attribute__((visibility("default"))) int fake_outputs() {
  const std::lock_guard lock(log().mutex);
  return static_cast<int>(log().outputs.size());
}
}
