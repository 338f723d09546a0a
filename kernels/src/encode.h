// The data that the kernels of an encoding call pass to each other in the workspace. For host and device code.
//
// The stages of a call, in order:
//
//   plan    one warp: tests the descriptors, and adds up how many tiles and bytes the images before each image have
//   tiles   persistent warps encode tiles of samples up to 8 bits to where there is room for a raw tile
//   words   the same for samples above 8 bits
//   sizes   a warp per image: adds up the payloads, which gives the place of each in the file, and the size of the file
//   files   persistent warps write head and index of each image, and copy the payloads to their places
#pragma once

#include <cuda_runtime_api.h>

#include "container/container_rules.h"
#include "l3/l3_cuda_encode.h"

namespace l3 {

// Tests a descriptor's numbers, and makes the head of its file. Does not look at pointers and strides.
L3_INLINE Reason plan_head(const l3_cuda_source& image, Head& head) {
  constexpr uint32_t kUsualTileEdge = 128;
  const auto is_edge = [](uint32_t edge) { return edge % 32 == 0 && edge <= kMaxTileEdge; };
  if (image.width == 0 || image.width > kMaxEdge || image.height == 0 || image.height > kMaxEdge) {
    return Reason::bad_image_size;
  }
  const bool has_alpha = image.channels % 2 == 0;
  if (image.channels == 0 || image.channels > kMaxChannels || image.bits == 0 || image.bits > 16 ||
      image.layout > L3_CUDA_CHW || image.premultiplied > (has_alpha ? 1u : 0u)) {
    return Reason::bad_image_type;
  }
  if (!is_edge(image.tile_width) || !is_edge(image.tile_height)) return Reason::bad_tile_size;
  head = {};
  head.width = image.width;
  head.height = image.height;
  head.channels = image.channels;
  head.bits = image.bits;
  head.sample_type = image.bits > 8 ? L3_SAMPLE_U16 : L3_SAMPLE_U8;
  head.colour = L3_COLOUR_GRAY + image.channels - 1;
  head.alpha = !has_alpha ? L3_ALPHA_NONE : image.premultiplied != 0 ? L3_ALPHA_PREMULTIPLIED : L3_ALPHA_STRAIGHT;
  head.tile_width = image.tile_width != 0 ? image.tile_width : kUsualTileEdge;
  head.tile_height = image.tile_height != 0 ? image.tile_height : kUsualTileEdge;
  if (raw_bytes(head.tile_width, head.tile_height, head.channels, head.bits) > uint64_t{kMaxPayloadUnits} * kUnit) {
    return Reason::bad_tile_size;
  }
  head.count_tiles();
  head.head_bytes = kHeaderBytes;
  head.index_end = head.payload_start = pad_to_unit(kHeaderBytes + head.tile_count * kIndexEntryBytes);
  return Reason::none;
}

struct SourceState {
  Reason reason;  // the first thing that is wrong
  Head head;
  const uint8_t* pixels;
  uint64_t row_step;
  uint64_t pixel_step, channel_step;  // in bytes
  uint64_t first_entry;               // of the image's tiles among those of the batch
  uint64_t room_at;                   // of its payloads in Encoding::payloads
  uint8_t* out;
  uint64_t out_size;
  uint32_t is_out_of_range;  // some sample is
};

// An index entry. The offset of a payload is not known when the tile is encoded.
struct IndexEntry {
  uint32_t head;  // method, parameters and size
  uint32_t offset, check;
};
static_assert(sizeof(IndexEntry) == kIndexEntryBytes);

// Zero when a call begins.
struct EncodeControl {
  uint64_t tiles[2];                // by depth, of the images that are encoded
  unsigned long long next_tile[2];  // by depth
  unsigned long long next_file, next_copy;
};

// The parameters of the kernels of a call.
struct Encoding {
  const l3_cuda_source* images;
  uint32_t count;
  l3_cuda_encoded* results;
  uint64_t tile_capacity, room_capacity;

  EncodeControl* control;
  SourceState* states;
  uint64_t* tiles_before[2];  // by depth: tiles of the images before each image
  IndexEntry* entries;
  uint8_t* payloads;

  uint32_t byte_blocks, word_blocks, file_blocks;
};

// Returns the image that a tile belongs to: the last one with no more tiles before it. `before` gives their number.
template <class Before>
L3_INLINE uint32_t image_of(uint32_t images, uint64_t tile, const Before& before) {
  uint32_t from = 0;
  for (uint32_t to = images; to - from > 1;) {
    const uint32_t middle = (from + to) / 2;
    (before(middle) <= tile ? from : to) = middle;
  }
  return from;
}

cudaError_t plan_files(const Encoding& encoding, cudaStream_t stream);
cudaError_t encode_byte_tiles(const Encoding& encoding, cudaStream_t stream);
cudaError_t encode_word_tiles(const Encoding& encoding, cudaStream_t stream);
cudaError_t place_payloads(const Encoding& encoding, cudaStream_t stream);
cudaError_t write_files(const Encoding& encoding, cudaStream_t stream);

cudaError_t load_tile_encoders();
cudaError_t load_file_writers();

// How many blocks the device runs at once.
cudaError_t blocks_of_tile_encoders(int device, uint32_t& bytes, uint32_t& words);
cudaError_t blocks_of_file_writers(int device, uint32_t& blocks);

}  // namespace l3
