#include "context.h"

namespace loader::cuda {
namespace {

// Finds a function of the driver, which is not linked and may be absent.
template <class Function>
bool find(const char* name, Function& function) {
  constexpr unsigned kOfVersion = 12000;  // the version of these functions in <cuda.h>
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  const cudaError_t code = cudaGetDriverEntryPointByVersion(name, &found, kOfVersion, cudaEnableDefault, &result);
  if (code != cudaSuccess) (void)cudaGetLastError();
  if (code != cudaSuccess || result != cudaDriverEntryPointSuccess) return false;
  function = reinterpret_cast<Function>(found);
  return function != nullptr;
}

}  // namespace

l3::Result<Context> Context::open(uint32_t number) {
  int devices = 0;
  if (const cudaError_t code = cudaGetDeviceCount(&devices); code != cudaSuccess || devices <= 0) {
    (void)cudaGetLastError();
    l3_error result{};
    if (l3_cuda_check_device(&result) != L3_OK) return result;  // its message is the most specific
    return from_cuda(cudaErrorNoDevice);
  }
  if (number >= static_cast<uint32_t>(devices)) {
    return make_error(L3_ERROR_DEVICE, "there is no CUDA device with this number");
  }
  CUresult (*get)(CUdevice*, int) = nullptr;
  CUresult (*retain)(CUcontext*, CUdevice) = nullptr;
  Context opened;
  CUdevice device{};
  if (!find("cuDeviceGet", get) || !find("cuDevicePrimaryCtxRetain", retain) ||
      !find("cuCtxPushCurrent", opened.push_) || !find("cuCtxPopCurrent", opened.pop_)) {
    return make_error(L3_ERROR_DEVICE, "the CUDA driver lacks functions that this library needs");
  }
  if (get(&device, static_cast<int>(number)) != CUDA_SUCCESS || retain(&opened.context_, device) != CUDA_SUCCESS) {
    return make_error(L3_ERROR_DEVICE, "cannot start the CUDA device");
  }
  return opened;
}

}  // namespace loader::cuda
