// Decodes tiles of models of kind 0, with the engine of codec/.
#include "cuda_word_warp.cuh"
#include "decode_chunks.cuh"
#include "dense_decoder.cuh"

namespace l3 {

// Writes the pixels of a whole tile, with samples unchanged. A lane writes a group of pixels at a time, as wide words
// as the alignment allows.
template <uint32_t kChannels>
class PixelWords {
 public:
  using Lanes = CudaWordWarp::Lanes;

  L3_INLINE PixelWords(uint8_t* pixels, size_t stride) : pixels_(pixels), stride_(static_cast<uint32_t>(stride)) {}

  L3_INLINE void begin(uint32_t width, uint32_t, uint32_t) {
    const bool aligned = ((reinterpret_cast<uintptr_t>(pixels_) | stride_) & 3) == 0;
    in_words_ = CudaWordWarp::uniform(aligned ? width & ~(kGroup - 1) : 0);
  }

  L3_INLINE void save_states(uint32_t, uint32_t, const Lanes (&)[1]) {}
  L3_INLINE void end_step(uint32_t) {}
  L3_INLINE void put(uint32_t, uint32_t, Lanes row, Lanes column, Lanes pixel, bool active) {
    const uint32_t x = column.v;
    if (active) {
      uint8_t* to = multiply_add_wide(x, kChannels, multiply_add_wide(row.v, stride_, pixels_));
      if (x >= in_words_) {
        for (uint32_t c = 0; c < kChannels; ++c) store_global_byte(to + c, pixel.v >> (8 * c));
      } else if ((x & (kGroup - 1)) == kGroup - 1) {
        store_group(to - (kGroup - 1) * kChannels, pixel.v);
      }
    }
#pragma unroll
    for (uint32_t i = kGroup - 2; i > 0; --i) before_[i] = before_[i - 1];
    before_[0] = pixel.v;
  }

 private:
  static constexpr uint32_t kGroup = kChannels == 4 ? 4 : 8, kWords = kGroup * kChannels / 4;

  L3_INLINE void store_group(uint8_t* to, uint32_t last) const {
    uint32_t words[kWords];
    const auto pixel = [&](uint32_t i) { return i == kGroup - 1 ? last : before_[kGroup - 2 - i]; };
#pragma unroll
    for (uint32_t i = 0; i < kGroup; i += 4) {
      words_of_four<kChannels>(pixel(i), pixel(i + 1), pixel(i + 2), pixel(i + 3), words + i * kChannels / 4);
    }
    if (reinterpret_cast<uintptr_t>(to) % (kChannels % 2 == 0 ? 16 : 8) != 0) {
#pragma unroll
      for (uint32_t i = 0; i < kWords; ++i) store_global(to + 4 * i, words[i]);
    } else if constexpr (kChannels % 2 == 0) {
      store_global_four(to, make_uint4(words[0], words[1], words[2], words[3]));
    } else {
#pragma unroll
      for (uint32_t i = 0; i < kWords; i += 2) store_global_two(to + 4 * i, make_uint2(words[i], words[i + 1]));
    }
  }

  uint8_t* pixels_;
  uint32_t stride_;
  uint32_t in_words_ = 0;             // columns that are written as words
  uint32_t before_[kGroup - 1] = {};  // the lane's last pixels, the last one first
};

// Writes pixels of any part of a tile, in any type and layout. In a plane, a lane writes four pixels at a time if the
// alignment allows it.
template <uint32_t kChannels>
class AnyPixels {
 public:
  using Lanes = CudaWordWarp::Lanes;

  L3_INLINE explicit AnyPixels(const TilePlace& place) : place_(place) {}

  L3_INLINE void begin(uint32_t, uint32_t, uint32_t) {
    const GroupRange range = GroupRange::of_channels(place_);
    groups_.from = CudaWordWarp::uniform(range.from);
    groups_.to = CudaWordWarp::uniform(range.to);
  }

  L3_INLINE void save_states(uint32_t, uint32_t, const Lanes (&)[1]) {}
  L3_INLINE void end_step(uint32_t) {}
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
  L3_INLINE uint32_t colour_of(uint32_t pixel) const {
    return kChannels == 1 && place_.colours != nullptr ? place_.colours[pixel & 0xFF] : pixel;
  }
  L3_INLINE void put_one(uint32_t x, uint32_t y, uint32_t pixel) const { put_pixel(place_, x, y, colour_of(pixel), 8); }
  // Writes columns x to x + 3.
  L3_INLINE void put_group(uint32_t x, uint32_t y, uint32_t pixel) const {
    put_four_pixels(place_, x, y, colour_of(before_[2]), colour_of(before_[1]), colour_of(before_[0]), colour_of(pixel),
                    8);
  }

