// Decodes tiles of the dense method, each by a warp. The blocks are persistent: they take chunks of a model's tiles,
// and keep the model's tables in shared memory for all their warps. One file for each kind of tiles includes this one.
//
// `Tiles` describes the kind: kKind; kMaxWarps of a block; kDelayBytes, the largest entry of the delay line; Tables of
// a model, and tables_of() a slot; Memory, the tables in shared memory, with load() and memory_bytes(); scratch_of() a
// tile; decode(). Where there is put_rest(), a warp calls it when its tile is decoded.
#pragma once

#include "container/check.h"
#include "container/dense.h"
#include "launch.h"
#include "output.cuh"
#include "stages.h"

namespace l3 {

// The shared memory of a warp in addition to the tables: a delay line, the classes of the blocks, and what only some
// kinds of tiles need.
struct TileScratch {
  uint32_t delay_bytes, class_bytes, more_bytes;  // multiples of 16

  L3_INLINE static TileScratch of(const TileShape& shape, const TileEntry& entry, uint32_t entry_bytes,
                                  uint32_t block_bytes) {
    const uint32_t blocks = block_count(shape.width, shape.height);
    return {(dense_delay(shape.width, dense_lanes(entry.parameters)) * entry_bytes + 15) & ~15u,
            (blocks * block_bytes + 15) & ~15u, 0};
  }
  L3_INLINE uint32_t bytes() const { return delay_bytes + class_bytes + more_bytes; }
};

// A tile of an image that a warp decodes.
struct ModelTile {
  const ImageState* state;
  uint32_t place, column, row;
  TileShape shape;
  TileEntry entry;

  L3_INLINE static ModelTile of(const Batch& batch, const TileJob& job) {
    ModelTile result;
    const ImageState& state = batch.states[job.image];
    result.state = &state;
    result.place = job.place;
    result.column = state.first_column + job.place % state.columns;
    result.row = state.first_row + job.place / state.columns;
    result.shape = {smaller(state.tile_width, state.width - result.column * state.tile_width),
                    smaller(state.tile_height, state.height - result.row * state.tile_height), state.channels,
                    state.bits};
    result.entry = read_entry(state, state.data, uint64_t{result.row} * state.tiles_across + result.column);
    return result;
  }
};

// The start of a block's shared memory. The tables follow.
template <class Tiles>
struct ChunkScratch {
  uint32_t taken;         // the number of the chunk
  uint32_t loaded_slot;   // the slot whose tables are loaded
  uint32_t max_bytes;     // the most memory that a tile of the chunk needs
  uint32_t first, count;  // the chunk's tiles
  uint32_t tiles_at;      // the offset of the memory for tiles, in bytes
  uint32_t side_by_side;  // how many tiles are decoded at once: large tiles do not fit for all warps
  uint32_t padding;
  const typename Tiles::Tables* tables;
  TilePlace places[Tiles::kMaxWarps];
};
template <class Tiles>
constexpr uint32_t kTablesAt = (sizeof(ChunkScratch<Tiles>) + 15) / 16 * 16;

// Loads a chunk's tables, and divides the memory after them. All threads of the block call it.
template <class Tiles>
L3_INLINE void begin_chunk(const Batch& batch, ChunkScratch<Tiles>& scratch, typename Tiles::Memory& memory) {
  const ChunkShape& shape = batch.chunk_shapes[Tiles::kKind];
  const Chunk chunk = batch.chunks[batch.control->chunks[Tiles::kKind].first + scratch.taken];
  const typename Tiles::Tables& tables = Tiles::tables_of(batch.slots[chunk.slot].tables);
  // Tiles of images with an error are not in the list.
  const uint32_t last = smaller(chunk.last, chunk.slot_first + batch.slot_counts[chunk.slot].listed);
  const uint32_t count = last > chunk.first ? last - chunk.first : 0;
  if (count != 0 && scratch.loaded_slot != chunk.slot) Tiles::load(tables, memory);
  const uint32_t thread = threadIdx.x;
  if (thread < count) {
    const ModelTile tile = ModelTile::of(batch, batch.dense_tiles[chunk.first + thread]);
    atomicMax(&scratch.max_bytes, Tiles::scratch_of(tile.shape, tile.entry, tables).bytes());
  }
  __syncthreads();
  if (thread == 0) {
    if (count != 0) scratch.loaded_slot = chunk.slot;
    scratch.first = chunk.first;
    scratch.count = count;
    scratch.tables = &tables;
    scratch.tiles_at = kTablesAt<Tiles> + Tiles::memory_bytes(tables);
    scratch.side_by_side = smaller((shape.shared_bytes - scratch.tiles_at) / scratch.max_bytes, shape.warps);
  }
  __syncthreads();
}

// Decodes the tile at a place of the chunk. Values needed afterwards are read again from shared memory, to leave the
// registers to the engine.
template <class Tiles>
L3_INLINE void decode_tile_of_chunk(const Batch& batch, uint4* memory, uint32_t warp, uint32_t i) {
  ChunkScratch<Tiles>& scratch = *reinterpret_cast<ChunkScratch<Tiles>*>(memory);
  const TileJob job = batch.dense_tiles[scratch.first + i];
  const ModelTile tile = ModelTile::of(batch, job);
  Fault fault;
  if (tile.entry.has_check &&
      check_of<CudaWarp>(tile.entry.payload, tile.entry.payload_bytes / 4) != tile.entry.check) {
    fault.reason = Reason::tile_check;
  } else {
    const uint32_t tables_at = from_here_on(shared_address(memory + kTablesAt<Tiles> / 16));
    TilePlace& place = scratch.places[warp];
    if (lane_number() == 0) {
      place = place_of(*tile.state, batch.colours + 256 * job.image, tile.column, tile.row, tile.shape);
    }
    __syncwarp();
    fault = Tiles::decode(tile, place, tables_at, *scratch.tables,
                          memory + (scratch.tiles_at + warp * scratch.max_bytes) / 16);
    if constexpr (requires { Tiles::put_rest; }) {
      __syncwarp();  // the pixels of all lanes come first
      fault = Tiles::put_rest(ModelTile::of(batch, batch.dense_tiles[scratch.first + i]), scratch.places[warp],
                              *scratch.tables, fault);
    }
  }
  __syncwarp();
  if (fault.reason != Reason::none && lane_number() == 0) {
    const TileJob failed = batch.dense_tiles[scratch.first + i];
    atomicMin(&batch.states[failed.image].fault, key_of(failed.place, fault));
  }
}

template <class Tiles>
L3_INLINE void decode_chunks(const Batch& batch, uint4* shared) {
  ChunkScratch<Tiles>& scratch = *reinterpret_cast<ChunkScratch<Tiles>*>(shared);
  typename Tiles::Memory& memory = *reinterpret_cast<typename Tiles::Memory*>(shared + kTablesAt<Tiles> / 16);
  ChunkList& chunks = batch.control->chunks[Tiles::kKind];
  // Read it from lane 0, so that the compiler knows that it is equal in all lanes.
  const uint32_t warp = __shfl_sync(kAllLanes, threadIdx.x / kLanes, 0);
  if (threadIdx.x == 0) scratch.loaded_slot = kNone;
  for (;;) {
    if (threadIdx.x == 0) {
      scratch.taken = atomicAdd(&chunks.next, 1u);
      scratch.max_bytes = 16;
    }
    __syncthreads();
    if (scratch.taken >= chunks.count) return;
    begin_chunk<Tiles>(batch, scratch, memory);
    if (warp < scratch.side_by_side) {
      for (uint32_t i = warp; i < scratch.count; i += scratch.side_by_side) {
        decode_tile_of_chunk<Tiles>(batch, shared, warp, i);
      }
    }
    __syncthreads();
  }
}

// Returns whether the largest tile fits into shared memory together with the tables, on every device.
template <class Tiles>
constexpr bool has_room_for_all(uint32_t most_class_bytes, uint32_t delay_bytes = Tiles::kDelayBytes) {
  return kTablesAt<Tiles> + sizeof(typename Tiles::Memory) + delay_bytes * dense_delay(kMaxTileEdge, 1) +
             most_class_bytes <=
         99 << 10;
}

template <class Tiles, class Kernel>
cudaError_t launch_chunks(Kernel kernel, const Batch& batch, cudaStream_t stream) {
  const ChunkShape& shape = batch.chunk_shapes[Tiles::kKind];
  cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shape.shared_bytes));
  // Two blocks on sm_90 need all of the shared memory.
  if (error == cudaSuccess) {
    error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
  }
  if (error != cudaSuccess) return error;
  return launch(kernel, shape.blocks, shape.warps * kLanes, shape.shared_bytes, stream, batch);
}

