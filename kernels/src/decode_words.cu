// Decodes constant, raw and fast tiles of samples above 8 bits, with the engine of codec/.
#include "decode_others.cuh"

namespace l3 {

struct WordTiles {
  static constexpr uint32_t kDepth = 1;
  static constexpr uint32_t kRoomBytes = kLineStrips * kLanes * 2;

  template <uint32_t kChannels>
  L3_INLINE static Fault decode_as(const TileShape& shape, const TileEntry& entry, const TilePlace& place,
                                   uint8_t* scratch) {
    const TileOutput part{nullptr, 0, place.x0, place.y0, place.x1, place.y1, nullptr, 0, nullptr};
    const DevicePixels<uint16_t, kChannels> pixels(place);
    CudaWarp::Line line{reinterpret_cast<uint16_t*>(scratch), kChannels};
    return decode_tile<CudaWarp, uint16_t, kChannels>(shape, entry, part, pixels, line);
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
constexpr uint32_t kWordRooms = kOtherWarps * WordTiles::kRoomBytes;

__global__ void __launch_bounds__(kOtherWarps* kLanes, 2) words_kernel(const __grid_constant__ Batch batch) {
  extern __shared__ uint4 shared[];
  decode_others<WordTiles>(batch, reinterpret_cast<uint8_t*>(shared));
}

cudaError_t load_words() { return load(words_kernel); }

cudaError_t decode_word_tiles(const Batch& batch, cudaStream_t stream) {
  return launch(words_kernel, batch.word_blocks, kOtherWarps * kLanes, kWordRooms, stream, batch);
}
cudaError_t blocks_of_words(int device, uint32_t& blocks) {
  return resident_blocks(device, words_kernel, kOtherWarps * kLanes, kWordRooms, blocks);
}

}  // namespace l3
