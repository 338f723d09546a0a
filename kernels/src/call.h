// What the functions that start a call share: errors, and the layout of the workspace.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "l3/l3.h"

namespace l3 {

constexpr uint64_t kAlignment = 256;  // of the workspace and its parts

constexpr const char* kNullPointer = "a pointer that must not be null is null";
constexpr const char* kBadCapacity = "the capacity is invalid";
constexpr const char* kTooManyImages = "there are more images than the capacity allows";
constexpr const char* kSmallWorkspace = "the workspace is too small for the capacity";
constexpr const char* kUnaligned = "the workspace, the images or the results are not aligned";

inline bool is_aligned(const void* p, uint64_t to) { return reinterpret_cast<uintptr_t>(p) % to == 0; }

inline l3_status give(l3_error* error, l3_status status, const char* reason) {
  if (error != nullptr) *error = {status, 0, L3_NO_TILE, reason};
  return status;
}

inline l3_status give(l3_error* error, cudaError_t failure) {
  if (failure == cudaSuccess) return give(error, L3_OK, "no error");
  (void)cudaGetLastError();  // clear it: the caller's next CUDA call must not report it again
  return give(error, L3_ERROR_DEVICE, cudaGetErrorString(failure));
}

// Returns an error if the process can use no device.
inline cudaError_t check_for_device() {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  return error == cudaSuccess && devices == 0 ? cudaErrorNoDevice : error;
}
// Gives an error that may come from the lack of a driver.
inline l3_status give_device(l3_error* error, cudaError_t failure) {
  const l3_status status = give(error, failure);
  // The runtime reports this error also if there is no driver at all.
  if (failure == cudaErrorInsufficientDriver && error != nullptr) {
    error->reason = "there is no CUDA driver, or it is too old for this library";
  }
  return status;
}

// Allocates parts of the workspace one after the other. If the workspace is null, it only adds up their sizes.
class Parts {
 public:
  explicit Parts(void* workspace) : workspace_(static_cast<uint8_t*>(workspace)) {}

  template <class T>
  void take(T*& part, uint64_t count) {
    if (workspace_ != nullptr) part = reinterpret_cast<T*>(workspace_ + taken_);
    taken_ += (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
  }
  uint64_t taken() const { return taken_; }

 private:
  uint8_t* workspace_;
  uint64_t taken_ = 0;
};

}  // namespace l3
