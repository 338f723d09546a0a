// The stages sizes and files of an encoding call.
#include "container/check.h"
#include "container/sha256_block.h"
#include "cuda_warp.cuh"
#include "encode.h"
#include "launch.h"

namespace l3 {

constexpr uint32_t kFileWarps = 8;  // of a block

// Gives each payload its place in the file. Returns the size of the file.
L3_INLINE uint64_t place_tiles(const SourceState& state, IndexEntry* entries) {
  uint64_t units = state.head.payload_start / kUnit;
  for (uint64_t first = 0; first < state.head.tile_count; first += kLanes) {
    const uint64_t tile = first + lane_number();
    uint32_t own = 0;
    if (tile < state.head.tile_count) own = entries[tile].head >> 16;  // 0 if the tile is constant
    const uint32_t sum = running_sum(own);
    if (own != 0) entries[tile].offset = static_cast<uint32_t>(units + sum - own);
    units += __shfl_sync(kAllLanes, sum, kLanes - 1);
  }
  return units * kUnit;
}

__global__ void __launch_bounds__(kFileWarps* kLanes) sizes_kernel(const __grid_constant__ Encoding encoding) {
  const uint32_t image = blockIdx.x * kFileWarps + threadIdx.x / kLanes;
  if (image >= encoding.count) return;
  SourceState& state = encoding.states[image];
  Reason reason = state.reason;
  uint64_t size = 0;
  if (reason == Reason::none && state.is_out_of_range != 0) reason = Reason::sample_out_of_range;
  if (reason == Reason::none && state.head.tile_count != 0) {
    size = place_tiles(state, encoding.entries + state.first_entry);
    if (size > state.out_size) reason = Reason::buffer_too_small;
    if (size > kMaxFileBytes) reason = Reason::file_too_large;
  }
  __syncwarp();  // all lanes have read the state
  if (lane_number() != 0) return;
  state.reason = reason;
  if (reason == Reason::file_too_large) size = 0;
  encoding.results[image] = {{static_cast<uint32_t>(status_of(reason)), static_cast<uint32_t>(reason), 0, L3_NO_TILE},
                             size};
}

L3_INLINE void write_digest(const uint8_t* file, uint64_t bytes, uint8_t* digest) {
  const uint64_t words = bytes / 4, blocks = (bytes + 9 + 63) / 64;
  uint32_t state[kSha256Words];
  start_sha256(state);
  for (uint64_t block = 0; block < blocks; ++block) {
    const uint64_t word = 16 * block + lane_number() % 16;
    uint32_t own = word == words ? 0x80000000u : 0;
    if (word < words) own = __byte_perm(*reinterpret_cast<const uint32_t*>(file + 4 * word), 0, 0x0123);
    if (word == 16 * blocks - 2) own = static_cast<uint32_t>(bytes >> 29);
    if (word == 16 * blocks - 1) own = static_cast<uint32_t>(bytes << 3);
    uint32_t all[64];
#pragma unroll
    for (uint32_t i = 0; i < 16; ++i) all[i] = __shfl_sync(kAllLanes, own, i);
    add_sha256_block(state, all);
  }
  if (lane_number() != 0) return;
#pragma unroll
  for (uint32_t i = 0; i < header::kDigestBytes / 4; ++i) {
    store_global(digest + 4 * i, __byte_perm(state[i], 0, 0x0123));
  }
}

L3_INLINE void write_head(const SourceState& state, const IndexEntry* entries) {
  const Head& head = state.head;
  uint8_t* const out = state.out;
  const uint32_t lane = lane_number();
  if (lane == 0) write_header_fields(head, out);
  const uint32_t* const index = reinterpret_cast<const uint32_t*>(entries);
  const uint64_t words = head.tile_count * (kIndexEntryBytes / 4), padded = (head.index_end - head.head_bytes) / 4;
  for (uint64_t i = lane; i < padded; i += kLanes)
    store_global(out + head.head_bytes + 4 * i, i < words ? index[i] : 0);
  __syncwarp();
  const uint32_t index_check = check_of<CudaWarp>(out + head.head_bytes, padded);
  if (lane == 0) store_global(out + header::kIndexCheck, index_check);
  __syncwarp();
  write_digest(out, head.payload_start, out + header::kDigest);
  __syncwarp();
  const uint32_t head_check = check_of<CudaWarp>(out, head.head_bytes / 4);
  if (lane == 0) store_global(out + header::kHeadCheck, head_check);
}

L3_INLINE void copy_units(const uint8_t* from, uint8_t* to, uint32_t units) {
#pragma unroll 4
  for (uint32_t i = lane_number(); i < units; i += kLanes) {
    store_global_four(to + kUnit * i, load_global_four(from + kUnit * i));
  }
}

L3_INLINE uint64_t next_job(unsigned long long* counter) {
  unsigned long long next = 0;
  if (lane_number() == 0) next = atomicAdd(counter, 1ull);
  return __shfl_sync(kAllLanes, next, 0);
}

__global__ void __launch_bounds__(kFileWarps* kLanes) files_kernel(const __grid_constant__ Encoding encoding) {
  EncodeControl& control = *encoding.control;
  // Heads first: the digest of one takes longest.
  for (uint64_t image; (image = next_job(&control.next_file)) < encoding.count;) {
    const SourceState& state = encoding.states[image];
    if (state.reason != Reason::none || state.head.tile_count == 0) continue;
    write_head(state, encoding.entries + state.first_entry);
  }
  const auto before = [&](uint32_t i) { return encoding.tiles_before[0][i] + encoding.tiles_before[1][i]; };
  const uint64_t tiles = control.tiles[0] + control.tiles[1];
  for (uint64_t entry; (entry = next_job(&control.next_copy)) < tiles;) {
    const SourceState& state = encoding.states[image_of(encoding.count, entry, before)];
    const IndexEntry tile = encoding.entries[entry];
    if (state.reason != Reason::none) continue;
    copy_units(encoding.payloads + state.room_at + state.head.room_before(entry - state.first_entry),
               state.out + uint64_t{tile.offset} * kUnit, tile.head >> 16);
  }
}

cudaError_t place_payloads(const Encoding& encoding, cudaStream_t stream) {
  return launch(sizes_kernel, ceil_div(encoding.count, kFileWarps), kFileWarps * kLanes, 0, stream, encoding);
}
cudaError_t write_files(const Encoding& encoding, cudaStream_t stream) {
  return launch(files_kernel, encoding.file_blocks, kFileWarps * kLanes, 0, stream, encoding);
}
cudaError_t load_file_writers() {
  const cudaError_t error = load(sizes_kernel);
  return error != cudaSuccess ? error : load(files_kernel);
}
cudaError_t blocks_of_file_writers(int device, uint32_t& blocks) {
  return resident_blocks(device, files_kernel, kFileWarps * kLanes, 0, blocks);
}

}  // namespace l3
