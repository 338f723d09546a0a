// The models stage: a block per image. If an earlier image has the same model, the block reuses it. Otherwise it builds
// the model.
#include "build_buckets.cuh"
#include "launch.h"
#include "models/model_reader.h"
#include "read_parts.cuh"
#include "read_values.cuh"
#include "stages.h"

namespace l3 {

constexpr uint32_t kModelWarps = kMaxTables;  // a warp builds the buckets of a table
constexpr uint32_t kModelThreads = kModelWarps * kLanes;

constexpr uint32_t kStagedBytes = 8192;  // of a model: larger ones are read where they are

// The shared memory of a block.
struct ModelScratch {
  uint16_t frequencies[kMaxTables * kTableBuckets];  // of the tables of either kind of model
  uint16_t class_frequencies[kMaxClassTables * kClassBuckets];
  union {
    uint4 model[kStagedBytes / kUnit];  // until it is read
    BucketScratch scratch[kModelWarps];
  };
  Fault faults[kMaxTokenTables], class_faults[kMaxClassTables];  // of tables
  Fault fault, values_fault, match_fault;
  bool is_read[kMaxChannels];
  uint32_t class_tables[kMaxChannels], first_class_table[kMaxChannels];
  unsigned long long tiles;        // of this image and those before it
  unsigned long long follow;       // bytes that the images before this one have
  uint32_t owners, owners_before;  // of keys: all, and those before this image's owner
  uint32_t slot;
};
static_assert(kMaxTokenTables * kTokenBuckets <= kMaxTables * kTableBuckets && kMaxTables <= kMaxTokenTables);

static_assert(sizeof(ModelScratch) <= 99 << 10, "every device has so much");

L3_INLINE uint32_t owner_of(const Batch& batch, uint32_t key) { return kMaxImages - batch.key_owners[key]; }

// Returns whether the models of two images differ. All threads return the same.
L3_INLINE bool differ(const ImageState& a, const ImageState& b) {
  // Models begin at a multiple of 16, and zeros follow.
  const uint4* const of_a = reinterpret_cast<const uint4*>(a.model);
  const uint4* const of_b = reinterpret_cast<const uint4*>(b.model);
  bool found = a.model_size != b.model_size || a.channels != b.channels || a.bits != b.bits;
  for (uint32_t i = threadIdx.x; i < ceil_div(a.model_size, kUnit) && !found; i += kModelThreads) {
    const uint4 x = of_a[i], y = of_b[i];
    found = ((x.x ^ y.x) | (x.y ^ y.y) | (x.z ^ y.z) | (x.w ^ y.w)) != 0;
  }
  return __syncthreads_or(found) != 0;
}

// Counts the tiles, the room and the models of the images before an image.
L3_INLINE void look_back(const Batch& batch, uint32_t image, uint32_t owner, ModelScratch& scratch) {
  unsigned long long tiles = 0, follow = 0;
  uint32_t owners = 0, owners_before = 0;
  for (uint32_t i = threadIdx.x; i < batch.count; i += kModelThreads) {
    const ImageSummary summary = batch.summaries[i];
    if (i <= image) tiles += summary.tiles;
    if (i < image) follow += summary.follow_bytes;
    if (summary.key != kNone && owner_of(batch, summary.key) == i) {
      ++owners;
      owners_before += i < owner;
    }
  }
  atomicAdd(&scratch.tiles, tiles);
  atomicAdd(&scratch.follow, follow);
  atomicAdd(&scratch.owners, owners);
  atomicAdd(&scratch.owners_before, owners_before);
  __syncthreads();
}

// The code that differs between the kinds of models.
template <class Kind>
struct BuiltModel;
template <>
struct BuiltModel<DenseKind> {
  using Tables = DenseTables;
  using Reader = DenseModelReader<PartsOfWarp<DenseTables, DenseForm>>;
  static constexpr uint32_t kBuckets = kTableBuckets;

  L3_INLINE static Fault read_head(Reader& reader, const ImageState& state) { return reader.read_head(state.channels); }
  L3_INLINE static uint32_t channels(const Tables& tables) { return tables.channels; }
  L3_INLINE static void read_more(Reader&, Tables&, ModelScratch&) {}
};
template <>
struct BuiltModel<TokenKind> {
  using Tables = TokenTables;
  using Reader = AnyTokenModelReader<PartsOfWarp<TokenTables, TokenForm>>;
  static constexpr uint32_t kBuckets = kTokenBuckets;

  L3_INLINE static Fault read_head(Reader& reader, const ImageState& state) {
    return reader.read_head(state.channels, state.bits);
  }
  L3_INLINE static uint32_t channels(const Tables& tables) { return tables.engine_channels; }
  // Called by the last two warps.
  L3_INLINE static void read_more(Reader& reader, Tables& tables, ModelScratch& scratch) {
    const uint32_t warp = threadIdx.x / kLanes;
    if (warp == kModelWarps - 2 && lane_number() == 0) scratch.match_fault = reader.read_match();
    if (warp == kModelWarps - 1) {
      if (lane_number() == 0) reader.begin_values();
      __syncwarp();
      const bool sound = ValueLists(reader, tables).read();
      __syncwarp();
      if (lane_number() == 0) scratch.values_fault = reader.end_values(sound);
    }
  }
};

// Reads a model's tables. All threads of the block call it.
template <class Model>
class ModelBuilder {
  using Tables = typename Model::Tables;

