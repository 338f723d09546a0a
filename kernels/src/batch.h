// The data that the kernels of a call pass to each other in the workspace. For host and device code.
//
// The stages of a call, in order:
//
//   stage   copies descriptors and files from pinned memory, if the capacity has staged bytes
//   open    a warp per image: verifies head, sections and index, and counts the tiles of the region
//   models  a block per image: builds its model, or finds the earlier image with the same one; counts tiles per model
//   list    a block per image: adds its tiles to the lists, in which the tiles of a model are adjacent
//   dense   persistent blocks take chunks of a model's tiles, and decode each tile by a warp
//   tokens  the same for tiles of token models with up to two engine channels
//   wide    the same for token models with more engine channels
//   rows    the same for token models with still rows
//   follow  the same for token models whose pixels may follow others, if the capacity has room for that
//   bits    the same for bit models
//   bytes   persistent warps decode the other tiles of samples up to 8 bits
//   words   the same for samples above 8 bits
//   taps    a block per image: which samples an image is resized from, if the batch changes images
//   change  blocks for each image: resizes, pads, turns and recolours it
//   report  writes the result of each image
#pragma once

#include "container/container_rules.h"
#include "l3/l3_cuda.h"
#include "models/model_tables.h"

namespace l3 {

constexpr uint32_t kNone = UINT32_MAX;
constexpr uint32_t kMaxImages = 65535;
constexpr uint64_t kMaxTiles = uint64_t{1} << 31;

L3_INLINE uint32_t bytes_of_type(uint32_t type) {
  return type == L3_CUDA_U8 ? 1 : type == L3_CUDA_F32 || type == L3_CUDA_I32 ? 4 : type == L3_CUDA_I64 ? 8 : 2;
}

// Where the pixels of a region are written. Sample c of the pixel at column x and row y of the region is at
// `first + x * pixel_step + y * row_step + c * channel_step`.
struct Output {
  uint8_t* first;
  int64_t pixel_step;  // negative if the region is mirrored
  uint64_t row_step, channel_step;
  uint32_t type, channels;
  uint32_t in_order;    // samples are written unchanged, one pixel after the other
  uint32_t as_colours;  // write for each sample its pixel in a table: colours of a palette, or what a channel map says
  uint32_t is_mapped;   // make channels of the coded ones as `map` says
  ChannelMap map;
  float scale[kMaxChannels], bias[kMaxChannels];
};

// The fault of an image's lowest failed tile as one number, so that atomicMin keeps the lowest tile.
using FaultKey = unsigned long long;
constexpr FaultKey kNoFault = ~FaultKey{0};
static_assert(kMaxPayloadUnits * kUnit < 1u << 20 && static_cast<uint32_t>(Reason::over_follow_capacity) < 1u << 8);
L3_INLINE FaultKey key_of(uint64_t tile, const Fault& fault) {
  return FaultKey{tile} << 28 | FaultKey{fault.at} << 8 | static_cast<uint32_t>(fault.reason);
}

struct ImageState {
  const uint8_t* data;
  Verdict before_model;  // the first error that libl3 would find before it reads the model
  Verdict after_model;   // and after the model
  uint64_t head_bytes;
  TinyTile tiny;          // of a tiny file
  const uint8_t* model;   // null if the image has none
  uint64_t model_place;   // the offset in the file of the model, or of the field that names it
  uint32_t model_is_own;  // the file contains the model
  uint32_t model_size;
  uint32_t key;          // the index of the model's key in Batch::model_keys
  uint32_t slot;         // where the model is built, or kNone
  uint32_t owns_slot;    // the model is built from this image's bytes
  uint32_t is_refused;   // a Reason, if the batch is over its capacity
  uint32_t follow_room;  // what each tile of the region has in the workspace, in bytes; see follow_room.h
  uint8_t* follow;       // where that of the first one is
  uint32_t width, height, channels, bits;
  uint32_t tile_width, tile_height, tiles_across;
  uint32_t x, y, region_width, region_height;
  uint32_t first_column, first_row, columns, rows;  // the tiles that the region touches
  uint32_t dense_tiles, other_tiles;                // how many of these tiles are dense, and how many are not
  Output out;
  const l3_cuda_change* change;  // of what `out` gets; null if that is the result
  Output result;                 // where the changed image goes
  FaultKey fault;

