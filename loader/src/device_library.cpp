// Finds libl3_data_cuda.so, and shares devices that are open.
#include <dlfcn.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <new>
#include <string>

#include "data_error.h"
#include "loader/device.h"

namespace loader {
namespace {

constexpr const char* kLibrary = "libl3_data_cuda.so";

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

// The folder of the library or program that contains this code, with a slash at the end; empty if unknown.
std::string own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&open_cuda_device), &info) == 0 || info.dli_fname == nullptr) return {};
  const std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/') + 1);  // npos + 1 is 0
}

// The library is never unloaded: it owns the texts of errors, and the CUDA runtime cannot be unloaded.
OpenDevice load(l3_data_error* error) {
  const std::string folder = own_folder(), beside = folder + kLibrary;
  const bool is_beside = !folder.empty() && access(beside.c_str(), F_OK) == 0;
  void* handle = dlopen(is_beside ? beside.c_str() : kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const text = dlerror();
    const std::string why = text == nullptr ? "cannot be loaded" : text;
    // For a missing file the system's message says only that.
    const bool is_missing = !is_beside && why.find("No such file") != std::string::npos;
    const std::string where = folder.empty() ? "installed" : "next to this library in " + folder;
    (void)fail(error, L3_ERROR_DEVICE, is_beside ? beside : "",
               is_missing ? "this build has no CUDA part: " + std::string(kLibrary) + " is not " + where : why);
    return nullptr;
  }
  void* const entry = dlsym(handle, kDeviceEntry);
  if (entry == nullptr) {
    (void)fail(error, L3_ERROR_DEVICE, is_beside ? beside : kLibrary,
               "this library is not the CUDA part of libl3_data");
  }
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
