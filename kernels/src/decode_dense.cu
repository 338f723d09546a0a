// Tiles of the dense method, a warp for each, by the engine of codec/. Blocks stay, and take chunks of a model's tiles,
// whose tables lie in shared memory for all warps.
#include "check.h"
#include "cuda_word_warp.cuh"
#include "dense_decode.h"
#include "launch.h"
#include "output.cuh"
#include "stages.h"

namespace l3 {

constexpr uint32_t kDenseMostWarps = 32;  // of a block; registers allow as many on a multiprocessor

// Writes the pixels of a tile that is wanted whole, samples as they are: four of a lane at a time, in words, where
// their place allows it.
template <uint32_t kChannels>
class PixelWords {
 public:
  using Lanes = CudaWordWarp::Lanes;

  L3_INLINE PixelWords(uint8_t* pixels, size_t stride) : pixels_(pixels), stride_(static_cast<uint32_t>(stride)) {}

  L3_INLINE void begin(uint32_t width, uint32_t, uint32_t) {
    const bool aligned = ((reinterpret_cast<uintptr_t>(pixels_) | stride_) & 3) == 0;
    in_words_ = CudaWordWarp::keep(aligned ? width & ~3u : 0);
  }

  template <uint32_t kBuckets>
  L3_INLINE void saw(Lanes, bool) {}
  L3_INLINE void put(uint32_t, uint32_t, Lanes row, Lanes column, Lanes pixel, bool active) {
    const uint32_t x = column.v;
    if (active) {
      uint8_t* to = multiply_add_wide(x, kChannels, multiply_add_wide(row.v, stride_, pixels_));
      if (x >= in_words_) {
        for (uint32_t c = 0; c < kChannels; ++c) store_global_byte(to + c, pixel.v >> (8 * c));
      } else if (kChannels == 4) {
        store_global(to, pixel.v);
      } else if ((x & 3) == 3) {
        to -= 3 * kChannels;
        if constexpr (kChannels == 1) {
          store_global(to, __byte_perm(__byte_perm(before_[2], before_[1], 0x0040),
                                       __byte_perm(before_[0], pixel.v, 0x0040), 0x5410));
        } else if constexpr (kChannels == 2) {
          store_global(to, __byte_perm(before_[2], before_[1], 0x5410));
          store_global(to + 4, __byte_perm(before_[0], pixel.v, 0x5410));
        } else {
          store_global(to, __byte_perm(before_[2], before_[1], 0x4210));
          store_global(to + 4, __byte_perm(before_[1], before_[0], 0x5421));
          store_global(to + 8, __byte_perm(before_[0], pixel.v, 0x6542));
        }
      }
    }
    before_[2] = before_[1];
    before_[1] = before_[0];
    before_[0] = pixel.v;
  }

 private:
  uint8_t* pixels_;
  uint32_t stride_;
  uint32_t in_words_ = 0;
  uint32_t before_[3] = {};
};

// Writes pixels of any part of a tile, in any type and layout: in a plane four of a lane at a time, where their place
// allows it.
template <uint32_t kChannels>
class AnyPixels {
 public:
  using Lanes = CudaWordWarp::Lanes;

  L3_INLINE explicit AnyPixels(const TilePlace& place) : place_(place) {}

  L3_INLINE void begin(uint32_t, uint32_t, uint32_t) {
    const GroupRange range = GroupRange::of_channels(place_);
    groups_.from = CudaWordWarp::keep(range.from);
    groups_.to = CudaWordWarp::keep(range.to);
  }

  template <uint32_t kBuckets>
  L3_INLINE void saw(Lanes, bool) {}
  L3_INLINE void put(uint32_t, uint32_t, Lanes row, Lanes column, Lanes pixel, bool active) {
    const uint32_t x = column.v, y = row.v;
    if (active && y >= place_.y0 && y < place_.y1 && x >= place_.x0 && x < place_.x1) {
      if (!groups_.has(x)) {
        put_one(x, y, pixel.v);
      } else if ((x & 3) == 3) {
        put_group(x - 3, y, pixel.v);
      }
    }
    before_[2] = before_[1];
    before_[1] = before_[0];
    before_[0] = pixel.v;
  }

