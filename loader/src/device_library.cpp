// Opens devices of libl3_data_cuda.so, and shares devices that are open.
#include <map>
#include <mutex>
#include <new>
#include <string>

#include "data_error.h"
#include "library.h"
#include "loader/device.h"

namespace loader {
namespace {

// State that all loaders of the process share.
struct Library {
  std::mutex mutex;
  OpenDevice open = nullptr;
  std::map<uint32_t, std::weak_ptr<Device>> devices;
};
Library& library() {
  static Library the_one;
  return the_one;
}

OpenDevice load(l3_data_error* error) {
  std::string file, why;
  void* const entry = find_in_library("libl3_data_cuda.so", kDeviceEntry, "this build has no CUDA part", file, why);
  if (entry == nullptr) (void)fail(error, L3_ERROR_DEVICE, file, why);
  return reinterpret_cast<OpenDevice>(entry);
}

std::shared_ptr<Device> open_or_share(Library& of, uint32_t number, l3_data_error* error) {
  if (std::shared_ptr<Device> known = of.devices[number].lock()) return known;
  if (of.open == nullptr) of.open = load(error);
  if (of.open == nullptr) return nullptr;
  l3_error result{};
  std::shared_ptr<Device> device(of.open(kDeviceVersion, number, &result));
  if (device == nullptr) {
    const std::string which = "CUDA device " + std::to_string(number) + ": ";
    (void)fail(error, result.status, "", which + (result.reason == nullptr ? "it cannot be used" : result.reason));
    return nullptr;
  }
  of.devices[number] = device;
  return device;
}

}  // namespace

std::shared_ptr<Device> open_cuda_device(uint32_t number, l3_data_error* error) {
  Library& of = library();
  const std::lock_guard lock(of.mutex);
  try {
    std::shared_ptr<Device> device = open_or_share(of, number, error);
    if (device != nullptr) (void)succeed(error);
    return device;
  } catch (const std::bad_alloc&) {
    (void)fail(error, L3_ERROR_MEMORY, "", "out of memory");
    return nullptr;
  }
}

void set_device_entry(OpenDevice open) {
  Library& of = library();
  const std::lock_guard lock(of.mutex);
  of.open = open;
  of.devices.clear();
}

}  // namespace loader
