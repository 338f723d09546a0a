// libl3_cuda: L3 files to tensors, on a GPU. A call takes a whole batch: images of any sizes, channels, depths, methods
// and models, each with a region, a mirroring and an output of its own.
//
// A call only puts work into the caller's stream: it allocates nothing, waits for nothing and starts no thread, and may
// be captured in a CUDA graph. Everything that a file says is read, verified and decoded on the GPU. Every byte of a
// file may be hostile: the verdict is libl3's, to the offset, and other images of the batch do not suffer (but by what
// a capacity for fewer models than images is used up with, and by the time that a hostile file takes: libl3's, at most
// some tenths of a second for a tile that one lane decodes).
// What the caller says (pointers, sizes, strides) is trusted, but for what each member is said to be tested for.
#ifndef L3_L3_CUDA_H
#define L3_L3_CUDA_H

#include "l3/l3.h"

#ifdef __cplusplus
extern "C" {
#endif

// A cudaStream_t, which is the same as a CUstream. Null is the legacy default stream, whatever the caller is compiled
// with.
typedef struct CUstream_st* l3_cuda_stream;

// L3_OK where the calling thread's current device can decode; otherwise L3_ERROR_DEVICE, and the reason in *error:
// no driver, no device, none that this library has code for. To be called once for each device, before the first call
// that must not wait and before a capture: it starts CUDA and brings the kernels to the device, which otherwise the
// first call does.
L3_API L3_MUST_USE l3_status l3_cuda_check_device(l3_error* error);

// ----------------------------------------------------------------------------------------------------------- images

// What a sample becomes. U8 and U16 are the samples as they are; samples above 8 bits do not fit U8. The others are
// `sample * scale + bias`, with one rounding to a float, and another to nearest (ties to even) to F16 or BF16.
typedef enum l3_cuda_type {
  L3_CUDA_U8 = 0,
  L3_CUDA_U16 = 1,
  L3_CUDA_F16 = 2,
  L3_CUDA_BF16 = 3,
  L3_CUDA_F32 = 4,
} l3_cuda_type;

// HWC: the channels of a pixel side by side. CHW: a plane for each channel.
typedef enum l3_cuda_layout { L3_CUDA_HWC = 0, L3_CUDA_CHW = 1 } l3_cuda_layout;

typedef enum l3_cuda_flag {
  L3_CUDA_FLIP = 1,     // mirror the region: its last column comes first
  L3_CUDA_COLOURS = 2,  // palette images: red, green, blue (and alpha where there is transparency), not indices
  L3_CUDA_STAGE = 4,  // `data` is in pinned host memory: bring it into the workspace first. Without it kernels read it
                      // in place, each of its payloads twice
} l3_cuda_flag;

// An image of a batch. Lies in memory that the device can read, device or pinned, and stays as it is until the stream
// has passed the call. A slot whose `data` is null and whose `size` is 0 is empty: nothing is done, and its result is
// L3_OK.
typedef struct l3_cuda_image {
  const void* data;  // the file, at a multiple of 16: in device memory, or in pinned memory that the device can read
  uint64_t size;     // the file's

  // What is to be decoded. `width` and `height` are the whole image's, as l3_read_info says; if the file says
  // otherwise, or has other than `channels` channels (as written), that is the image's error. The region lies inside
  // the image; all of it where `x`, `y`, `region_width` and `region_height` are 0.
  uint32_t width, height, channels;
  uint32_t x, y, region_width, region_height;
  uint32_t flags;  // of l3_cuda_flag

  // Where it goes: the region's upper left pixel (with L3_CUDA_FLIP its upper right one) is written at `out`, in device
  // memory. `out` and the strides are multiples of a sample's size. Bytes between rows and planes are left as they are.
  uint32_t type;    // an l3_cuda_type
  uint32_t layout;  // an l3_cuda_layout
  uint32_t reserved[2];
  void* out;
  uint64_t row_stride;    // bytes from one row to the next; 0: no padding
  uint64_t plane_stride;  // CHW: bytes from one channel to the next; 0: no padding. HWC: not looked at
  float scale[4];         // for each channel, of F16, BF16 and F32
  float bias[4];
} l3_cuda_image;

// All zero, but for scales of 1.
static inline l3_cuda_image l3_cuda_image_init(void) {
#ifdef __cplusplus
  l3_cuda_image image = {};
#else
  l3_cuda_image image = {0};
#endif
  for (int c = 0; c < 4; ++c) image.scale[c] = 1;
  return image;
}

// A model that files may name. `data` is what l3_describe_model says of it: in memory that the device can read, at a
// multiple of 16, with zeros behind it up to the next one. Its name is taken as it is said; the model is verified.
typedef struct l3_cuda_model {
  const void* data;
  uint64_t size;
  uint8_t name[L3_MODEL_NAME_BYTES];
} l3_cuda_model;

// What became of an image. On failure what was written to its output is unspecified.
typedef struct l3_cuda_result {
  uint32_t status;  // an l3_status: L3_OK, or what l3_decode_region without limits would give
  uint32_t reason;  // for l3_cuda_explain
  uint64_t offset, tile;
} l3_cuda_result;

// A result in words.
L3_API l3_error l3_cuda_explain(const l3_cuda_result* result);

// -------------------------------------------------------------------------------------------------------- workspace

// The most that a batch may have. An image with which the batch has more tiles, staged bytes or models is refused
// (L3_ERROR_LIMIT), and so are those behind it that need more of the same; the others are decoded. Images whose index
// is sound count, also where they fail later.
typedef struct l3_cuda_capacity {
  uint32_t images;
  uint32_t models;        // different ones that the files use, from wherever, 120 KiB each; 0: as many as images
  uint64_t tiles;         // that the regions of all images touch; l3_cuda_count_tiles
  uint64_t staged_bytes;  // files with L3_CUDA_STAGE, each rounded up to a multiple of 16
} l3_cuda_capacity;

// How many tiles a region of that size touches at most, wherever it lies in the image; all tiles where it is 0 by 0.
L3_API uint64_t l3_cuda_count_tiles(const l3_info* info, uint32_t region_width, uint32_t region_height);

// How much device memory a call needs. 0 where the capacity is not a possible one: no images or tiles, more than
// 65535 images, more than 2^31 tiles, more than 2^36 staged bytes.
L3_API uint64_t l3_cuda_workspace_size(const l3_cuda_capacity* capacity);

// ------------------------------------------------------------------------------------------------------------ decode

typedef struct l3_cuda_batch {
  uint32_t struct_size;
  uint32_t image_bytes;  // sizeof(l3_cuda_image): from one image to the next
  uint32_t image_count;  // at most the capacity's
  uint32_t model_count;
  const l3_cuda_image* images;
  l3_cuda_result* results;  // one for each image: device memory, or pinned memory that the device can write
  l3_cuda_capacity capacity;
  void* workspace;  // device memory at a multiple of 256, for one call at a time: calls in one stream may share it
  uint64_t workspace_size;
  // Where the files name models: those, in memory that the device can read, until the stream has passed the call.
  const l3_cuda_model* models;
} l3_cuda_batch;

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

// Decodes a batch on the current device, in the order of `stream`. What it returns is about the call: an argument that
// is wrong, or L3_ERROR_DEVICE where the work could not be handed to the device; some of it may be under way then, so
// wait for the stream before memory is used again, and take no result for one. What became of each image is in
// `results` once the stream has passed. In a captured graph the same `images` are read anew at each launch: sizes,
// regions and pointers may change between launches, while `batch` itself is what it was.
L3_API L3_MUST_USE l3_status l3_cuda_decode_batch_async(const l3_cuda_batch* batch, l3_error* error,
                                                        l3_cuda_stream stream);

#ifdef __cplusplus
}
#endif
#endif