 private:
  L3_INLINE void put_one(uint32_t x, uint32_t y, uint32_t pixel) const {
    const Output& out = *place_.out;
    if (kChannels == 1 && place_.colours != nullptr) pixel = place_.colours[pixel & 0xFF];
    uint8_t* const to = place_.address(x, y);
    for (uint32_t c = 0; c < out.channels; ++c) store_converted(out, c, to, pixel >> (8 * c) & 0xFF);
  }
  // Of columns x to x + 3.
  L3_INLINE void put_group(uint32_t x, uint32_t y, uint32_t pixel) const {
    const Output& out = *place_.out;
    uint32_t a = before_[2], b = before_[1], c = before_[0], d = pixel;
    const bool mirrored = out.pixel_step < 0;
    if (mirrored) {
      a = pixel;
      b = before_[0];
      c = before_[1];
      d = before_[2];
    }
    if (kChannels == 1 && place_.colours != nullptr) {
      a = place_.colours[a & 0xFF];
      b = place_.colours[b & 0xFF];
      c = place_.colours[c & 0xFF];
      d = place_.colours[d & 0xFF];
    }
    uint8_t* to = place_.address(mirrored ? x + 3 : x, y);
    for (uint32_t channel = 0; channel < out.channels; ++channel) {
      store_four_converted(out, channel, to, a & 0xFF, b & 0xFF, c & 0xFF, d & 0xFF);
      a >>= 8;
      b >>= 8;
      c >>= 8;
      d >>= 8;
      to += out.channel_step;
    }
  }

  const TilePlace& place_;
  GroupRange groups_;
  uint32_t before_[3] = {};
};

// All threads of a block bring an image's tables to shared memory.
L3_INLINE void load_tables(const DenseTables& from, uint32_t channels, CudaTables::Memory& to) {
  const uint32_t first = threadIdx.x, step = blockDim.x;
  for (uint32_t i = first; i < channels * kMaxClasses * 8; i += step) {
    const uint32_t c = i / (kMaxClasses * 8), k = i / 8 % kMaxClasses, word = i % 8;
    const bool is_there = word < kMaxTapWords && k < from.classes[c];
    reinterpret_cast<uint32_t*>(&to.weights[c][k])[word] = is_there ? from.weights[c][k][word] : 0;
  }
  for (uint32_t i = first; i < channels * 4; i += step) {
    const uint32_t c = i / 4, word = i % 4;
    reinterpret_cast<uint32_t*>(&to.activity[c])[word] =
        word < kActivityWords ? from.activity[c][word] : CudaWordWarp::kActivityStart;
  }
  for (uint32_t i = first; i < channels * kZones * kSignPatterns; i += step) {
    const uint32_t c = i / (kZones * kSignPatterns), zone = i / kSignPatterns % kZones, pattern = i % kSignPatterns;
    const uint32_t row = from.grouped[c] ? from.zone_row[c][zone] + from.pattern_row[c][pattern_in_order(pattern)] : 0;
    to.row_of[CudaWordWarp::place_of_row(c, zone, pattern)] =
        static_cast<uint16_t>(shared_address(&to.table_of[c][row * kLevels]) - 4 * 3 - kLevelOfOne);
  }
  for (uint32_t i = first; i < channels * kMaxRows * kLevels; i += step) {
    const uint32_t c = i / (kMaxRows * kLevels), place = i % (kMaxRows * kLevels);
    to.table_of[c][place] = from.table_of[c][place];
  }
  for (uint32_t i = first; i < from.table_count * kTableBuckets; i += step) {
    to.buckets[i] = from.buckets[i];
  }
}

// What a warp needs of shared memory beside the tables: a delay line, and the classes of the blocks.
struct TileRoom {
  uint32_t delay_entries, class_bytes;

  L3_INLINE static TileRoom of(const TileShape& shape, const TileEntry& entry) {
    const uint32_t blocks = ceil_div(shape.width, kBlockEdge) * ceil_div(shape.height, kBlockEdge);
    return {dense_delay(shape.width, 1u << entry.parameters),
            (blocks * CudaWordWarp::Classes::bytes_of_block(shape.channels) + 15) & ~15u};
  }
  L3_INLINE uint32_t bytes() const { return delay_entries * 16 + class_bytes; }
};

// A tile of an image, as a warp decodes it.
struct DenseJob {
  const ImageState* state;
  uint32_t place, column, row;
  TileShape shape;
  TileEntry entry;

