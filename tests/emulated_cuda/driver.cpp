// CUDA's driver: contexts. That of a device which the runtime uses is its primary one; there are no others here.
#include <cstring>

#include "cuda.h"
#include "machine.h"

struct CUctx_st {
  int device;
};

namespace emulated {
namespace {

CUctx_st* context_of(int device) {
  static std::map<int, CUctx_st> contexts;
  return &contexts.try_emplace(device, CUctx_st{device}).first->second;
}

CUresult get_device(CUdevice* device, int number) {
  const Lock lock;
  if (!is_device(number)) return CUDA_ERROR_INVALID_DEVICE;
  *device = number;
  return CUDA_SUCCESS;
}
CUresult retain_primary_context(CUcontext* context, CUdevice device) {
  const Lock lock;
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  start(device);
  *context = context_of(device);
  return CUDA_SUCCESS;
}
CUresult push_context(CUcontext context) {
  const Lock lock;
  if (context == nullptr || context_of(context->device) != context) return CUDA_ERROR_INVALID_CONTEXT;
  this_thread().contexts.push_back(context->device);
  return CUDA_SUCCESS;
}
CUresult pop_context(CUcontext* context) {
  const Lock lock;
  std::vector<int>& contexts = this_thread().contexts;
  if (contexts.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *context = context_of(contexts.back());
  contexts.pop_back();
  return CUDA_SUCCESS;
}

struct Entry {
  const char* name;
  void* function;
};
const Entry kEntries[] = {
    {"cuDeviceGet", reinterpret_cast<void*>(&get_device)},
    {"cuDevicePrimaryCtxRetain", reinterpret_cast<void*>(&retain_primary_context)},
    {"cuCtxPushCurrent", reinterpret_cast<void*>(&push_context)},
    {"cuCtxPopCurrent", reinterpret_cast<void*>(&pop_context)},
};

}  // namespace
}  // namespace emulated

using namespace emulated;

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  if (symbol == nullptr || function == nullptr) return give(cudaErrorInvalidValue);
  *function = nullptr;
  if (result != nullptr) *result = cudaDriverEntryPointSymbolNotFound;
  for (const Entry& entry : kEntries) {
    if (std::strcmp(entry.name, symbol) != 0) continue;
    *function = entry.function;
    if (result != nullptr) *result = cudaDriverEntryPointSuccess;
  }
  return cudaSuccess;
}
