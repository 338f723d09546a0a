// The functions of l3_cuda_encode.h: they test the arguments, lay out the workspace, and start the stages in order.
#include <algorithm>
#include <cstring>

#include "batch.h"
#include "call.h"
#include "encode.h"

namespace l3 {
namespace {

constexpr uint64_t kMaxRoom = uint64_t{1} << 48;

bool is_possible(const l3_cuda_encode_capacity& capacity) {
  return capacity.images != 0 && capacity.images <= kMaxImages && capacity.tiles != 0 && capacity.tiles <= kMaxTiles &&
         capacity.payload_bytes <= kMaxRoom;
}

// Stores the parts of the workspace in `encoding`, and returns its size.
uint64_t compute_layout(const l3_cuda_encode_capacity& capacity, void* workspace, Encoding& encoding) {
  encoding.tile_capacity = capacity.tiles;
  encoding.room_capacity = capacity.payload_bytes;
  Parts parts(workspace);
  parts.take(encoding.control, 1);
  parts.take(encoding.states, capacity.images);
  for (uint64_t*& before : encoding.tiles_before) parts.take(before, capacity.images);
  parts.take(encoding.entries, capacity.tiles);
  parts.take(encoding.payloads, capacity.payload_bytes);
  return parts.taken();
}

cudaError_t fit_to_device(Encoding& encoding) {
  int device = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = blocks_of_tile_encoders(device, encoding.byte_blocks, encoding.word_blocks);
  if (error == cudaSuccess) error = blocks_of_file_writers(device, encoding.file_blocks);
  return error;
}

cudaError_t encode(Encoding& encoding, cudaStream_t stream) {
  cudaError_t error = fit_to_device(encoding);
  if (error == cudaSuccess) error = cudaMemsetAsync(encoding.control, 0, sizeof(EncodeControl), stream);
  using Stage = cudaError_t (*)(const Encoding&, cudaStream_t);
  constexpr Stage kStages[] = {plan_files, encode_byte_tiles, encode_word_tiles, place_payloads, write_files};
  for (const Stage stage : kStages) {
    if (error == cudaSuccess) error = stage(encoding, stream);
  }
  return error;
}

}  // namespace
}  // namespace l3

using namespace l3;

l3_status l3_cuda_check_encoder(l3_error* error) {
  cudaError_t failure = check_for_device();
  Encoding encoding{};
  if (failure == cudaSuccess) failure = fit_to_device(encoding);
  if (failure == cudaSuccess) failure = load_tile_encoders();
  if (failure == cudaSuccess) failure = load_file_writers();
  return give_device(error, failure);
}

l3_status l3_cuda_add_to_capacity(l3_cuda_encode_capacity* capacity, const l3_cuda_source* image) {
  Head head;
  if (capacity == nullptr || image == nullptr || plan_head(*image, head) != Reason::none) return L3_ERROR_ARGUMENT;
  capacity->images += 1;
  capacity->tiles += head.tile_count;
  capacity->payload_bytes += head.room();
  return L3_OK;
}

uint64_t l3_cuda_encode_bound(const l3_cuda_source* image) {
  Head head;
  if (image == nullptr || plan_head(*image, head) != Reason::none) return 0;
  return head.payload_start + head.room();
}

uint64_t l3_cuda_encode_workspace_size(const l3_cuda_encode_capacity* capacity) {
  Encoding encoding{};
  return capacity != nullptr && is_possible(*capacity) ? compute_layout(*capacity, nullptr, encoding) : 0;
}

l3_status l3_cuda_encode_batch_async(const l3_cuda_encode_batch* batch, l3_error* error, l3_cuda_stream stream) {
  if (batch == nullptr) return give(error, L3_ERROR_ARGUMENT, kNullPointer);
  l3_cuda_encode_batch own{};
  if (batch->struct_size < sizeof(uint32_t) || batch->source_bytes != sizeof(l3_cuda_source)) {
    return give(error, L3_ERROR_ARGUMENT, "struct_size or source_bytes is not set: use l3_cuda_encode_batch_init");
  }
  std::memcpy(&own, batch, std::min<size_t>(batch->struct_size, sizeof(own)));
  if (!is_possible(own.capacity)) return give(error, L3_ERROR_ARGUMENT, kBadCapacity);
  if (own.image_count > own.capacity.images) return give(error, L3_ERROR_ARGUMENT, kTooManyImages);
  if (own.image_count == 0) return give(error, cudaSuccess);
  if (own.images == nullptr || own.results == nullptr || own.workspace == nullptr) {
    return give(error, L3_ERROR_ARGUMENT, kNullPointer);
  }
  if (!is_aligned(own.workspace, kAlignment) || !is_aligned(own.images, alignof(l3_cuda_source)) ||
      !is_aligned(own.results, alignof(l3_cuda_encoded))) {
    return give(error, L3_ERROR_ARGUMENT, kUnaligned);
  }
  Encoding call{};
  if (own.workspace_size < compute_layout(own.capacity, own.workspace, call)) {
    return give(error, L3_ERROR_BUFFER, kSmallWorkspace);
  }
  call.images = own.images;
  call.count = static_cast<uint32_t>(own.image_count);
  call.results = own.results;
  return give(error, encode(call, stream));
}