  const TilePlace& place_;
  GroupRange groups_;
  uint32_t before_[3] = {};
};

// Copies an image's tables to shared memory. All threads of the block call it.
L3_INLINE void load_tables(const DenseTables& from, uint32_t channels, CudaTables::Memory& to) {
  const uint32_t first = threadIdx.x, step = blockDim.x;
  for (uint32_t i = first; i < channels * kMaxClasses * 8; i += step) {
    const uint32_t c = i / (kMaxClasses * 8), k = i / 8 % kMaxClasses, word = i % 8;
    const bool is_there = word < kMaxTapWords && k < from.classes[c];
    reinterpret_cast<uint32_t*>(&to.weights[c][word / 4][k])[word % 4] = is_there ? from.weights[c][k][word] : 0;
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
        static_cast<uint16_t>(shared_address(&to.table_of[c][row * kRowBytes]) - 4 * 3 - kLevelOfOne);
  }
  for (uint32_t i = first; i < channels * kMaxRows * kLevels; i += step) {
    const uint32_t c = i / (kMaxRows * kLevels), place = i % (kMaxRows * kLevels);
    to.table_of[c][place / kLevels * kRowBytes + place % kLevels] = from.table_of[c][place];
  }
  for (uint32_t i = first; i < from.table_count * kTableBuckets; i += step) {
    to.buckets[i] = CudaWordWarp::packed(from.buckets[i], i % kTableBuckets);
  }
}

template <uint32_t kChannels, class Sink>
L3_INLINE Fault decode_to(const ModelTile& tile, const CudaTables& tables, Sink& sink, CudaWordWarp::Delay& delay,
                          uint8_t* of_blocks) {
  CudaWordWarp::Classes classes(of_blocks, kChannels, tile.shape);
  return DenseDecoder<CudaWordWarp, kChannels, Sink>(tile.shape, tile.entry, tables, sink, delay, classes).decode();
}

template <uint32_t kChannels>
L3_INLINE Fault decode_dense_tile(const ModelTile& tile, const TilePlace& place, const CudaTables& tables,
                                  CudaWordWarp::Delay& delay, uint8_t* of_blocks) {
  const bool whole = place.x0 == 0 && place.y0 == 0 && place.x1 == tile.shape.width && place.y1 == tile.shape.height;
  if (tile.state->out.in_order != 0 && tile.state->out.row_step <= UINT32_MAX && whole) {
    PixelWords<kChannels> sink(place.address(0, 0), tile.state->out.row_step);
    return decode_to<kChannels>(tile, tables, sink, delay, of_blocks);
  }
  AnyPixels<kChannels> sink(place);
  return decode_to<kChannels>(tile, tables, sink, delay, of_blocks);
}

struct DenseTiles {
  static constexpr TileKind kKind = kPackedTiles;
  static constexpr uint32_t kMaxWarps = 32;  // the registers of a multiprocessor allow this many
  static constexpr uint32_t kDelayBytes = 16;
  using Tables = DenseTables;
  using Memory = CudaTables::Memory;

  L3_INLINE static const Tables& tables_of(const ModelTables& model) { return model.dense; }
  L3_INLINE static void load(const Tables& tables, Memory& memory) { load_tables(tables, tables.channels, memory); }
  L3_INLINE static uint32_t memory_bytes(const Tables& tables) {
    return static_cast<uint32_t>(offsetof(Memory, buckets)) +
           tables.table_count * static_cast<uint32_t>(kTableBuckets * sizeof(Bucket));
  }
  L3_INLINE static TileScratch scratch_of(const TileShape& shape, const TileEntry& entry, const Tables&) {
    return TileScratch::of(shape, entry, kDelayBytes, CudaWordWarp::Classes::bytes_of_block(shape.channels));
  }
  L3_INLINE static Fault decode(const ModelTile& tile, const TilePlace& place, uint32_t memory, const Tables& model,
                                uint4* scratch) {
    const CudaTables tables{memory, model.classes, model.class_buckets, model.class_table_of};
    CudaWordWarp::Delay delay(scratch);
    uint8_t* const of_blocks =
        reinterpret_cast<uint8_t*>(scratch) + scratch_of(tile.shape, tile.entry, model).delay_bytes;
    switch (tile.shape.channels) {
      case 1: return decode_dense_tile<1>(tile, place, tables, delay, of_blocks);
      case 2: return decode_dense_tile<2>(tile, place, tables, delay, of_blocks);
      case 3: return decode_dense_tile<3>(tile, place, tables, delay, of_blocks);
      default: return decode_dense_tile<4>(tile, place, tables, delay, of_blocks);
    }
  }
};
static_assert(has_room_for_all<DenseTiles>(CudaWordWarp::Classes::bytes_of_block(kMaxChannels) *
                                           (kMaxTileEdge / kBlockEdge) * (kMaxTileEdge / kBlockEdge)));

__global__ void __launch_bounds__(DenseTiles::kMaxWarps* kLanes, 1) dense_kernel(const __grid_constant__ Batch batch) {
  extern __shared__ uint4 shared[];
  decode_chunks<DenseTiles>(batch, shared);
}

cudaError_t load_dense() { return load(dense_kernel); }

cudaError_t decode_dense_tiles(const Batch& batch, cudaStream_t stream) {
  return launch_chunks<DenseTiles>(dense_kernel, batch, stream);
}
cudaError_t shape_of_dense(int device, ChunkShape& shape) { return shape_of_chunks<DenseTiles>(device, shape); }

}  // namespace l3
