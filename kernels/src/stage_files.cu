// Copies files from pinned memory to the workspace. Each file is read once, in whole cache lines, with many loads in
// flight.
#include "cuda_instructions.cuh"
#include "launch.h"
#include "stages.h"

namespace l3 {

constexpr uint32_t kPlanThreads = 256;
constexpr uint32_t kCopyThreads = 256;
constexpr uint32_t kCopyBlocks = 48;
constexpr uint32_t kLoadsAhead = 8;

// One block copies the descriptors and assigns a place to each file to be staged.
__global__ void plan_staging(const __grid_constant__ Batch batch) {
  for (uint32_t i = threadIdx.x; i < batch.count; i += kPlanThreads) {
    batch.staged_images[i] = *reinterpret_cast<const l3_cuda_image*>(batch.images + i * batch.image_bytes);
  }
  __syncthreads();
  if (threadIdx.x >= kLanes) return;
  uint64_t end = 0;
  for (uint32_t first = 0; first < batch.count; first += kLanes) {
    const uint32_t i = first + lane_number();
    uint64_t bytes = 0;
    if (i < batch.count) {
      const l3_cuda_image& image = batch.staged_images[i];
      // Do not copy a file that is larger than a file may be: its size is an error.
      if ((image.flags & L3_CUDA_STAGE) != 0 && image.data != nullptr && image.size <= kMaxFileBytes) {
        bytes = pad_to_unit(image.size);
      }
    }
    uint64_t sum = bytes;
    for (uint32_t step = 1; step < kLanes; step *= 2) {
      const uint64_t below = __shfl_up_sync(kAllLanes, sum, step);
      if (lane_number() >= step) sum += below;
    }
    if (i < batch.count) batch.staged_at[i] = end + sum - bytes;
    end += __shfl_sync(kAllLanes, sum, kLanes - 1);
  }
  if (lane_number() == 0) batch.staged_at[batch.count] = end;
}

// Returns the unit at a place of the staging area. Zeros follow the end of a file.
L3_INLINE uint4 unit_at(const Batch& batch, uint64_t at, uint32_t& image) {
  while (batch.staged_at[image + 1] <= at) ++image;
  const l3_cuda_image& of = batch.staged_images[image];
  const uint8_t* from = static_cast<const uint8_t*>(of.data) + (at - batch.staged_at[image]);
  const uint64_t left = of.size - (at - batch.staged_at[image]);
  if (left >= kUnit && reinterpret_cast<uintptr_t>(from) % kUnit == 0) return load_global_four(from);
  uint32_t words[4] = {};
  for (uint32_t i = 0; i < kUnit && i < left; ++i) words[i / 4] |= uint32_t{from[i]} << (8 * (i % 4));
  return make_uint4(words[0], words[1], words[2], words[3]);
}

__global__ void copy_files(const __grid_constant__ Batch batch) {
  const uint64_t thread = uint64_t{blockIdx.x} * kCopyThreads + threadIdx.x;
  const uint64_t threads = uint64_t{kCopyBlocks} * kCopyThreads;
  const uint64_t all = batch.staged_at[batch.count];
  const uint64_t end = all < batch.staging_bytes ? all : batch.staging_bytes;
  uint32_t image = 0;
  for (uint64_t at = thread * kUnit; at < end; at += threads * kUnit * kLoadsAhead) {
    uint4 units[kLoadsAhead];
#pragma unroll
    for (uint32_t i = 0; i < kLoadsAhead; ++i) {
      if (at + i * threads * kUnit < end) units[i] = unit_at(batch, at + i * threads * kUnit, image);
    }
#pragma unroll
    for (uint32_t i = 0; i < kLoadsAhead; ++i) {
      if (at + i * threads * kUnit < end) store_global_four(batch.staging + at + i * threads * kUnit, units[i]);
    }
  }
}

cudaError_t load_staging() {
  const cudaError_t error = load(plan_staging);
  return error != cudaSuccess ? error : load(copy_files);
}

cudaError_t stage_files(const Batch& batch, cudaStream_t stream) {
  const cudaError_t error = launch(plan_staging, 1, kPlanThreads, 0, stream, batch);
  return error != cudaSuccess ? error : launch(copy_files, kCopyBlocks, kCopyThreads, 0, stream, batch);
}

}  // namespace l3
