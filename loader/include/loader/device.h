// The loader's interface to a GPU. Its only implementation, loader/cuda/cuda_device.cpp, is a separate library
// (libl3_data_cuda.so) that is loaded on demand. Everything else works without it and without a GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "l3/l3_loader.h"
#include "loader/resample.h"

namespace loader {

// What to do with the samples of a region, beyond converting them.
struct DeviceChange {
  Geometry geometry;
  Colours colours;
  Values values;
  uint32_t bits = 8;  // of the samples that are decoded
};

// An image to decode. The slot's staging memory holds its file, or the parts of the file that its region needs.
struct DeviceImage {
  uint64_t at = 0;                    // offset of the file in the staging memory, a multiple of 16
  uint64_t size = 0;                  // of the file
  std::span<const l3_range> present;  // the parts that are there, ascending, 16-byte aligned; empty: the whole file
  l3_info info{};                     // as l3_read_info gives it
  uint32_t x = 0, y = 0, width = 0, height = 0;  // the region
  bool flip = false;
  const l3_tensor_options* wanted = nullptr;  // whose type is not L3_VALUE_STORED
  uint32_t channels = 0;                      // of the output
  void* out = nullptr;                        // contiguous device memory
  const DeviceChange* change = nullptr;       // null: `wanted` says it all
};

// Bytes to copy to the device unchanged.
struct DeviceCopy {
  uint64_t at = 0;  // in the staging memory
  uint64_t size = 0;
  void* out = nullptr;
};

// An image in device memory to encode with the method fast.
struct DevicePixels {
  const void* pixels = nullptr;
  uint64_t row_stride = 0, plane_stride = 0;  // in bytes; 0: no padding
  uint32_t width = 0, height = 0, channels = 0, bits = 0;
  bool planar = false, premultiplied = false;
  uint32_t tile_width = 0, tile_height = 0;  // 0: 128
};

// A file, or why there is none.
struct DeviceFile {
  l3_error error{};
  std::vector<uint8_t> bytes;
};

struct DeviceWork {
  std::span<const DeviceImage> images;
  std::span<const DeviceCopy> copies;
  std::span<const l3_model* const> models;  // that files may name
  // If true: no `out` is written before the work that is now in `after_stream` has finished, and later work in that
  // stream waits until all outputs are written. The stream must not be capturing a graph.
  bool ordered = false;
  void* after_stream = nullptr;
  // If not null: the memory of allocate_output that contains every `out`. It is not written before its users (see
  // Device::use_until) and earlier work on it have finished.
  void* output = nullptr;
};

// In nanoseconds since the copy began.
struct DeviceTimes {
  uint64_t copied = 0, decoded = 0;
};

// Memory and a stream for one batch at a time. One thread at a time may use a slot. The destructor waits for its work.
class DeviceSlot {
 public:
  virtual ~DeviceSlot() = default;

  // Returns pinned memory of at least `size` bytes, or null if there is not enough. Growing it loses its contents. No
  // work may be in progress.
  virtual uint8_t* staging(uint64_t size) = 0;
  // Enqueues copies and then decoding in the slot's own stream. Waits only if memory must grow or the call fails; after
  // a failure no work is in progress. At most 65535 images.
  virtual l3_status begin(const DeviceWork& work, l3_error* error) = 0;
  // Waits for the work, and sets the verdict of each image.
  virtual l3_status finish(std::span<l3_error> verdicts, DeviceTimes& times, l3_error* error) = 0;
};

// A GPU. Streams are values of cudaStream_t; null, 1 and 2 are the default streams. A device must outlive its slots. No
// call changes the thread's current device.
class Device {
 public:
  virtual ~Device() = default;

  virtual std::unique_ptr<DeviceSlot> make_slot(l3_error* error) = 0;
  // Returns device memory aligned to 256 bytes, or null if there is not enough. Any thread may call these three
  // functions.
  virtual void* allocate_output(uint64_t size) = 0;
  virtual void free_output(void* output) = 0;  // waits for its users
  // Records that the work that is in `stream` now uses the output. It may be called for several streams. It does
  // nothing for a stream that is capturing a graph.
  virtual void use_until(void* output, void* stream) = 0;
  // Encodes images after the work that is now in `stream`, and waits for their files. There are as many of them as
  // images, at most 65535. The stream must not be capturing a graph. Any thread may call this.
  virtual l3_status encode(std::span<const DevicePixels> images, void* stream, std::span<DeviceFile> files,
                           l3_error* error) = 0;
};

// The type of the function that the library exports under the name kDeviceEntry.
using OpenDevice = Device* (*)(uint32_t version, uint32_t number, l3_error* error);
inline constexpr const char* kDeviceEntry = "l3_data_open_cuda_device";
// Both sides come from the same build, so one number suffices.
inline constexpr uint32_t kDeviceVersion = 1;

// Returns the device of that number. On failure returns null and sets *error: the library is missing, there is no GPU,
// or it has no code for that GPU. Calls with the same number share a device.
std::shared_ptr<Device> open_cuda_device(uint32_t number, l3_data_error* error);
// For tests: uses this function instead of the library's.
void set_device_entry(OpenDevice open);

}  // namespace loader
