// The stages of a call: each puts its kernel into the stream.
#pragma once

#include <cuda_runtime_api.h>

#include "batch.h"

namespace l3 {

cudaError_t stage_files(const Batch& batch, cudaStream_t stream);
cudaError_t open_images(const Batch& batch, cudaStream_t stream);
cudaError_t build_models(const Batch& batch, cudaStream_t stream);
cudaError_t list_tiles(const Batch& batch, cudaStream_t stream);
cudaError_t decode_dense_tiles(const Batch& batch, cudaStream_t stream);
cudaError_t decode_other_tiles(const Batch& batch, cudaStream_t stream);
cudaError_t report_results(const Batch& batch, cudaStream_t stream);

// How many blocks the device takes at once, of how many warps with how much shared memory. The same at each call.
struct Shape {
  uint32_t blocks, warps, shared_bytes;
};
cudaError_t shape_of_dense(int device, Shape& shape);
cudaError_t shape_of_others(int device, Shape& shape);

}  // namespace l3
