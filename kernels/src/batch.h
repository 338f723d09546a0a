// What the kernels of a call hand to each other in its workspace. For host and device code.
//
//   stage   descriptors and files from pinned memory, where the workspace has room for that
//   open    a warp for each image: head, sections, index; the tiles of its region are counted
//   models  a block for each image: its model, or that it has an earlier image's; how many tiles each model has
//   list    a block for each image: its tiles join the lists, those of each model side by side
//   dense   persistent blocks take chunks of a model's tiles, a warp for each tile
//   tokens  the same for those of token models, of up to two engine channels
//   wide    and of more
//   bytes   persistent warps take the other tiles, of samples up to 8 bits
//   words   and of those above
//   report  what became of each image
#pragma once

#include "container_rules.h"
#include "l3/l3_cuda.h"
#include "model_tables.h"

namespace l3 {

constexpr uint32_t kNone = UINT32_MAX;
constexpr uint32_t kMaxImages = 65535;
constexpr uint64_t kMaxTiles = uint64_t{1} << 31;

L3_INLINE uint32_t bytes_of_type(uint32_t type) { return type == L3_CUDA_U8 ? 1 : type == L3_CUDA_F32 ? 4 : 2; }

// Where the pixels of a region go. Sample c of the pixel at column x, row y of the region is at
// `first + x * pixel_step + y * row_step + c * channel_step`.
struct Output {
  uint8_t* first;
  int64_t pixel_step;  // negative where the region is mirrored
  uint64_t row_step, channel_step;
  uint32_t type, channels;
  uint32_t in_order;    // samples as they are decoded, one pixel after the other
  uint32_t as_colours;  // the image's colours are written, of its indices
  float scale[kMaxChannels], bias[kMaxChannels];
};

// The smallest failed tile of an image, by what its fault is made of.
using FaultKey = unsigned long long;
constexpr FaultKey kNoFault = ~FaultKey{0};
static_assert(kMaxPayloadUnits * kUnit < 1u << 20 && static_cast<uint32_t>(Reason::over_staging_capacity) < 1u << 8);
L3_INLINE FaultKey key_of(uint64_t tile, const Fault& fault) {
  return FaultKey{tile} << 28 | FaultKey{fault.at} << 8 | static_cast<uint32_t>(fault.reason);
}

struct ImageState {
  const uint8_t* data;
  Verdict before_model;  // what is wrong up to the model, in the order in which libl3 looks
  Verdict after_model;
  uint64_t head_bytes;
  const uint8_t* model;   // null: none
  uint64_t model_place;   // in the file: of the model, or of what says which it is
  uint32_t model_is_own;  // it is in the file
  uint32_t model_size;
  uint32_t key;         // the model's place among the keys of models
  uint32_t slot;        // where the model is built, or kNone
  uint32_t owns_slot;   // it is built from this image's bytes
  uint32_t is_refused;  // a Reason: the batch is over its capacity
  uint32_t width, height, channels, bits;
  uint32_t tile_width, tile_height, tiles_across;
  uint32_t x, y, region_width, region_height;
  uint32_t first_column, first_row, columns, rows;  // the tiles that the region touches
  uint32_t dense_tiles, other_tiles;                // of these
  Output out;
  FaultKey fault;

  L3_INLINE Verdict verdict_of_model(const Fault& of_model) const {
    return {of_model.reason, model_place + (model_is_own != 0 ? of_model.at : 0)};
  }
  L3_INLINE bool is_sound() const { return before_model.ok() && after_model.ok(); }
  // The number in the index of the tile at a place among those that the region touches.
  L3_INLINE uint64_t tile_at(uint32_t place) const {
    return uint64_t{first_row + place / columns} * tiles_across + first_column + place % columns;
  }
  L3_INLINE Method method_at(uint32_t place) const {
    return static_cast<Method>(data[head_bytes + tile_at(place) * kIndexEntryBytes]);
  }
};

// What other images need to know of one.
struct ImageSummary {
  uint32_t tiles;
  uint32_t key;  // as in ImageState; kNone where there is no model
};

// The tile of an image at a place among those that its region touches.
struct TileJob {
  uint32_t image, place;
};

// Dense tiles, by the kernel that decodes them.
// Those of token models are wide where there are more than two engine channels.
enum TileKind : uint32_t { kPackedTiles, kTokenTiles, kWideTokenTiles, kTileKinds };

// Tiles of a model, for a block.
struct Chunk {
  uint32_t slot;
  uint32_t slot_first;   // in the list of dense tiles, where those of the model begin
  uint32_t first, last;  // in that list
};

// A model that tiles of the batch need.
struct ModelSlot {
  ModelTables tables;
  Fault fault;
};

// Chunks of a kind.
struct ChunkList {
  uint32_t first, count, next;
};

// A list of tiles that are not dense.
struct OtherTiles {
  uint32_t count, next;
};

// Zero when a call begins.
struct Control {
  uint32_t twin_models;  // those with the key of another one
  ChunkList chunks[kTileKinds];
  OtherTiles others[2][2];  // up to 8 bits, and above; with short lines, and with long ones
};
struct SlotCounts {
  uint32_t tiles;   // of images that were sound when models were read
  uint32_t listed;  // in the end
};

// How many blocks a device takes at once for tiles of a kind, of how many warps, with how much shared memory.
struct ChunkShape {
  uint32_t blocks, warps, shared_bytes;
};

// Equal models are found by a keyed sum of their bytes, then compared.
using ModelKey = unsigned long long;

// A call, as its kernels see it.
struct Batch {
  const uint8_t* images;  // as the caller has them
  uint64_t image_bytes;
  uint32_t count;
  l3_cuda_result* results;
  const l3_cuda_model* models;  // that files may name
  uint32_t model_count;

  Control* control;
  SlotCounts* slot_counts;
  ModelKey* model_keys;  // a hash table, of twice as many places as images at least
  uint32_t* key_owners;  // kMaxImages less the first image that has the key; 0: none
  uint32_t key_mask;
  ImageState* states;
  ImageSummary* summaries;
  uint32_t* colours;  // 256 for each image
  ModelSlot* slots;
  uint32_t slot_count;
  TileJob* dense_tiles;
  TileJob* other_tiles[2];  // as in Control; those with long lines from the end on
  Chunk* chunks;
  uint64_t tile_capacity;
  uint64_t seed;  // random: for the keys of models

  l3_cuda_image* staged_images;  // null: nothing is staged
  uint64_t* staged_at;           // where each file begins, and where the last one ends
  uint8_t* staging;
  uint64_t staging_bytes;

  ChunkShape chunk_shapes[kTileKinds];
  uint32_t byte_blocks, word_blocks;
};

// Tiles but dense ones have the row above in shared memory, for each strip of each channel. Where that is more than
// kLineStrips of them, a warp takes the room of four.
constexpr uint32_t kLineStrips = 32;
L3_INLINE constexpr bool has_long_line(uint32_t tile_width, uint32_t channels) {
  return ceil_div(tile_width, kLanes) * channels > kLineStrips;
}
static_assert(kMaxTileEdge / kLanes * kMaxChannels <= 4 * kLineStrips);

}  // namespace l3
