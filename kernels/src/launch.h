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

// Computes how many blocks of a kernel the device runs at once.
template <class Kernel>
cudaError_t resident_blocks(int device, Kernel kernel, uint32_t threads, uint32_t shared_bytes, uint32_t& blocks) {
  int processors = 0, of_processor = 0;
  cudaError_t error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (error == cudaSuccess) {
    error =
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_processor, kernel, static_cast<int>(threads), shared_bytes);
  }
  blocks = static_cast<uint32_t>(processors) * static_cast<uint32_t>(of_processor < 1 ? 1 : of_processor);
  return error;
}

}  // namespace l3
