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
  // Only with l3_cuda_image.change:
  L3_CUDA_I16 = 5,
  L3_CUDA_I32 = 6,
  L3_CUDA_I64 = 7,
} l3_cuda_type;

// HWC: the channels of a pixel are adjacent. CHW: each channel is a plane.
typedef enum l3_cuda_layout { L3_CUDA_HWC = 0, L3_CUDA_CHW = 1 } l3_cuda_layout;

typedef enum l3_cuda_flag {
  L3_CUDA_FLIP = 1,     // mirror the region: its last column comes first
  L3_CUDA_COLOURS = 2,  // palette images: write RGB (RGBA if the file has transparency) instead of indices
  L3_CUDA_STAGE = 4,    // `data` is in pinned host memory: copy it into the workspace first. Without this flag, the
                        // kernels read the file in place, and each payload twice
} l3_cuda_flag;

// As torchvision.transforms.v2 with antialias=True and Pillow define them.
typedef enum l3_cuda_interpolation {
  L3_CUDA_NEAREST = 0,
  L3_CUDA_NEAREST_EXACT = 1,
  L3_CUDA_BILINEAR = 2,
  L3_CUDA_BICUBIC = 3,
  L3_CUDA_AREA = 4,
} l3_cuda_interpolation;

// How a box is resized along one axis, and what is kept of the result. l3_cuda_set_resize fills it for the usual case.
// All lengths are below 2^24.
typedef struct l3_cuda_axis {
  uint32_t box;              // the length of the box of the upright image
  uint32_t resized;          // the length that it becomes
  uint32_t window, content;  // which part of that is kept: where it begins, its length
  uint32_t before;           // samples of padding before it
  uint32_t out;              // the length with padding
  uint32_t total;            // the same and more padding by pad_value
  uint32_t pad;              // 0: by pad_value, 1: the nearest pixel, 2: mirrored at the edge
  uint32_t interpolation;    // an l3_cuda_interpolation
  uint32_t first, region;    // the part of the box that is decoded: where it begins, its length
  uint32_t source_mirrored;  // 1: the image is stored in reverse along this axis
  uint32_t out_mirrored;     // 1: write the output in reverse
  uint32_t precision;        // for limit_between: bits of the weights, as l3_cuda_set_resize sets them; else 0
} l3_cuda_axis;

// What to do with the samples of a region before they become values: resize, pad, turn, and change colours.
typedef struct l3_cuda_change {
  l3_cuda_axis rows, columns;  // of the stored image: what happens to its rows, and to its columns
  uint32_t transposed;         // 1: rows of the stored image become columns of the output
  uint32_t bits;               // of the file's samples; 8 for colours of a palette
  // Integers of bicubic interpolation of at most 8 bits, as torchvision computes them: 1 rounds and limits the samples
  // after the columns are combined, which is then done first; 2 after the rows. 0: never.
  uint32_t limit_between;
  // The output has `channels` channels. If `mixes` is 1, each is the sum over the first `used` channels of the pixel of
  // factor * sample, plus `offset`; if 0, they are the pixel's first channels. If `clamps` is 1, or if the output has
  // integers, the result is limited to 0 and `most`.
  uint32_t channels, used, mixes, clamps;
  float factor[4][4], offset[4];
  float most;  // the largest sample of the output
  // 1: the last channel of the pixel is alpha; blend the others with `background`. 2: it is multiplied in already.
  uint32_t blends;
  float background[4];
  float pad_value[4];  // in samples of the output; the caller must keep it in the range of the type
  // Device memory of l3_cuda_change_bytes() bytes at a multiple of 16, for this image only.
  void* scratch;
} l3_cuda_change;

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
  // In device memory, since many threads read it; null: nothing is changed. Then `channels` are those of the decoded
  // image, the region has the size in the axes, and L3_CUDA_FLIP must not be set.
  const l3_cuda_change* change;
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

// Makes `image` and `change` resize the box (x, y, width, height) to out_width x out_height. `flip`: 1 mirrors the
// result left to right. The caller must set image->width, height, channels and type, and change->bits before, and
// change->scratch and image->change after this call. Returns L3_ERROR_ARGUMENT if the box is empty or outside the
// image.
L3_API L3_MUST_USE l3_status l3_cuda_set_resize(l3_cuda_image* image, l3_cuda_change* change, uint32_t x, uint32_t y,
                                                uint32_t width, uint32_t height, uint32_t out_width,
                                                uint32_t out_height, uint32_t interpolation, uint32_t flip);

// Returns the size of the scratch memory of an image: its region as samples, and tables.
L3_API uint64_t l3_cuda_change_bytes(const l3_cuda_image* image, const l3_cuda_change* change);

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
// If an image takes the batch over its tiles, models, staged bytes or follow bytes, that image fails with
// L3_ERROR_LIMIT. So does each later image that needs more of the same. The other images are decoded. An image with a
// valid index counts towards the capacity even if it fails later.
typedef struct l3_cuda_capacity {
  uint32_t images;
  uint32_t models;        // different models that the files use, about 120 KiB each; 0 means as many as images
  uint64_t tiles;         // tiles that the regions touch, of all images together; see l3_cuda_count_tiles
  uint64_t staged_bytes;  // sizes of the files with L3_CUDA_STAGE, each rounded up to a multiple of 16
  uint64_t follow_bytes;  // for images whose pixels may follow others; see l3_cuda_count_follow_bytes
} l3_cuda_capacity;

// Returns the largest number of tiles that a region of this size can touch, wherever it lies in the image. A region of
// 0 by 0 is the whole image. Returns 0 if `info` is null or only one side of the region is 0.
L3_API uint64_t l3_cuda_count_tiles(const l3_info* info, uint32_t region_width, uint32_t region_height);

// Returns what a file adds to l3_cuda_capacity.follow_bytes if a region of this size is decoded, wherever it lies. A
// region of 0 by 0 is the whole image. It is 0 for most files: only models of screens and documents let pixels follow
// others, and then it is 2 to 8 bytes for each pixel and 80 KiB for each tile.
//
// `data` is in host memory: the file, or its beginning with the head and the first bytes of the model. `models` are
// those that the file may name; null if model_count is 0. Returns 0 if the file is not valid so far, or its model is
// not there.
L3_API uint64_t l3_cuda_count_follow_bytes(const void* data, size_t size, const l3_model* const* models,
                                           size_t model_count, uint32_t region_width, uint32_t region_height);

// Returns the size in bytes of the workspace that a call with this capacity needs. Returns 0 if the capacity is not
// possible: no images, no tiles, more than 65535 images, more than 2^31 tiles, more than 2^36 staged bytes, or more
// than 2^40 follow bytes.
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
  uint32_t changes;  // 1: images may have a `change`. 0: that is an image's error, and two kernels less are started
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