 public:
  L3_INLINE ModelBuilder(const ImageState& state, const uint8_t* model, Tables& tables, ModelScratch& scratch)
      : state_(state), tables_(tables), scratch_(scratch), reader_(model, state.model_size, tables) {}

  L3_INLINE void build() {
    if (thread_ == 0) {
      scratch_.fault = Model::read_head(reader_, state_);
      scratch_.values_fault = scratch_.match_fault = {};
    }
    clear();
    __syncthreads();
    if (is_faulty()) return;
    read_parts();
    __syncthreads();
    if (thread_ == 0) scratch_.fault = fault_of_parts();
    __syncthreads();
    if (is_faulty()) return;
    place_classes();
    __syncthreads();
    if (thread_ == 0) scratch_.fault = fault_of_tables();
    __syncthreads();
    if (is_faulty()) return;
    build_buckets();
  }

 private:
  // Returns the same in all threads. They may change the fault afterwards.
  L3_INLINE bool is_faulty() const {
    const bool faulty = scratch_.fault.reason != Reason::none;
    __syncthreads();
    return faulty;
  }

  template <class Word>
  L3_INLINE static void zero(Word* words, uint32_t bytes) {
    for (uint32_t i = threadIdx.x; i < bytes / sizeof(Word); i += kModelThreads) words[i] = 0;
  }
  L3_INLINE void clear() {
    zero(reinterpret_cast<uint32_t*>(tables_.table_of), sizeof(tables_.table_of));
    zero(reinterpret_cast<uint32_t*>(tables_.class_table_of), sizeof(tables_.class_table_of));
    zero(scratch_.frequencies, sizeof(scratch_.frequencies));
    zero(scratch_.class_frequencies, sizeof(scratch_.class_frequencies));
  }

  // A warp reads each channel, and a thread each other part. Parts of different kinds are read by different warps.
  L3_INLINE void read_parts() {
    if (warp_ < Model::channels(tables_)) {
      uint32_t class_tables = 0;
      const bool is_read = reader_.read_channel(warp_, class_tables);
      if (lane_ == 0) {
        scratch_.is_read[warp_] = is_read;
        scratch_.class_tables[warp_] = class_tables;
      }
    }
    const uint32_t table = thread_ - kMaxChannels * kLanes;
    if (table < tables_.table_count) {
      scratch_.faults[table] = reader_.read_table(table, scratch_.frequencies + table * Model::kBuckets);
    }
    Model::read_more(reader_, tables_, scratch_);
  }
  // Returns the first fault in libl3's order: values, channels, match.
  L3_INLINE Fault fault_of_parts() {
    if (scratch_.values_fault.reason != Reason::none) return scratch_.values_fault;
    const Fault fault = reader_.place_class_tables(scratch_.is_read, scratch_.class_tables, scratch_.first_class_table);
    return fault.reason != Reason::none ? fault : scratch_.match_fault;
  }

  L3_INLINE void place_classes() {
    if (lane_ == 0 && warp_ < Model::channels(tables_)) {
      reader_.move_class_tables(warp_, scratch_.first_class_table[warp_]);
    }
    if (warp_ == kMaxChannels && lane_ < tables_.class_table_count) {
      uint32_t c = 0;
      while (lane_ >= scratch_.first_class_table[c] + scratch_.class_tables[c]) ++c;
      scratch_.class_faults[lane_] =
          reader_.read_class_table(lane_, tables_.classes[c], scratch_.class_frequencies + lane_ * kClassBuckets);
    }
  }
  L3_INLINE Fault fault_of_tables() const {
    for (uint32_t t = 0; t < tables_.table_count; ++t) {
      if (scratch_.faults[t].reason != Reason::none) return scratch_.faults[t];
    }
    for (uint32_t t = 0; t < tables_.class_table_count; ++t) {
      if (scratch_.class_faults[t].reason != Reason::none) return scratch_.class_faults[t];
    }
    return {};
  }

  L3_INLINE void build_buckets() {
    for (uint32_t t = warp_; t < tables_.table_count; t += kModelWarps) {
      build_buckets_by_warp<Model::kBuckets>(scratch_.frequencies + t * Model::kBuckets, scratch_.scratch[warp_],
                                             tables_.buckets + t * Model::kBuckets);
    }
    for (uint32_t t = warp_; t < tables_.class_table_count; t += kModelWarps) {
      build_buckets_by_warp<kClassBuckets>(scratch_.class_frequencies + t * kClassBuckets, scratch_.scratch[warp_],
                                           tables_.class_buckets + t * kClassBuckets);
    }
  }

