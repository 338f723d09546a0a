// Decodes constant, raw and fast tiles of samples up to 8 bits.
#include "decode_fast.cuh"
#include "decode_others.cuh"

namespace l3 {

struct ByteTiles {
  static constexpr uint32_t kDepth = 0;
  static constexpr uint32_t kRoomBytes = sizeof(FastScratch<3>) + kLineStrips * kLanes;

  template <uint32_t kChannels>
  L3_INLINE static Fault decode_as(const TileShape& shape, const TileEntry& entry, const TilePlace& place,
                                   uint8_t* scratch) {
    if (entry.method == FastMethod::kNumber) {
      auto& room = *reinterpret_cast<FastScratch<kChannels>*>(scratch);
      return FourWideDecoder<kChannels>(shape, entry, place, room, reinterpret_cast<uint32_t*>(&room + 1)).decode();
    }
    const TileOutput part{nullptr, 0, place.x0, place.y0, place.x1, place.y1, nullptr, 0, nullptr};
    const DevicePixels<uint8_t, kChannels> pixels(place);
    CudaWarp::Line line{nullptr, kChannels};  // only fast tiles use it
    return decode_tile<CudaWarp, uint8_t, kChannels, FastMethod>(shape, entry, part, pixels, line);
  }
  L3_INLINE static Fault decode(const TileShape& shape, const TileEntry& entry, const TilePlace& place,
                                uint8_t* scratch) {
    switch (shape.channels) {
      case 1: return decode_as<1>(shape, entry, place, scratch);
      case 2: return decode_as<2>(shape, entry, place, scratch);
      case 3: return decode_as<3>(shape, entry, place, scratch);
      default: return decode_as<4>(shape, entry, place, scratch);
    }
  }
};
constexpr uint32_t kByteRooms = sizeof(FastTables) + kOtherWarps * ByteTiles::kRoomBytes;
static_assert(4 * (kByteRooms + 1024) <= 100 << 10, "32 warps have room in a multiprocessor with 100 KB");

// The largest number of blocks on a multiprocessor that needs no register spills.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
constexpr uint32_t kByteBlocks = 4;
#else
constexpr uint32_t kByteBlocks = 5;
#endif

__global__ void __launch_bounds__(kOtherWarps* kLanes, kByteBlocks) bytes_kernel(const __grid_constant__ Batch batch) {
  if (threadIdx.x < kLanes) fast_tables().fill(threadIdx.x);
  __syncthreads();
  decode_others<ByteTiles>(batch, reinterpret_cast<uint8_t*>(&fast_tables() + 1));
}

cudaError_t load_bytes() { return load(bytes_kernel); }

cudaError_t decode_byte_tiles(const Batch& batch, cudaStream_t stream) {
  return launch(bytes_kernel, batch.byte_blocks, kOtherWarps * kLanes, kByteRooms, stream, batch);
}
cudaError_t blocks_of_bytes(int device, uint32_t& blocks) {
  return resident_blocks(device, bytes_kernel, kOtherWarps * kLanes, kByteRooms, blocks);
}

}  // namespace l3
