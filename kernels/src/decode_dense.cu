// Tiles of the dense method, a warp for each, by the engine of codec/. The tables of an image lie in shared memory, for
// all warps of a block. The batch decoder around it is not written yet.
#include "cuda_word_warp.cuh"
#include "dense_decode.h"

namespace l3 {

constexpr uint32_t kDenseWarps = 16;  // of a block
constexpr uint32_t kDenseBlocks = 2;  // of a multiprocessor, by registers

// A tile of an image, whose entry was verified.
struct DenseJob {
  TileShape shape;
  TileEntry entry;  // the payload lies at a multiple of 4
  uint8_t* pixels;
  size_t stride;
};

// What a block needs of shared memory behind the tables: for each warp a delay line and the classes of the blocks.
struct DenseRoom {
  uint32_t delay_entries;  // dense_delay() of the tile that needs most
  uint32_t class_words;    // the most blocks that a tile has, rounded up to 4
};

// Writes pixels as they come: four of a lane at a time, in words, where their place allows it.
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

// All threads of a block bring an image's tables to shared memory.
L3_INLINE void load_tables(const DenseTables& from, uint32_t channels, CudaTables::Memory& to) {
  const uint32_t first = threadIdx.x, step = blockDim.x;
  for (uint32_t i = first; i < channels * kMaxClasses * 8; i += step) {
    const uint32_t c = i / (kMaxClasses * 8), k = i / 8 % kMaxClasses, word = i % 8;
    reinterpret_cast<uint32_t*>(&to.weights[c][k])[word] = word < kMaxTapWords ? from.weights[c][k][word] : 0;
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

// `count` tiles of an image.
template <uint32_t kChannels>
__global__ void __launch_bounds__(kDenseWarps* kLanes, kDenseBlocks)
    decode_dense(const DenseTables* tables, const DenseJob* jobs, uint32_t count, DenseRoom room, Fault* faults) {
  extern __shared__ uint4 shared[];
  load_tables(*tables, kChannels, *reinterpret_cast<CudaTables::Memory*>(shared));
  __syncthreads();
  const CudaTables own_tables{from_here_on(shared_address(shared)), tables->classes, tables->class_buckets,
                              tables->class_table_of};
  // From lane 0, so that the compiler sees that it is the same in all of them.
  const uint32_t warp = __shfl_sync(kAllLanes, threadIdx.x / kLanes, 0);
  const uint32_t index = blockIdx.x * (blockDim.x / kLanes) + warp;
  if (index >= count) return;
  uint4* delays = shared + sizeof(CudaTables::Memory) / sizeof(uint4);
  uint32_t* classes = reinterpret_cast<uint32_t*>(delays + blockDim.x / kLanes * room.delay_entries);
  CudaWordWarp::Delay delay(delays + warp * room.delay_entries);
  CudaWordWarp::Classes of_blocks(classes + warp * room.class_words);
  const DenseJob& job = jobs[index];
  PixelWords<kChannels> out(job.pixels, job.stride);
  const Fault fault = DenseDecoder<CudaWordWarp, kChannels, PixelWords<kChannels>>(job.shape, job.entry, own_tables,
                                                                                   out, delay, of_blocks)
                          .decode();
  if (lane_number() == 0) faults[index] = fault;
}

template __global__ void decode_dense<1>(const DenseTables*, const DenseJob*, uint32_t, DenseRoom, Fault*);
template __global__ void decode_dense<2>(const DenseTables*, const DenseJob*, uint32_t, DenseRoom, Fault*);
template __global__ void decode_dense<3>(const DenseTables*, const DenseJob*, uint32_t, DenseRoom, Fault*);
template __global__ void decode_dense<4>(const DenseTables*, const DenseJob*, uint32_t, DenseRoom, Fault*);

}  // namespace l3
