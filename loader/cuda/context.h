// Work on one device, from any thread, that leaves the thread as it was.
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

// The context of a device that its process shares with all that uses the CUDA runtime. It stays until the process ends:
// the runtime cannot bear that it goes and comes again.
class Context {
 public:
  // Starts CUDA on the device of that number.
  static l3::Result<Context> open(uint32_t number);

 private:
  friend class InContext;
  using Push = CUresult (*)(CUcontext);
  using Pop = CUresult (*)(CUcontext*);

  CUcontext context_ = nullptr;
  Push push_ = nullptr;
  Pop pop_ = nullptr;
};

// Makes a device the current one as long as it lives. cudaSetDevice would do for that, but not for giving back: where
// the thread had no context yet, it makes one, on a device that the process perhaps never uses.
// Meanwhile the thread may allocate and wait although others capture a graph, whose streams are not ours.
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
