// A GPU as the loader sees it. There is one implementation, loader/cuda/cuda_device.cpp, in a library of its own
// (libl3_data_cuda.so) that is loaded where it is asked for: without it, and without a GPU, all else works.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "l3/l3_loader.h"

namespace loader {

// An image to be decoded. Its file, or the parts of it that its region needs, lies in the slot's staging memory.
struct DeviceImage {
  uint64_t at = 0;                    // where the file begins in the staging memory: a multiple of 16
  uint64_t size = 0;                  // the file's
  std::span<const l3_range> present;  // what of the file is there, in rising order; 16-byte aligned, all of it if empty
  l3_info info{};                     // as l3_read_info gives it
  uint32_t x = 0, y = 0, width = 0, height = 0;  // the region
  bool flip = false;
  const l3_tensor_options* wanted = nullptr;  // whose type is not L3_VALUE_STORED
  uint32_t channels = 0;                      // as they are written
  void* out = nullptr;                        // in device memory, without gaps
};

// Bytes that go to the device as they are.
struct DeviceCopy {
  uint64_t at = 0;  // in the staging memory
  uint64_t size = 0;
  void* out = nullptr;
};

struct DeviceWork {
  std::span<const DeviceImage> images;
  std::span<const DeviceCopy> copies;
  std::span<const l3_model* const> models;  // that files may name
  // Nothing is written to any `out` before the work that is in `after_stream` when this begins, and that stream goes
  // on only when all is written. It must not be in a capture.
  bool ordered = false;
  void* after_stream = nullptr;
  // Where it is not null: the one of allocate_output that holds every `out`. Nothing is written to it before what
  // Device::use_until says of it, and before earlier work that had it here.
  void* output = nullptr;
};

// In nanoseconds, from the beginning of the copy on.
struct DeviceTimes {
  uint64_t copied = 0, decoded = 0;
};

// Room for a batch that is on its way. For one thread at a time; destroying it waits for its work.
class DeviceSlot {
 public:
  virtual ~DeviceSlot() = default;

  // Pinned memory of at least that size, whose contents are kept from one call to the next only where it does not grow.
  // Nothing may be under way. Null where there is no memory.
  virtual uint8_t* staging(uint64_t size) = 0;
  // Puts the work into a stream of the slot's own: copies, and decoding behind it. Waits for nothing, but where memory
  // grows, and where it fails: then nothing is under way. At most 65535 images.
  virtual l3_status begin(const DeviceWork& work, l3_error* error) = 0;
  // Waits until it is done. Says of each image what became of it.
  virtual l3_status finish(std::span<l3_error> verdicts, DeviceTimes& times, l3_error* error) = 0;
};

// Streams are each a cudaStream_t, of which null, 1 and 2 are default streams. A device outlives its slots. No call
// changes the thread's current device.
class Device {
 public:
  virtual ~Device() = default;

  virtual std::unique_ptr<DeviceSlot> make_slot(l3_error* error) = 0;
  // Device memory at a multiple of 256; null where there is none. Any thread may call these three.
  virtual void* allocate_output(uint64_t size) = 0;
  virtual void free_output(void* output) = 0;  // waits for what uses it
  // The work that is in `stream` now still uses that output; of several streams each counts. A stream that is being
  // captured has no work.
  virtual void use_until(void* output, void* stream) = 0;
};

// For DeviceLibrary and tests: what the library exports under the name of kDeviceEntry.
using OpenDevice = Device* (*)(uint32_t version, uint32_t number, l3_error* error);
inline constexpr const char* kDeviceEntry = "l3_data_open_cuda_device";
// Both sides are of one build of one version.
inline constexpr uint32_t kDeviceVersion = 1;

// The device of that number, or null and the reason: the library is missing, there is no GPU, or none that it has code
// for. Calls with one number share a device.
std::shared_ptr<Device> open_cuda_device(uint32_t number, l3_data_error* error);
// For tests: takes this instead of the library's.
void set_device_entry(OpenDevice open);

}  // namespace loader
