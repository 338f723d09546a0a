// libl3_cuda encodes images in a GPU's memory with the method fast. The files are those of l3_encode, byte for byte.
//
// One call encodes a batch, whose images may differ in size, channels, depth and layout. A program that encodes one:
//
//   1. calls l3_cuda_check_encoder once for each device;
//   2. adds up what its images need with l3_cuda_add_to_capacity, and allocates l3_cuda_encode_workspace_size() bytes
//   of
//      device memory;
//   3. fills an l3_cuda_source for each image, with room for l3_cuda_encode_bound() bytes, and calls
//      l3_cuda_encode_batch_async;
//   4. waits for the stream, and reads the size of each file in its l3_cuda_encoded.
//
// Streams, threads and trusted input: as in l3_cuda.h.
#ifndef L3_L3_CUDA_ENCODE_H
#define L3_L3_CUDA_ENCODE_H

#include "l3/l3_cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

// Tests whether the calling thread's current device can encode, and loads the kernels to it. Returns L3_OK, or
// L3_ERROR_DEVICE as l3_cuda_check_device does. `error` may be null.
L3_API L3_MUST_USE l3_status l3_cuda_check_encoder(l3_error* error);

// An image to encode, and where its file goes.
//
// The descriptor lies in device memory or in pinned memory that the device can read. The descriptor, the pixels and the
// file belong to the caller. Do not change or free them until the stream has completed the call.
//
// A slot with null `pixels` and a null `out` is empty: the call skips it, and its result is L3_OK with a size of 0.
typedef struct l3_cuda_source {
  const void* pixels;     // device memory
  uint64_t row_stride;    // bytes from one row to the next; 0 means no padding
  uint64_t plane_stride;  // CHW: bytes from one channel to the next; 0 means no padding. HWC: ignored
  uint32_t width, height;
  uint32_t channels;                 // 1: gray, 2: gray and alpha, 3: RGB, 4: RGB and alpha
  uint32_t bits;                     // of a sample: 1 to 8 in bytes, 9 to 16 in uint16_t at multiples of 2
  uint32_t layout;                   // an l3_cuda_layout
  uint32_t premultiplied;            // 1: the colours are multiplied by alpha
  uint32_t tile_width, tile_height;  // 32 to 1024, a multiple of 32; 0: 128
  void* out;                         // device memory at a multiple of 16
  uint64_t out_size;                 // in bytes; l3_cuda_encode_bound() always suffices
} l3_cuda_source;

// Returns a descriptor that is all zero.
static inline l3_cuda_source l3_cuda_source_init(void) {
#ifdef __cplusplus
  l3_cuda_source source = {};
#else
  l3_cuda_source source = {0};
#endif
  return source;
}

// What became of an image.
typedef struct l3_cuda_encoded {
  // For l3_cuda_explain. L3_ERROR_ARGUMENT: the descriptor is wrong, or a sample is above 2^bits - 1. L3_ERROR_BUFFER:
  // the file has more than out_size bytes. L3_ERROR_LIMIT: the batch takes more than its capacity.
  l3_cuda_result result;
  uint64_t size;  // of the file, also with L3_ERROR_BUFFER; with other errors 0
} l3_cuda_encoded;

// The largest batch that a workspace is for. If an image takes the batch over it, that image and all later ones fail
// with L3_ERROR_LIMIT.
typedef struct l3_cuda_encode_capacity {
  uint64_t images;         // at most 65535
  uint64_t tiles;          // of all images together; at most 2^31
  uint64_t payload_bytes;  // of all tiles without compression
} l3_cuda_encode_capacity;

// Adds what an image needs to a capacity that began as all zero. Only its sizes, channels and bits count. Returns
// L3_ERROR_ARGUMENT, and adds nothing, if they are not valid.
L3_API L3_MUST_USE l3_status l3_cuda_add_to_capacity(l3_cuda_encode_capacity* capacity, const l3_cuda_source* image);

// Returns the greatest size that the file can have, or 0 if the image's sizes, channels or bits are not valid.
L3_API uint64_t l3_cuda_encode_bound(const l3_cuda_source* image);

// Returns the size in bytes of the workspace that a call with this capacity needs: about that of the pixels. Returns 0
// if the capacity is not possible.
L3_API uint64_t l3_cuda_encode_workspace_size(const l3_cuda_encode_capacity* capacity);

// The arguments of a call. The structure is read during the call only. The memory that it points to belongs to the
// caller; do not free it until the stream has completed the call.
typedef struct l3_cuda_encode_batch {
  uint32_t struct_size;   // set by l3_cuda_encode_batch_init
  uint32_t source_bytes;  // set by l3_cuda_encode_batch_init: sizeof(l3_cuda_source)
  uint64_t image_count;   // at most capacity.images; 0 does nothing
  const l3_cuda_source* images;
  l3_cuda_encoded* results;  // one for each image: device memory, or pinned memory that the device can write
  l3_cuda_encode_capacity capacity;
  void* workspace;  // device memory at a multiple of 256. One call uses it at a time
  uint64_t workspace_size;
} l3_cuda_encode_batch;

// Returns a batch that is all zero except for its two sizes.
static inline l3_cuda_encode_batch l3_cuda_encode_batch_init(void) {
#ifdef __cplusplus
  l3_cuda_encode_batch batch = {};
#else
  l3_cuda_encode_batch batch = {0};
#endif
  batch.struct_size = (uint32_t)sizeof(batch);
  batch.source_bytes = (uint32_t)sizeof(l3_cuda_source);
  return batch;
}

// Encodes a batch on the current device, in the order of `stream`, and returns without waiting. The returned status is
// about the call, as that of l3_cuda_decode_batch_async; each image has a result of its own. The call may be captured
// in a CUDA graph: each launch reads the descriptors again.
L3_API L3_MUST_USE l3_status l3_cuda_encode_batch_async(const l3_cuda_encode_batch* batch, l3_error* error,
                                                        l3_cuda_stream stream);

#ifdef __cplusplus
}
#endif
#endif
