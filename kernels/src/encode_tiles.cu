// The stages plan, tiles and words of an encoding call.
#include "encode_tile.cuh"
#include "launch.h"

namespace l3 {

// The inclusive running sum over the lanes.
L3_INLINE uint64_t long_running_sum(uint64_t v) {
  for (uint32_t step = 1; step < kLanes; step *= 2) {
    const uint64_t below = __shfl_up_sync(kAllLanes, v, step);
    if (lane_number() >= step) v += below;
  }
  return v;
}

L3_INLINE Reason plan_source(const l3_cuda_source& image, SourceState& state) {
  const Reason reason = plan_head(image, state.head);
  if (reason != Reason::none) return reason;
  if (image.pixels == nullptr || image.out == nullptr) return Reason::null_argument;
  if (reinterpret_cast<uint64_t>(image.out) % kUnit != 0) return Reason::unaligned_file;
  const bool planes = image.layout == L3_CUDA_CHW;
  const uint32_t sample = image.bits > 8 ? 2 : 1;
  state.pixel_step = planes ? sample : uint64_t{sample} * image.channels;
  const uint64_t row = state.pixel_step * image.width;
  state.row_step = image.row_stride != 0 ? image.row_stride : row;
  state.channel_step = !planes ? sample : image.plane_stride != 0 ? image.plane_stride : state.row_step * image.height;
  const uint64_t places = reinterpret_cast<uint64_t>(image.pixels) | state.row_step | state.channel_step;
  if (state.row_step < row || places % sample != 0) return Reason::bad_stride;
  state.pixels = static_cast<const uint8_t*>(image.pixels);
  state.out = static_cast<uint8_t*>(image.out);
  state.out_size = image.out_size;
  return Reason::none;
}

// A lane for each image.
__global__ void __launch_bounds__(kLanes) plan_kernel(const __grid_constant__ Encoding encoding) {
  uint64_t tiles[2] = {}, room = 0;  // of the images before
  uint64_t encoded[2] = {};          // tiles of the lane's images that are encoded
  for (uint32_t first = 0; first < encoding.count; first += kLanes) {
    const uint32_t i = first + lane_number();
    const bool is_there = i < encoding.count;
    SourceState state{};
    bool is_empty = true;
    if (is_there) {
      const l3_cuda_source& image = encoding.images[i];
      is_empty = image.pixels == nullptr && image.out == nullptr;
      if (!is_empty) state.reason = plan_source(image, state);
    }
    const bool is_sound = !is_empty && state.reason == Reason::none;
    uint64_t before = 0;
#pragma unroll
    for (uint32_t depth = 0; depth < 2; ++depth) {
      const uint64_t own = is_sound && (state.head.bits > 8) == (depth != 0) ? state.head.tile_count : 0;
      const uint64_t sum = tiles[depth] + long_running_sum(own);
      if (is_there) encoding.tiles_before[depth][i] = sum - own;
      before += sum - own;
      tiles[depth] = __shfl_sync(kAllLanes, sum, kLanes - 1);
    }
    const uint64_t own = is_sound ? state.head.room() : 0, sum = room + long_running_sum(own);
    room = __shfl_sync(kAllLanes, sum, kLanes - 1);
    state.first_entry = before;
    state.room_at = sum - own;
    // Later images need at least as much, so that the images that are encoded come before those that are not.
    if (is_sound && before + state.head.tile_count > encoding.tile_capacity) state.reason = Reason::over_tile_capacity;
    if (is_sound && sum > encoding.room_capacity) state.reason = Reason::over_payload_capacity;
    if (is_empty) state.head.tile_count = 0;
    if (is_there) encoding.states[i] = state;
    const uint64_t count = is_sound && state.reason == Reason::none ? state.head.tile_count : 0;
    encoded[0] += state.head.bits > 8 ? 0 : count;
    encoded[1] += state.head.bits > 8 ? count : 0;
  }
#pragma unroll
  for (uint32_t depth = 0; depth < 2; ++depth) {
    const uint64_t sum = long_running_sum(encoded[depth]);
    if (lane_number() == kLanes - 1) encoding.control->tiles[depth] = sum;
  }
}

constexpr uint32_t kEncodeWarps = 8;  // of a block
constexpr uint32_t kEncodeRooms = kEncodeWarps * sizeof(TileEncodeRoom);

template <class Sample>
L3_INLINE void encode_tiles(const Encoding& encoding, TileEncodeRoom* rooms) {
  constexpr uint32_t kDepth = sizeof(Sample) - 1;
  TileEncodeRoom& room = rooms[__shfl_sync(kAllLanes, threadIdx.x / kLanes, 0)];
  const uint64_t* const before = encoding.tiles_before[kDepth];
  const uint64_t count = encoding.control->tiles[kDepth];
  for (;;) {
    unsigned long long next = 0;
    if (lane_number() == 0) next = atomicAdd(&encoding.control->next_tile[kDepth], 1ull);
    next = __shfl_sync(kAllLanes, next, 0);
    if (next >= count) break;
    const uint32_t image = image_of(encoding.count, next, [&](uint32_t i) { return before[i]; });
    SourceState& state = encoding.states[image];
    const uint32_t tile = static_cast<uint32_t>(next - before[image]);
    IndexEntry entry;
    WarpTileEncoder<Sample> encoder(state, tile, room,
                                    encoding.payloads + state.room_at + state.head.room_before(tile));
    const bool in_range = encoder.encode(entry);
    if (lane_number() == 0) {
      encoding.entries[state.first_entry + tile] = entry;
      if (!in_range) state.is_out_of_range = 1;
    }
    __syncwarp();
  }
}

__global__ void __launch_bounds__(kEncodeWarps* kLanes, 3) tiles_kernel(const __grid_constant__ Encoding encoding) {
  extern __shared__ uint4 shared[];
  encode_tiles<uint8_t>(encoding, reinterpret_cast<TileEncodeRoom*>(shared));
}
__global__ void __launch_bounds__(kEncodeWarps* kLanes, 3)
    word_tiles_kernel(const __grid_constant__ Encoding encoding) {
  extern __shared__ uint4 shared[];
  encode_tiles<uint16_t>(encoding, reinterpret_cast<TileEncodeRoom*>(shared));
}

cudaError_t plan_files(const Encoding& encoding, cudaStream_t stream) {
  return launch(plan_kernel, 1, kLanes, 0, stream, encoding);
}
cudaError_t encode_byte_tiles(const Encoding& encoding, cudaStream_t stream) {
  return launch(tiles_kernel, encoding.byte_blocks, kEncodeWarps * kLanes, kEncodeRooms, stream, encoding);
}
cudaError_t encode_word_tiles(const Encoding& encoding, cudaStream_t stream) {
  return launch(word_tiles_kernel, encoding.word_blocks, kEncodeWarps * kLanes, kEncodeRooms, stream, encoding);
}
cudaError_t load_tile_encoders() {
  cudaError_t error = load(plan_kernel);
  if (error == cudaSuccess) error = load(tiles_kernel);
  return error != cudaSuccess ? error : load(word_tiles_kernel);
}
cudaError_t blocks_of_tile_encoders(int device, uint32_t& bytes, uint32_t& words) {
  const cudaError_t error = resident_blocks(device, tiles_kernel, kEncodeWarps * kLanes, kEncodeRooms, bytes);
  if (error != cudaSuccess) return error;
  return resident_blocks(device, word_tiles_kernel, kEncodeWarps * kLanes, kEncodeRooms, words);
}

}  // namespace l3
