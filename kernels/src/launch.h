// Starts a kernel. tests/emulated_gpu.h has another launch(), which runs the kernel on the processor.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace l3 {

#if !defined(L3_EMULATED_GPU)

// `shared` is the size of the dynamic shared memory in bytes.
template <class... Arguments>
cudaError_t launch(void (*kernel)(Arguments...), uint32_t blocks, uint32_t threads, size_t shared, cudaStream_t stream,
                   std::type_identity_t<Arguments>... arguments) {
  // Returns the error of this launch only, not an earlier one of the caller's.
  void* pointers[] = {&arguments...};
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), blocks, threads, pointers, shared, stream);
}

#endif

// Loads a kernel's code to the device. Without this, CUDA may load it at the first launch.
template <class... Arguments>
cudaError_t load(void (*kernel)(Arguments...)) {
  cudaFuncAttributes attributes{};
  return cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel));
}

}  // namespace l3
