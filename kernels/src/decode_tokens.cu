// The kernels for tiles of token models without still rows, whose pixels do not follow others.
#include "token_tiles.cuh"

namespace l3 {

using NarrowTiles = TokenTiles<kTokenTiles>;
using WideTiles = TokenTiles<kWideTokenTiles>;
static_assert(has_room_for_all<NarrowTiles>(most_tile_bytes({2, false, false}, kMaxTileEdge)) &&
              has_room_for_all<WideTiles>(most_tile_bytes({4, false, false}, kMaxTileEdge)));

__global__ void __launch_bounds__(NarrowTiles::kMaxWarps* kLanes, 1)
    tokens_kernel(const __grid_constant__ Batch batch) {
  extern __shared__ uint4 shared[];
  decode_chunks<NarrowTiles>(batch, shared);
}
__global__ void __launch_bounds__(WideTiles::kMaxWarps* kLanes, 1)
    wide_tokens_kernel(const __grid_constant__ Batch batch) {
  extern __shared__ uint4 shared[];
  decode_chunks<WideTiles>(batch, shared);
}

cudaError_t load_tokens() {
  const cudaError_t error = load(tokens_kernel);
  return error != cudaSuccess ? error : load(wide_tokens_kernel);
}

cudaError_t decode_token_tiles(const Batch& batch, cudaStream_t stream) {
  return launch_chunks<NarrowTiles>(tokens_kernel, batch, stream);
}
cudaError_t decode_wide_token_tiles(const Batch& batch, cudaStream_t stream) {
  return launch_chunks<WideTiles>(wide_tokens_kernel, batch, stream);
}
cudaError_t shape_of_tokens(int device, ChunkShape& shape) { return shape_of_chunks<NarrowTiles>(device, shape); }
cudaError_t shape_of_wide_tokens(int device, ChunkShape& shape) { return shape_of_chunks<WideTiles>(device, shape); }

}  // namespace l3