// Chooses as many warps as the registers allow, in as many blocks as have memory for their tables. The warps of small
// blocks wait less for each other.
template <class Tiles>
cudaError_t shape_of_chunks(int device, ChunkShape& shape) {
  constexpr uint32_t kTables = kTablesAt<Tiles> + sizeof(typename Tiles::Memory);
  constexpr uint32_t kUsualTile = 128;
  constexpr uint32_t kUsualRoom =
      Tiles::kDelayBytes * dense_delay(kUsualTile, kLanes) + 4 * (kUsualTile / kBlockEdge) * (kUsualTile / kBlockEdge);
  int processors = 0, of_block = 0, of_processor = 0, reserved = 0;
  cudaError_t error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&of_block, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&of_processor, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
  }
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&reserved, cudaDevAttrReservedSharedMemoryPerBlock, device);
  if (error != cudaSuccess) return error;
  for (uint32_t blocks = 4; blocks >= 1; blocks /= 2) {
    const uint32_t maximum = static_cast<uint32_t>(of_block);
    const uint32_t share = static_cast<uint32_t>(of_processor) / blocks - static_cast<uint32_t>(reserved);
    const uint32_t bytes = (share < maximum ? share : maximum) / 16 * 16;
    const uint32_t warps = Tiles::kMaxWarps / blocks;
    if (bytes >= kTables + warps * kUsualRoom || blocks == 1) {
      const uint32_t have_room = (bytes - kTables) / kUsualRoom;
      shape = {static_cast<uint32_t>(processors) * blocks, warps < have_room ? warps : have_room, bytes};
      break;
    }
  }
  return cudaSuccess;
}

}  // namespace l3
