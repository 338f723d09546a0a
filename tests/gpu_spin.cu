#include "gpu_spin.h"

namespace {

__device__ uint64_t nanoseconds() {
  uint64_t value;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value));
  return value;
}

__global__ void wait(uint64_t duration) {
  const uint64_t start = nanoseconds();
  while (nanoseconds() - start < duration) {
  }
}

}  // namespace

cudaError_t spin(uint64_t microseconds, cudaStream_t stream) {
  wait<<<1, 1, 0, stream>>>(1000 * microseconds);
  return cudaGetLastError();
}
