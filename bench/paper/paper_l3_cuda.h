// Files of the paper's scheme to samples, on a GPU: a batch of images by two kernels.
#pragma once

#include <span>

#include "paper_l3.h"

struct CUstream_st;  // a cudaStream_t points to one

namespace paper {

// An image of a batch: a file whose read_head gave this shape.
struct DeviceImage {
  const uint8_t* file;  // in device memory, at a multiple of 16
  uint64_t file_bytes;
  uint8_t* out;         // in device memory: rows from the top, samples interleaved
  uint64_t row_stride;  // bytes from one row to the next
  uint32_t width, height;

  // What plan() fills in: how many patches, and pairs of patches, the images before have.
  uint32_t first_patch, first_pair;
};

// A batch of images with the same number of channels.
struct Batch {
  const DeviceImage* images;  // in device memory, as plan() left them
  uint32_t count, channels;
  uint32_t patches, pairs;  // of all images
  uint32_t* offsets;        // in device memory: room for `patches` numbers
  Reason* reasons;          // in device memory: what became of each image
};

// On the host, before the images are copied to the device. Gives the batch but for its pointers; of no images where
// there are more than a batch may have (2^32 - 1 patches).
Batch plan(std::span<DeviceImage> images, uint32_t channels);

// Adds the decoding to a stream. It allocates nothing and waits for nothing. Files may be hostile: the reasons are
// those of read_head and decode, and the content of `out` is then unspecified. Returns null, or CUDA's error text.
const char* decode_batch_async(const Batch& batch, CUstream_st* stream);

}  // namespace paper