  const ImageState& state_;
  Tables& tables_;
  ModelScratch& scratch_;
  typename Model::Reader reader_;
  const uint32_t thread_ = threadIdx.x, warp_ = thread_ / kLanes, lane_ = thread_ % kLanes;
};

// Reads a bit model. Its first warp does, with all lanes alike: a tree is read from its begin to its end. The lanes
// share the contexts of a leaf.
class BitModelBuilder {
 public:
  L3_INLINE BitModelBuilder(const ImageState& state, const uint8_t* model, BitTables& tables, ModelScratch& scratch)
      : state_(state), tables_(tables), scratch_(scratch), reader_(model, state.model_size, tables) {}

  L3_INLINE void build() {
    if (threadIdx.x >= kLanes) return;
    Fault fault = reader_.read_head(state_.channels, state_.bits);
    if (fault.reason == Reason::none) {
      fault = reader_.read_rest([&](uint32_t first, uint32_t count, uint32_t frequency) {
        for (uint32_t i = lane_number(); i < count; i += kLanes) {
          tables_.frequencies[first + i] = static_cast<uint16_t>(frequency);
        }
      });
    }
    if (threadIdx.x == 0) scratch_.fault = fault;
  }

 private:
  const ImageState& state_;
  BitTables& tables_;
  ModelScratch& scratch_;
  BitModelReader reader_;
};

// Who builds a kind of models.
template <class Kind>
struct BuilderOf {
  using Type = ModelBuilder<BuiltModel<Kind>>;
};
template <>
struct BuilderOf<BitKind> {
  using Type = BitModelBuilder;
};

// Copies a model to shared memory, unless it is too large, and returns where it is.
L3_INLINE const uint8_t* stage_model(const ImageState& state, ModelScratch& scratch) {
  if (state.model_size > kStagedBytes) return state.model;
  for (uint32_t i = threadIdx.x; i < ceil_div(state.model_size, kUnit); i += kModelThreads) {
    scratch.model[i] = reinterpret_cast<const uint4*>(state.model)[i];
  }
  __syncthreads();
  return reinterpret_cast<const uint8_t*>(scratch.model);
}

// Reads an image's model into its slot.
L3_INLINE void build_model(const ImageState& state, ModelSlot& slot, ModelScratch& scratch) {
  const uint8_t* const model = stage_model(state, scratch);
  const uint32_t kind = kind_of_model(model, state.model_size);
  ModelKinds::visit(kind, [&]<class Kind>() {
    typename BuilderOf<Kind>::Type(state, model, slot.tables.of(Kind{}), scratch).build();
  });
  if (threadIdx.x == 0) {
    slot.tables.kind = kind;
    slot.fault = scratch.fault;
  }
}

__global__ void __launch_bounds__(kModelThreads, 1) models_kernel(const __grid_constant__ Batch batch) {
  extern __shared__ uint4 shared[];
  ModelScratch& scratch = *reinterpret_cast<ModelScratch*>(shared);
  const uint32_t i = blockIdx.x;
  // Other blocks read members of it, but none of those that this block writes.
  ImageState& state = batch.states[i];
  if (!state.before_model.ok()) return;
  const bool with_model = batch.summaries[i].key != kNone;
  const uint32_t owner = with_model ? owner_of(batch, state.key) : i;
  if (threadIdx.x == 0) {
    scratch.tiles = scratch.follow = 0;
    scratch.owners = scratch.owners_before = 0;
  }
  __syncthreads();
  look_back(batch, i, owner, scratch);
  const bool too_many_tiles = batch.summaries[i].tiles != 0 && scratch.tiles > batch.tile_capacity;
  if (threadIdx.x == 0 && too_many_tiles) state.is_refused = static_cast<uint32_t>(Reason::over_tile_capacity);
  const uint64_t follow = batch.summaries[i].follow_bytes;
  const bool lacks_room = follow != 0 && scratch.follow + follow > batch.follow_capacity;
  if (threadIdx.x == 0) {
    if (lacks_room) state.is_refused = static_cast<uint32_t>(Reason::over_follow_capacity);
    state.follow = batch.follow + scratch.follow;
  }
  if (!with_model) return;

  const bool is_twin = owner != i && differ(batch.states[owner], state);
  const bool owns = owner == i || is_twin;
  if (threadIdx.x == 0) {
    scratch.slot = is_twin ? scratch.owners + atomicAdd(&batch.control->twin_models, 1u) : scratch.owners_before;
  }
  __syncthreads();
  const uint32_t slot = scratch.slot;
  if (slot >= batch.slot_count) {
    if (threadIdx.x == 0) state.is_refused = static_cast<uint32_t>(Reason::over_model_capacity);
    return;
  }
  if (threadIdx.x == 0) {
    state.slot = slot;
    state.owns_slot = owns;
    if (state.is_sound() && !too_many_tiles && !lacks_room)
      atomicAdd(&batch.slot_counts[slot].tiles, state.dense_tiles);
  }
  if (owns) build_model(state, batch.slots[slot], scratch);
}

cudaError_t load_models() { return load(models_kernel); }

cudaError_t build_models(const Batch& batch, cudaStream_t stream) {
  constexpr int kBytes = sizeof(ModelScratch);
  const cudaError_t error = cudaFuncSetAttribute(models_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (error != cudaSuccess) return error;
  return launch(models_kernel, batch.count, kModelThreads, sizeof(ModelScratch), stream, batch);
}

}  // namespace l3
