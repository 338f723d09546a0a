#include "context.h"

namespace loader::cuda {
namespace {

// Of the driver, which is not linked: it is there, or it is not.
template <class Function>
bool find(const char* name, Function& function) {
  constexpr unsigned kOfVersion = 12000;  // as <cuda.h> of every toolkit that builds this declares them
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
    if (l3_cuda_check_device(&result) != L3_OK) return result;  // which has the words for it
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
