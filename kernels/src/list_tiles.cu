// The list stage: a block per image. It decides whether the image has an error so far. If not, it adds the image's
// tiles to the lists. The tiles of a model are adjacent, and are divided into chunks for the blocks that decode them.
#include "cuda_instructions.cuh"
#include "launch.h"
#include "stages.h"

namespace l3 {

constexpr uint32_t kListThreads = 128;

struct ListScratch {
  uint32_t tiles_before;  // tiles of the slots before the image's slot
  uint32_t next_dense, next_other;
  uint32_t chunks_before;  // chunks of the same kind in those slots
  uint32_t tiles[kTileKinds], chunks[kTileKinds];
};

// The stage that decodes the tiles of a model.
L3_INLINE TileKind stage_of(const DenseTables&) { return kPackedTiles; }
L3_INLINE TileKind stage_of(const TokenTables& tables) {
  if (tables.follow) return kFollowTiles;
  if (tables.rows) return kRowTiles;
  return tables.engine_channels > 2 ? kWideTokenTiles : kTokenTiles;
}
L3_INLINE TileKind stage_of(const BitTables&) { return kBitTiles; }

// Call it only for a slot with tiles: other slots may not be built.
L3_INLINE TileKind kind_of(const Batch& batch, uint32_t slot) {
  if (batch.slots[slot].fault.reason != Reason::none) return kPackedTiles;  // none of its tiles are decoded
  const ModelTables& tables = batch.slots[slot].tables;
  TileKind kind = kPackedTiles;
  ModelKinds::visit(tables.kind, [&]<class Kind>() { kind = stage_of(tables.of(Kind{})); });
  return kind;
}

// Returns the number of tiles in a chunk. Few tiles are spread evenly over all blocks. If there are many, a chunk has a
// tile for each warp of a block.
L3_INLINE uint32_t chunk_tiles(const ChunkShape& shape, uint32_t tiles) {
  const uint32_t even = ceil_div(tiles, shape.blocks);
  return even == 0 ? 1 : smaller(even, shape.warps);
}

L3_INLINE Verdict verdict_of(const Batch& batch, const ImageState& state) {
  if (!state.before_model.ok()) return state.before_model;
  if (state.slot != kNone) {
    const Fault fault = batch.slots[state.slot].fault;
    if (fault.reason != Reason::none) return state.verdict_of_model(fault);
  }
  if (!state.after_model.ok()) return state.after_model;
  return {static_cast<Reason>(state.is_refused)};
}

// The chunks of a kind follow the chunks of the kinds before it.
L3_INLINE uint32_t first_chunk(const ListScratch& scratch, uint32_t kind) {
  uint32_t first = 0;
  for (uint32_t k = 0; k < kind; ++k) first += scratch.chunks[k];
  return first;
}
L3_INLINE void place_chunks(const Batch& batch, const ListScratch& scratch) {
  for (uint32_t kind = 0; kind < kTileKinds; ++kind) {
    batch.control->chunks[kind].first = first_chunk(scratch, kind);
    batch.control->chunks[kind].count = scratch.chunks[kind];
  }
}

__global__ void __launch_bounds__(kListThreads) list_kernel(const __grid_constant__ Batch batch) {
  extern __shared__ uint4 shared[];
  ListScratch& scratch = *reinterpret_cast<ListScratch*>(shared);
  const uint32_t image = blockIdx.x, thread = threadIdx.x;
  ImageState& state = batch.states[image];
  const Verdict verdict = verdict_of(batch, state);
  const uint32_t slot = state.slot;
  const bool owns_slot = state.owns_slot != 0;
  __syncthreads();
  if (thread == 0) {
    state.before_model = verdict;
    scratch = {};
  }
  __syncthreads();

  for (uint32_t s = thread; s < batch.slot_count; s += kListThreads) {
    const uint32_t tiles = batch.slot_counts[s].tiles;
    if (tiles == 0) continue;
    atomicAdd(&scratch.tiles[kind_of(batch, s)], tiles);
    if (s < slot) atomicAdd(&scratch.tiles_before, tiles);
  }
  __syncthreads();
  const TileKind kind = slot != kNone ? kind_of(batch, slot) : kPackedTiles;
  for (uint32_t s = thread; s < batch.slot_count; s += kListThreads) {
    const uint32_t tiles = batch.slot_counts[s].tiles;
    if (tiles == 0) continue;
    const TileKind of = kind_of(batch, s);
    const uint32_t chunks = ceil_div(tiles, chunk_tiles(batch.chunk_shapes[of], scratch.tiles[of]));
    atomicAdd(&scratch.chunks[of], chunks);
    if (s < slot && of == kind) atomicAdd(&scratch.chunks_before, chunks);
  }
  __syncthreads();
  if (image == 0 && thread == 0) place_chunks(batch, scratch);
  if (owns_slot) {
    const uint32_t count = batch.slot_counts[slot].tiles;
    const uint32_t each = chunk_tiles(batch.chunk_shapes[kind], scratch.tiles[kind]);
    const uint32_t before = first_chunk(scratch, kind) + scratch.chunks_before;
    for (uint32_t i = thread; i < ceil_div(count, each); i += kListThreads) {
      const uint32_t first = scratch.tiles_before + i * each;
      batch.chunks[before + i] = {slot, scratch.tiles_before, first,
                                  smaller(first + each, scratch.tiles_before + count)};
    }
  }
  if (!verdict.ok() || state.dense_tiles + state.other_tiles == 0) return;

  const uint32_t long_line = has_long_line(state.tile_width, state.channels);
  const uint32_t depth = state.bits > 8;
  if (thread == 0) {
    scratch.next_dense = scratch.tiles_before;
    if (state.dense_tiles != 0) scratch.next_dense += atomicAdd(&batch.slot_counts[slot].listed, state.dense_tiles);
    scratch.next_other =
        state.other_tiles != 0 ? atomicAdd(&batch.control->others[depth][long_line].count, state.other_tiles) : 0;
  }
  __syncthreads();
  const uint32_t count = state.columns * state.rows;
  for (uint32_t i = thread; i < count; i += kListThreads) {
    if (needs_model(state.method_at(i))) {
      batch.dense_tiles[atomicAdd(&scratch.next_dense, 1u)] = {image, i};
    } else {
      const uint64_t place = atomicAdd(&scratch.next_other, 1u);
      batch.other_tiles[depth][long_line != 0 ? batch.tile_capacity - 1 - place : place] = {image, i};
    }
  }
}

cudaError_t list_tiles(const Batch& batch, cudaStream_t stream) {
  return launch(list_kernel, batch.count, kListThreads, (sizeof(ListScratch) + 15) / 16 * 16, stream, batch);
}

// Writes the result of each image. Like libl3, it reports the lowest tile that failed.
__global__ void report_kernel(const __grid_constant__ Batch batch) {
  const uint32_t i = blockIdx.x * kListThreads + threadIdx.x;
  if (i >= batch.count) return;
  const ImageState& state = batch.states[i];
  Verdict verdict = state.before_model;
  if (verdict.ok() && state.fault != kNoFault) {
    const uint64_t tile = state.tile_at(static_cast<uint32_t>(state.fault >> 28));
    const TileEntry entry = read_entry(state, state.data, tile);
    verdict.reason = static_cast<Reason>(state.fault & 0xFF);
    verdict.offset = static_cast<uint64_t>(entry.payload - state.data) + (state.fault >> 8 & 0xFFFFF);
    verdict.tile = tile;
  }
  batch.results[i] = {static_cast<uint32_t>(status_of(verdict.reason)), static_cast<uint32_t>(verdict.reason),
                      verdict.offset, verdict.tile};
}

cudaError_t load_lists() {
  const cudaError_t error = load(list_kernel);
  return error != cudaSuccess ? error : load(report_kernel);
}

cudaError_t report_results(const Batch& batch, cudaStream_t stream) {
  return launch(report_kernel, ceil_div(batch.count, kListThreads), kListThreads, 0, stream, batch);
}

}  // namespace l3
