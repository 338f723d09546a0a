// A block for each image: finds whether an earlier image has the same model, and builds the model where none has.
#include "build_buckets.cuh"
#include "launch.h"
#include "model_reader.h"
#include "stages.h"

namespace l3 {

constexpr uint32_t kModelWarps = 8;
constexpr uint32_t kModelThreads = kModelWarps * kLanes;

// What a block works with in shared memory.
struct ModelRoom {
  uint16_t frequencies[kMaxTables * kTableBuckets];
  uint16_t class_frequencies[kMaxClassTables * kClassBuckets];
  BucketRoom room[kModelWarps];
  Fault faults[kMaxTables + kMaxClassTables];  // of tables, then class tables
  Fault fault;
  bool is_read[kMaxChannels];
  uint32_t class_tables[kMaxChannels], first_class_table[kMaxChannels];
  unsigned long long tiles;        // of this image and those before it
  uint32_t owners, owners_before;  // of keys: all, and those before this image's owner
  uint32_t slot;
};

L3_INLINE uint32_t owner_of(const Batch& batch, uint32_t key) { return kMaxImages - batch.key_owners[key]; }

// Whether the models of two images differ; the same answer in all threads.
L3_INLINE bool differ(const ImageState& a, const ImageState& b) {
  // Models begin at a multiple of 16, and zeros follow.
  const uint4* const of_a = reinterpret_cast<const uint4*>(a.model);
  const uint4* const of_b = reinterpret_cast<const uint4*>(b.model);
  bool found = a.model_size != b.model_size || a.channels != b.channels;
  for (uint32_t i = threadIdx.x; i < ceil_div(a.model_size, kUnit) && !found; i += kModelThreads) {
    const uint4 x = of_a[i], y = of_b[i];
    found = ((x.x ^ y.x) | (x.y ^ y.y) | (x.z ^ y.z) | (x.w ^ y.w)) != 0;
  }
  return __syncthreads_or(found) != 0;
}

// What of the batch comes before an image.
L3_INLINE void look_back(const Batch& batch, uint32_t image, uint32_t owner, ModelRoom& room) {
  unsigned long long tiles = 0;
  uint32_t owners = 0, owners_before = 0;
  for (uint32_t i = threadIdx.x; i < batch.count; i += kModelThreads) {
    const ImageSummary summary = batch.summaries[i];
    if (i <= image) tiles += summary.tiles;
    if (summary.key != kNone && owner_of(batch, summary.key) == i) {
      ++owners;
      owners_before += i < owner;
    }
  }
  atomicAdd(&room.tiles, tiles);
  atomicAdd(&room.owners, owners);
  atomicAdd(&room.owners_before, owners_before);
  __syncthreads();
}

// Reads a model into its slot.
L3_INLINE void build_model(const uint8_t* bytes, uint64_t size, uint32_t channels, ModelSlot& slot, ModelRoom& room) {
  DenseTables& tables = slot.tables;
  const uint32_t thread = threadIdx.x, warp = thread / kLanes, lane = thread % kLanes;
  ModelReader reader(bytes, size, tables);
  if (thread == 0) slot.fault = room.fault = reader.read_head(channels);
  uint32_t* const levels = reinterpret_cast<uint32_t*>(tables.table_of);
  for (uint32_t i = thread; i < sizeof(tables.table_of) / 4; i += kModelThreads) levels[i] = 0;
  uint32_t* const of_classes = reinterpret_cast<uint32_t*>(tables.class_table_of);
  for (uint32_t i = thread; i < sizeof(tables.class_table_of) / 4; i += kModelThreads) of_classes[i] = 0;
  for (uint32_t i = thread; i < kMaxTables * kTableBuckets; i += kModelThreads) room.frequencies[i] = 0;
  for (uint32_t i = thread; i < kMaxClassTables * kClassBuckets; i += kModelThreads) room.class_frequencies[i] = 0;
  __syncthreads();
  if (room.fault.reason != Reason::none) return;
  __syncthreads();

  // Each part by a thread; parts of different kinds in different warps.
  if (lane == 0 && warp < channels) room.is_read[warp] = reader.read_channel(warp, room.class_tables[warp]);
  if (warp == kMaxChannels && lane < tables.table_count) {
    room.faults[lane] = reader.read_table(lane, room.frequencies + lane * kTableBuckets);
  }
  __syncthreads();
  if (thread == 0) room.fault = reader.place_class_tables(room.is_read, room.class_tables, room.first_class_table);
  __syncthreads();
  if (room.fault.reason == Reason::none) {
    if (lane == 0 && warp < channels) reader.move_class_tables(warp, room.first_class_table[warp]);
    if (warp == kMaxChannels && lane < tables.class_table_count) {
      uint32_t c = 0;
      while (lane >= room.first_class_table[c] + room.class_tables[c]) ++c;
      room.faults[kMaxTables + lane] =
          reader.read_class_table(lane, tables.classes[c], room.class_frequencies + lane * kClassBuckets);
    }
  }
  __syncthreads();
  if (thread == 0) {
    for (uint32_t t = 0; t < tables.table_count && room.fault.reason == Reason::none; ++t) room.fault = room.faults[t];
    for (uint32_t t = 0; t < tables.class_table_count && room.fault.reason == Reason::none; ++t) {
      room.fault = room.faults[kMaxTables + t];
    }
    slot.fault = room.fault;
  }
  __syncthreads();
  if (room.fault.reason != Reason::none) return;
  for (uint32_t t = warp; t < tables.table_count; t += kModelWarps) {
    build_buckets_by_warp<kTableBuckets>(room.frequencies + t * kTableBuckets, room.room[warp],
                                         tables.buckets + t * kTableBuckets);
  }
  for (uint32_t t = warp; t < tables.class_table_count; t += kModelWarps) {
    build_buckets_by_warp<kClassBuckets>(room.class_frequencies + t * kClassBuckets, room.room[warp],
                                         tables.class_buckets + t * kClassBuckets);
  }
}

__global__ void __launch_bounds__(kModelThreads) models_kernel(const __grid_constant__ Batch batch) {
  extern __shared__ uint4 shared[];
  ModelRoom& room = *reinterpret_cast<ModelRoom*>(shared);
  const uint32_t i = blockIdx.x;
  // What other blocks read of it stays as it is here; what is written, only this block looks at.
  ImageState& state = batch.states[i];
  if (!state.before_model.ok()) return;
  const bool with_model = batch.summaries[i].key != kNone;
  const uint32_t owner = with_model ? owner_of(batch, state.key) : i;
  if (threadIdx.x == 0) {
    room.tiles = 0;
    room.owners = room.owners_before = 0;
  }
  __syncthreads();
  look_back(batch, i, owner, room);
  const bool too_many_tiles = batch.summaries[i].tiles != 0 && room.tiles > batch.tile_capacity;
  if (threadIdx.x == 0 && too_many_tiles) state.is_refused = static_cast<uint32_t>(Reason::over_tile_capacity);
  if (!with_model) return;

  const bool is_twin = owner != i && differ(batch.states[owner], state);
  const bool owns = owner == i || is_twin;
  if (threadIdx.x == 0) {
    room.slot = is_twin ? room.owners + atomicAdd(&batch.control->twin_models, 1u) : room.owners_before;
  }
  __syncthreads();
  const uint32_t slot = room.slot;
  if (slot >= batch.slot_count) {
    if (threadIdx.x == 0) state.is_refused = static_cast<uint32_t>(Reason::over_model_capacity);
    return;
  }
  if (threadIdx.x == 0) {
    state.slot = slot;
    state.owns_slot = owns;
    if (state.is_sound() && !too_many_tiles) atomicAdd(&batch.slot_counts[slot].tiles, state.dense_tiles);
  }
  if (owns) build_model(state.model, state.model_size, state.channels, batch.slots[slot], room);
}

cudaError_t load_models() { return load(models_kernel); }

cudaError_t build_models(const Batch& batch, cudaStream_t stream) {
  return launch(models_kernel, batch.count, kModelThreads, sizeof(ModelRoom), stream, batch);
}

}  // namespace l3
