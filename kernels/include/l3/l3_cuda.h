// libl3_cuda decodes L3 files into tensors on a GPU.
//
// One call decodes a batch. The images of a batch may differ in size, channels, depth, method and model. Each image has
// its own region, mirroring and output. A program that decodes a batch:
//
//   1. calls l3_cuda_check_device once for each device;
//   2. allocates l3_cuda_workspace_size() bytes of device memory, once;
//   3. fills an l3_cuda_image for each image, and calls l3_cuda_decode_batch_async;
//   4. waits for the stream, and reads each image's l3_cuda_result.
//
// Streams: l3_cuda_decode_batch_async only adds work to the caller's stream. It allocates nothing, waits for nothing
// and starts no thread. It may be captured in a CUDA graph.
//
// Threads: the library keeps no state, so several threads may call it at the same time. Two calls that may run at the
// same time need different workspaces and results.
//
// Hostile files: the GPU reads, verifies and decodes the files, and any of their bytes may be hostile. The library
// refuses the same files as libl3 does, with the same reason and offset. A bad file affects the other images of its
// batch in two ways only: it uses up part of the capacity (for example a model, if the capacity has fewer models than
// images), and it may take time, as it may in libl3: at most some tenths of a second for a tile that one lane decodes.
//
// Trusted input: the library trusts the caller's pointers, sizes and strides. It tests only what is documented here as
// an error. A wrong pointer is undefined behaviour.
#ifndef L3_L3_CUDA_H
#define L3_L3_CUDA_H

#include "l3/l3.h"

