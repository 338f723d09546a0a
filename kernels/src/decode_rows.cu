// The kernel for tiles of token models with still rows, whose pixels do not follow others.
#include "token_tiles.cuh"

namespace l3 {

using RowTiles = TokenTiles<kRowTiles>;
static_assert(has_room_for_all<RowTiles>(most_tile_bytes({2, true, false}, kMaxTileEdge), 16) &&
              has_room_for_all<RowTiles>(most_tile_bytes({4, true, false}, kMaxTileEdge)) &&
              has_room_for_all<RowTiles>(most_tile_bytes({4, true, false}, kMaxTileEdge / 4)));

__global__ void __launch_bounds__(RowTiles::kMaxWarps* kLanes, 1) rows_kernel(const __grid_constant__ Batch batch) {
  extern __shared__ uint4 shared[];
  decode_chunks<RowTiles>(batch, shared);
}

cudaError_t load_rows() { return load(rows_kernel); }

cudaError_t decode_row_tiles(const Batch& batch, cudaStream_t stream) {
  return launch_chunks<RowTiles>(rows_kernel, batch, stream);
}
cudaError_t shape_of_rows(int device, ChunkShape& shape) { return shape_of_chunks<RowTiles>(device, shape); }

}  // namespace l3
