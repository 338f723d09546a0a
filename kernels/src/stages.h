// The stages of a call. Each adds its kernel to the stream.
#pragma once

#include <cuda_runtime_api.h>

#include "batch.h"

namespace l3 {

cudaError_t stage_files(const Batch& batch, cudaStream_t stream);
cudaError_t open_images(const Batch& batch, cudaStream_t stream);
cudaError_t build_models(const Batch& batch, cudaStream_t stream);
cudaError_t list_tiles(const Batch& batch, cudaStream_t stream);
cudaError_t decode_dense_tiles(const Batch& batch, cudaStream_t stream);
cudaError_t decode_token_tiles(const Batch& batch, cudaStream_t stream);
cudaError_t decode_wide_token_tiles(const Batch& batch, cudaStream_t stream);
cudaError_t decode_row_tiles(const Batch& batch, cudaStream_t stream);
cudaError_t decode_follow_tiles(const Batch& batch, cudaStream_t stream);
cudaError_t decode_bit_tiles(const Batch& batch, cudaStream_t stream);
cudaError_t decode_byte_tiles(const Batch& batch, cudaStream_t stream);
cudaError_t decode_word_tiles(const Batch& batch, cudaStream_t stream);
cudaError_t change_images(const Batch& batch, cudaStream_t stream);
cudaError_t report_results(const Batch& batch, cudaStream_t stream);

// Load the code of the kernels to the device.
cudaError_t load_staging();
cudaError_t load_open();
cudaError_t load_models();
cudaError_t load_lists();
cudaError_t load_dense();
cudaError_t load_tokens();
cudaError_t load_rows();
cudaError_t load_follow();
cudaError_t load_bits();
cudaError_t load_bytes();
cudaError_t load_words();
cudaError_t load_changes();

// Compute launch sizes: how many blocks the device runs at once. The results are the same in each call.
cudaError_t shape_of_dense(int device, ChunkShape& shape);
cudaError_t shape_of_tokens(int device, ChunkShape& shape);
cudaError_t shape_of_wide_tokens(int device, ChunkShape& shape);
cudaError_t shape_of_rows(int device, ChunkShape& shape);
cudaError_t shape_of_follow(int device, ChunkShape& shape);
cudaError_t shape_of_bits(int device, ChunkShape& shape);
cudaError_t blocks_of_bytes(int device, uint32_t& blocks);
cudaError_t blocks_of_words(int device, uint32_t& blocks);

}  // namespace l3