  L3_INLINE static DenseJob of(const Batch& batch, const TileJob& job) {
    DenseJob result;
    const ImageState& state = batch.states[job.image];
    result.state = &state;
    result.place = job.place;
    result.column = state.first_column + job.place % state.columns;
    result.row = state.first_row + job.place / state.columns;
    result.shape = {smaller(state.tile_width, state.width - result.column * state.tile_width),
                    smaller(state.tile_height, state.height - result.row * state.tile_height), state.channels,
                    state.bits};
    result.entry = read_entry(state.data, state.head_bytes, uint64_t{result.row} * state.tiles_across + result.column);
    return result;
  }
};

template <uint32_t kChannels, class Sink>
L3_INLINE Fault decode_to(const DenseJob& job, const CudaTables& tables, Sink& sink, CudaWordWarp::Delay& delay,
                          CudaWordWarp::Classes& classes) {
  return DenseDecoder<CudaWordWarp, kChannels, Sink>(job.shape, job.entry, tables, sink, delay, classes).decode();
}

template <uint32_t kChannels>
L3_INLINE Fault decode_dense_tile(const DenseJob& job, const TilePlace& place, const CudaTables& tables,
                                  CudaWordWarp::Delay& delay, CudaWordWarp::Classes& classes) {
  const bool whole = place.x0 == 0 && place.y0 == 0 && place.x1 == job.shape.width && place.y1 == job.shape.height;
  if (job.state->out.in_order != 0 && job.state->out.row_step <= UINT32_MAX && whole) {
    PixelWords<kChannels> sink(place.address(0, 0), job.state->out.row_step);
    return decode_to<kChannels>(job, tables, sink, delay, classes);
  }
  AnyPixels<kChannels> sink(place);
  return decode_to<kChannels>(job, tables, sink, delay, classes);
}

// What a block shares, before the tables.
struct DenseRoom {
  uint32_t taken;         // the chunk's number
  uint32_t loaded_slot;   // whose tables are there
  uint32_t most_bytes;    // that a tile of the chunk needs
  uint32_t first, count;  // of the chunk's tiles
  uint32_t tiles_at;      // where tiles have their room, in bytes
  uint32_t side_by_side;  // where tiles are large, not all warps have room at once
  uint32_t padding;
  const DenseTables* tables;
  TilePlace places[kDenseMostWarps];
};
constexpr uint32_t kTablesAt = (sizeof(DenseRoom) + 15) / 16 * 16;

// Brings a chunk's tables, and shares out the room behind them. All threads of the block.
L3_INLINE void begin_chunk(const Batch& batch, DenseRoom& room, CudaTables::Memory& memory) {
  const Chunk chunk = batch.chunks[room.taken];
  const DenseTables& tables = batch.slots[chunk.slot].tables;
  // The tiles of images that turned out to be wrong are not there.
  const uint32_t last = smaller(chunk.last, chunk.slot_first + batch.slot_counts[chunk.slot].listed);
  const uint32_t count = last > chunk.first ? last - chunk.first : 0;
  if (count != 0 && room.loaded_slot != chunk.slot) load_tables(tables, tables.channels, memory);
  const uint32_t thread = threadIdx.x;
  if (thread < count) {
    const DenseJob job = DenseJob::of(batch, batch.dense_tiles[chunk.first + thread]);
    atomicMax(&room.most_bytes, TileRoom::of(job.shape, job.entry).bytes());
  }
  __syncthreads();
  if (thread == 0) {
    if (count != 0) room.loaded_slot = chunk.slot;
    room.first = chunk.first;
    room.count = count;
    room.tables = &tables;
    room.tiles_at = kTablesAt + static_cast<uint32_t>(offsetof(CudaTables::Memory, buckets)) +
                    tables.table_count * static_cast<uint32_t>(kTableBuckets * sizeof(Bucket));
    room.side_by_side = smaller((batch.dense_shared_bytes - room.tiles_at) / room.most_bytes, batch.dense_warps);
  }
  __syncthreads();
}

// The tile at a place of the chunk. What is needed afterwards is read again from shared memory: registers are for the
// engine.
L3_INLINE void decode_tile_of_chunk(const Batch& batch, uint4* memory, uint32_t warp, uint32_t i) {
  DenseRoom& room = *reinterpret_cast<DenseRoom*>(memory);
  const TileJob tile = batch.dense_tiles[room.first + i];
  const DenseJob job = DenseJob::of(batch, tile);
  Fault fault;
  if (check_of<CudaWarp>(job.entry.payload, job.entry.payload_bytes / 4) != job.entry.check) {
    fault.reason = Reason::tile_check;
  } else {
    const CudaTables tables{from_here_on(shared_address(memory + kTablesAt / 16)), room.tables->classes,
                            room.tables->class_buckets, room.tables->class_table_of};
    uint4* const own_room = memory + (room.tiles_at + warp * room.most_bytes) / 16;
    CudaWordWarp::Delay delay(own_room);
    CudaWordWarp::Classes classes(
        reinterpret_cast<uint8_t*>(own_room + TileRoom::of(job.shape, job.entry).delay_entries), job.shape.channels);
    TilePlace& place = room.places[warp];
    if (lane_number() == 0) {
      place = place_of(*job.state, batch.colours + 256 * tile.image, job.column, job.row, job.shape);
    }
    __syncwarp();
    switch (job.shape.channels) {
      case 1: fault = decode_dense_tile<1>(job, place, tables, delay, classes); break;
      case 2: fault = decode_dense_tile<2>(job, place, tables, delay, classes); break;
      case 3: fault = decode_dense_tile<3>(job, place, tables, delay, classes); break;
      default: fault = decode_dense_tile<4>(job, place, tables, delay, classes); break;
    }
  }
  __syncwarp();
  if (fault.reason != Reason::none && lane_number() == 0) {
    const TileJob failed = batch.dense_tiles[room.first + i];
    atomicMin(&batch.states[failed.image].fault, key_of(failed.place, fault));
  }
}

__global__ void __launch_bounds__(kDenseMostWarps* kLanes, 1) dense_kernel(const __grid_constant__ Batch batch) {
  extern __shared__ uint4 shared[];
  DenseRoom& room = *reinterpret_cast<DenseRoom*>(shared);
  CudaTables::Memory& memory = *reinterpret_cast<CudaTables::Memory*>(shared + kTablesAt / 16);
  // From lane 0, so that the compiler sees that it is the same in all of them.
  const uint32_t warp = __shfl_sync(kAllLanes, threadIdx.x / kLanes, 0);
  if (threadIdx.x == 0) room.loaded_slot = kNone;
  for (;;) {
    if (threadIdx.x == 0) {
      room.taken = atomicAdd(&batch.control->next_chunk, 1u);
      room.most_bytes = 16;
    }
    __syncthreads();
    if (room.taken >= batch.control->chunks) return;
    begin_chunk(batch, room, memory);
    if (warp < room.side_by_side) {
      for (uint32_t i = warp; i < room.count; i += room.side_by_side) decode_tile_of_chunk(batch, shared, warp, i);
    }
    __syncthreads();
  }
}

// The largest room there is fits beside the tables on all devices: a tile of the widest rows, and of as many blocks as
// two channels leave room for.
constexpr uint32_t kMostTileRoom =
    16 * dense_delay(kMaxTileEdge, 1) + 4 * (kMaxPayloadUnits * kUnit / 2 / (kBlockEdge * kBlockEdge) + 1);
static_assert(kTablesAt + sizeof(CudaTables::Memory) + kMostTileRoom <= 99 << 10);

cudaError_t load_dense() { return load(dense_kernel); }

cudaError_t decode_dense_tiles(const Batch& batch, cudaStream_t stream) {
  cudaError_t error = cudaFuncSetAttribute(dense_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                           static_cast<int>(batch.dense_shared_bytes));
  // Two blocks on sm_90 need all there is.
  if (error == cudaSuccess) {
    error = cudaFuncSetAttribute(dense_kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                 cudaSharedmemCarveoutMaxShared);
  }
  if (error != cudaSuccess) return error;
  return launch(dense_kernel, batch.dense_blocks, batch.dense_warps * kLanes, batch.dense_shared_bytes, stream, batch);
}

// As many warps as registers allow, in as many blocks as have room for their tables: small blocks wait less for each
// other.
cudaError_t shape_of_dense(int device, DenseShape& shape) {
  constexpr uint32_t kTables = kTablesAt + sizeof(CudaTables::Memory);
  constexpr uint32_t kUsualTile = 128;
  constexpr uint32_t kUsualRoom =
      16 * dense_delay(kUsualTile, kLanes) + 4 * (kUsualTile / kBlockEdge) * (kUsualTile / kBlockEdge);
  int processors = 0, of_block = 0, of_processor = 0, reserved = 0;
  cudaError_t error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&of_block, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&of_processor, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
  }
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&reserved, cudaDevAttrReservedSharedMemoryPerBlock, device);
  if (error != cudaSuccess) return error;
  for (uint32_t blocks = 4; blocks >= 1; blocks /= 2) {
    const uint32_t most = static_cast<uint32_t>(of_block);
    const uint32_t share = static_cast<uint32_t>(of_processor) / blocks - static_cast<uint32_t>(reserved);
    const uint32_t bytes = (share < most ? share : most) / 16 * 16;
    const uint32_t warps = kDenseMostWarps / blocks;
    if (bytes >= kTables + warps * kUsualRoom || blocks == 1) {
      const uint32_t have_room = (bytes - kTables) / kUsualRoom;
      shape = {static_cast<uint32_t>(processors) * blocks, warps < have_room ? warps : have_room, bytes};
      break;
    }
  }
  return cudaSuccess;
}

}  // namespace l3