  L3_INLINE Verdict verdict_of_model(const Fault& of_model) const {
    return {of_model.reason, model_place + (model_is_own != 0 ? of_model.at : 0)};
  }
  L3_INLINE bool is_sound() const { return before_model.ok() && after_model.ok(); }
  // Converts a place among the tiles that the region touches to the number of the tile in the index.
  L3_INLINE uint64_t tile_at(uint32_t place) const {
    return uint64_t{first_row + place / columns} * tiles_across + first_column + place % columns;
  }
  L3_INLINE Method method_at(uint32_t place) const {
    if (head_bytes == kTinyHeaderBytes) return tiny.method;
    return static_cast<Method>(data[head_bytes + tile_at(place) * kIndexEntryBytes]);
  }
};

// What the blocks of other images read of an image.
struct ImageSummary {
  uint32_t tiles;
  uint32_t key;  // as in ImageState; kNone without a model
  uint64_t follow_bytes;
};

// A tile of an image: `place` counts the tiles that its region touches.
struct TileJob {
  uint32_t image, place;
};

// The kinds of dense tiles. Each kind has a kernel. Tiles of token models with more than two engine channels are wide,
// unless they have still rows or pixels that follow others.
enum TileKind : uint32_t { kPackedTiles, kTokenTiles, kWideTokenTiles, kRowTiles, kFollowTiles, kBitTiles, kTileKinds };

// Tiles of one model, for one block.
struct Chunk {
  uint32_t slot;
  uint32_t slot_first;   // the model's first tile in the list of dense tiles
  uint32_t first, last;  // the chunk's range in that list
};

// A model that tiles of the batch need.
struct ModelSlot {
  ModelTables tables;
  Fault fault;
};

// The chunks of a kind of tiles.
struct ChunkList {
  uint32_t first, count, next;
};

// A list of tiles that are not dense.
struct OtherTiles {
  uint32_t count, next;
};

// Zero when a call begins.
struct Control {
  uint32_t twin_models;  // models that differ from another model with the same key
  ChunkList chunks[kTileKinds];
  OtherTiles others[2][2];  // [samples above 8 bits][long lines]
};
struct SlotCounts {
  uint32_t tiles;   // of images without an error when the models were built
  uint32_t listed;  // of images without an error afterwards
};

// The launch size of a kind of tiles: resident blocks on the device, warps per block, and shared memory per block.
struct ChunkShape {
  uint32_t blocks, warps, shared_bytes;
};

// A keyed sum of a model's bytes. Models with equal keys are then compared byte by byte.
using ModelKey = unsigned long long;

// The parameters of the kernels of a call.
struct Batch {
  const uint8_t* images;  // the caller's descriptors
  uint64_t image_bytes;
  uint32_t count;
  l3_cuda_result* results;
  const l3_cuda_model* models;  // models that files may name
  uint32_t model_count;
  uint32_t changes;  // images may be changed

  Control* control;
  SlotCounts* slot_counts;
  ModelKey* model_keys;  // a hash table with at least two places per image
  uint32_t* key_owners;  // for each key: kMaxImages minus the first image that has it, or 0
  uint32_t key_mask;
  ImageState* states;
  ImageSummary* summaries;
  uint32_t* colours;  // 256 for each image
  ModelSlot* slots;
  uint32_t slot_count;
  TileJob* dense_tiles;
  TileJob* other_tiles[2];  // by depth as in Control; tiles with long lines are listed from the end backwards
  Chunk* chunks;
  uint64_t tile_capacity;
  uint8_t* follow;
  uint64_t follow_capacity;  // in bytes
  uint64_t seed;             // a random number for the keys of models

  l3_cuda_image* staged_images;  // null if nothing is staged
  uint64_t* staged_at;           // where each file begins in `staging`, and where the last one ends
  uint8_t* staging;
  uint64_t staging_bytes;

  ChunkShape chunk_shapes[kTileKinds];
  uint32_t byte_blocks, word_blocks;
};

// Tiles that are not dense keep the row above in shared memory, for each strip of each channel. If a tile needs more
// than kLineStrips of them, its warp uses the shared memory of four warps.
constexpr uint32_t kLineStrips = 32;
L3_INLINE constexpr bool has_long_line(uint32_t tile_width, uint32_t channels) {
  return ceil_div(tile_width, kLanes) * channels > kLineStrips;
}
static_assert(kMaxTileEdge / kLanes * kMaxChannels <= 4 * kLineStrips);

}  // namespace l3
