// The kernel for tiles of token models whose pixels may follow others.
#include "token_tiles.cuh"

namespace l3 {

using FollowTiles = TokenTiles<kFollowTiles>;
static_assert(has_room_for_all<FollowTiles>(most_tile_bytes({2, true, true}, kMaxTileEdge), 16) &&
              has_room_for_all<FollowTiles>(most_tile_bytes({4, true, true}, kMaxTileEdge)) &&
              has_room_for_all<FollowTiles>(most_tile_bytes({4, true, true}, kMaxTileEdge / 4)));

__global__ void __launch_bounds__(FollowTiles::kMaxWarps* kLanes, 1)
    follow_kernel(const __grid_constant__ Batch batch) {
  extern __shared__ uint4 shared[];
  decode_chunks<FollowTiles>(batch, shared);
}

cudaError_t load_follow() { return load(follow_kernel); }

// Without room in the workspace, no image has such tiles.
cudaError_t decode_follow_tiles(const Batch& batch, cudaStream_t stream) {
  return batch.follow_capacity == 0 ? cudaSuccess : launch_chunks<FollowTiles>(follow_kernel, batch, stream);
}
cudaError_t shape_of_follow(int device, ChunkShape& shape) { return shape_of_chunks<FollowTiles>(device, shape); }

}  // namespace l3