#ifdef __cplusplus
extern "C" {
#endif

// A cudaStream_t, which is the same type as a CUstream. Null means the legacy default stream, even if the caller is
// compiled with per-thread default streams.
typedef struct CUstream_st* l3_cuda_stream;

// Tests whether the calling thread's current device can decode, and loads the kernels to it.
//
// Call it once for each device, before the first decode that must not wait and before a capture: it starts CUDA and
// loads the code, which the first decode would do otherwise.
//
// Returns L3_OK, or L3_ERROR_DEVICE if there is no driver, no device, or no code in this library for that device.
// `error` may be null; otherwise *error receives the reason.
L3_API L3_MUST_USE l3_status l3_cuda_check_device(l3_error* error);

// ----------------------------------------------------------------------------------------------------------- images

// The type of the samples in the output.
// U8 and U16 hold the samples unchanged. An image of more than 8 bits does not fit U8: that is the image's error.
// F16, BF16 and F32 hold `sample * scale + bias`, rounded once to a float. F16 and BF16 are then rounded to nearest
// (ties to even).
typedef enum l3_cuda_type {
  L3_CUDA_U8 = 0,
  L3_CUDA_U16 = 1,
  L3_CUDA_F16 = 2,
  L3_CUDA_BF16 = 3,
  L3_CUDA_F32 = 4,
} l3_cuda_type;

// HWC: the channels of a pixel are adjacent. CHW: each channel is a plane.
typedef enum l3_cuda_layout { L3_CUDA_HWC = 0, L3_CUDA_CHW = 1 } l3_cuda_layout;

typedef enum l3_cuda_flag {
  L3_CUDA_FLIP = 1,     // mirror the region: its last column comes first
  L3_CUDA_COLOURS = 2,  // palette images: write RGB (RGBA if the file has transparency) instead of indices
  L3_CUDA_STAGE = 4,    // `data` is in pinned host memory: copy it into the workspace first. Without this flag, the
                        // kernels read the file in place, and each payload twice
} l3_cuda_flag;

// One image of a batch: the file, what to decode of it, and where to write the pixels.
//
// The descriptor lies in device memory or in pinned memory that the device can read. The descriptor, the file and the
// output belong to the caller. Do not change or free them until the stream has completed the call.
//
// A slot with a null `data` and a `size` of 0 is empty: the call skips it, and its result is L3_OK.
typedef struct l3_cuda_image {
  // The file: in device memory, or in pinned memory that the device can read. Its address must be a multiple of 16;
  // any other address is the image's error.
  const void* data;
  uint64_t size;  // of the file, in bytes

  // `width` and `height` are the size of the whole image, as l3_read_info returns them. `channels` is the number of
  // channels in the output. If the file has another size or another number of channels, that is the image's error.
  uint32_t width, height, channels;
  // The region to decode. It must lie inside the image. If all four are 0, the region is the whole image.
  uint32_t x, y, region_width, region_height;
  uint32_t flags;  // any of l3_cuda_flag, combined with |

  // The output, in device memory. The first pixel at `out` is the upper left pixel of the region, or the upper right
  // one with L3_CUDA_FLIP. `out` and the strides must be multiples of the size of a sample. Bytes between rows and
  // between planes are not written.
  uint32_t type;         // an l3_cuda_type
  uint32_t layout;       // an l3_cuda_layout
  uint32_t reserved[2];  // 0
  void* out;
  uint64_t row_stride;    // bytes from one row to the next; 0 means no padding
  uint64_t plane_stride;  // CHW: bytes from one channel to the next; 0 means no padding. HWC: ignored
  float scale[4];         // for each channel; only F16, BF16 and F32 use scale and bias
  float bias[4];
} l3_cuda_image;

// Returns a descriptor that is all zero except for the scales, which are 1.
static inline l3_cuda_image l3_cuda_image_init(void) {
#ifdef __cplusplus
  l3_cuda_image image = {};
#else
  l3_cuda_image image = {0};
#endif
  for (int c = 0; c < 4; ++c) image.scale[c] = 1;
  return image;
}

// A model for files that name theirs. l3_describe_model returns its bytes, size and name.
//
// `data` is a copy of those bytes in memory that the device can read. Its address is a multiple of 16, and zeros fill
// the space after its end up to the next multiple of 16. The library verifies the model, but not that the name is the
// right one for it.
typedef struct l3_cuda_model {
  const void* data;
  uint64_t size;
  uint8_t name[L3_MODEL_NAME_BYTES];
} l3_cuda_model;

// The result of one image. If the image failed, the content of its output is unspecified.
typedef struct l3_cuda_result {
  uint32_t status;        // an l3_status: the one that l3_decode_region without limits would return
  uint32_t reason;        // for l3_cuda_explain
  uint64_t offset, tile;  // as in l3_error
} l3_cuda_result;

// Converts a result to an l3_error, with the reason as text. The text is a constant string, never null.
L3_API l3_error l3_cuda_explain(const l3_cuda_result* result);

// -------------------------------------------------------------------------------------------------------- workspace

// The largest batch that a workspace is for.
//
// If an image takes the batch over its tiles, models or staged bytes, that image fails with L3_ERROR_LIMIT. So does
// each later image that needs more of the same. The other images are decoded. An image with a valid index counts
// towards the capacity even if it fails later.
typedef struct l3_cuda_capacity {
  uint32_t images;
  uint32_t models;        // different models that the files use, about 120 KiB each; 0 means as many as images
  uint64_t tiles;         // tiles that the regions touch, of all images together; see l3_cuda_count_tiles
  uint64_t staged_bytes;  // sizes of the files with L3_CUDA_STAGE, each rounded up to a multiple of 16
} l3_cuda_capacity;

// Returns the largest number of tiles that a region of this size can touch, wherever it lies in the image. A region of
// 0 by 0 is the whole image. Returns 0 if `info` is null or only one side of the region is 0.
L3_API uint64_t l3_cuda_count_tiles(const l3_info* info, uint32_t region_width, uint32_t region_height);

// Returns the size in bytes of the workspace that a call with this capacity needs. Returns 0 if the capacity is not
// possible: no images, no tiles, more than 65535 images, more than 2^31 tiles, or more than 2^36 staged bytes.
L3_API uint64_t l3_cuda_workspace_size(const l3_cuda_capacity* capacity);

// ------------------------------------------------------------------------------------------------------------ decode

// The arguments of a call. The structure is read during the call only. The memory that it points to belongs to the
// caller; do not free it until the stream has completed the call.
typedef struct l3_cuda_batch {
  uint32_t struct_size;  // set by l3_cuda_batch_init
  uint32_t image_bytes;  // set by l3_cuda_batch_init: sizeof(l3_cuda_image)
  uint32_t image_count;  // at most capacity.images; 0 does nothing
  uint32_t model_count;
  const l3_cuda_image* images;
  l3_cuda_result* results;  // one for each image: device memory, or pinned memory that the device can write
  l3_cuda_capacity capacity;
  // Device memory at a multiple of 256. One call uses it at a time: calls in the same stream may share a workspace.
  void* workspace;
  uint64_t workspace_size;  // at least l3_cuda_workspace_size(&capacity)
  // The models that the files may name, in memory that the device can read; null if model_count is 0.
  const l3_cuda_model* models;
} l3_cuda_batch;

// Returns a batch that is all zero except for its two sizes.
static inline l3_cuda_batch l3_cuda_batch_init(void) {
#ifdef __cplusplus
  l3_cuda_batch batch = {};
#else
  l3_cuda_batch batch = {0};
#endif
  batch.struct_size = (uint32_t)sizeof(batch);
  batch.image_bytes = (uint32_t)sizeof(l3_cuda_image);
  return batch;
}

// Decodes a batch on the current device, in the order of `stream`, and returns without waiting.
//
// The returned status is about the call, not about the images. Each image has its own result in `results`, which is
// valid when the stream has completed the call. The call returns:
//
//   L3_OK              the work is in the stream
//   L3_ERROR_ARGUMENT  a member of `batch` is wrong; nothing was started
//   L3_ERROR_BUFFER    the workspace is too small for the capacity; nothing was started
//   L3_ERROR_DEVICE    CUDA refused some of the work. The rest may be running: wait for the stream before you use the
//                      memory again, and ignore `results`
//
// `error` may be null.
//
// In a captured graph, each launch reads `images`, the files and the models again. The descriptors in `images` may
// change between launches: sizes, regions and pointers. The members of `batch` keep the values of the captured call.
L3_API L3_MUST_USE l3_status l3_cuda_decode_batch_async(const l3_cuda_batch* batch, l3_error* error,
                                                        l3_cuda_stream stream);

#ifdef __cplusplus
}
#endif
#endif
