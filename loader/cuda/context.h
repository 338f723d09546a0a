// Work on one device from any thread. It leaves the thread's current device unchanged.
#pragma once

#include <cuda.h>

#include "l3/l3_cuda.hpp"

namespace loader::cuda {

inline l3_error no_error() { return {L3_OK, 0, L3_NO_TILE, "no error"}; }
inline l3_error make_error(l3_status status, const char* reason) { return {status, 0, L3_NO_TILE, reason}; }
inline l3_error from_cuda(cudaError_t code) { return code == cudaSuccess ? no_error() : l3::cuda::failure(code); }
inline l3_status return_error(l3_error* error, const l3_error& result) {
  if (error != nullptr) *error = result;
  return result.status;
}

inline bool is_captured(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t code = cudaStreamIsCapturing(stream, &status);
  if (code != cudaSuccess) (void)cudaGetLastError();
  return code == cudaSuccess && status != cudaStreamCaptureStatusNone;
}

// The primary context of a device, which the process shares with all users of the CUDA runtime. It is kept until the
// process ends, because the runtime does not support releasing and retaining it again.
class Context {
 public:
  // Starts CUDA on a device.
  static l3::Result<Context> open(uint32_t number);

 private:
  friend class InContext;
  using Push = CUresult (*)(CUcontext);
  using Pop = CUresult (*)(CUcontext*);

  CUcontext context_ = nullptr;
  Push push_ = nullptr;
  Pop pop_ = nullptr;
};

// Makes a device current for its lifetime. cudaSetDevice could not restore the state before: if the thread had no
// context yet, it would make one, on a device that the process may never use. Within its lifetime the thread may
// allocate and wait while other threads capture graphs in other streams.
class InContext {
 public:
  explicit InContext(const Context& context) : pop_(context.pop_) {
    is_there_ = context.push_(context.context_) == CUDA_SUCCESS;
    if (is_there_) (void)cudaThreadExchangeStreamCaptureMode(&mode_);
  }
  ~InContext() {
    if (!is_there_) return;
    (void)cudaThreadExchangeStreamCaptureMode(&mode_);
    CUcontext context = nullptr;
    (void)pop_(&context);
  }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;

  explicit operator bool() const { return is_there_; }
  static l3_error problem() { return make_error(L3_ERROR_DEVICE, "the device is no longer available"); }

 private:
  Context::Pop pop_;
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
  bool is_there_ = false;
};

}  // namespace loader::cuda
