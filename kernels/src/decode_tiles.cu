// Tiles of many images, a warp for each, by the engine of codec/. Compiled, to keep engine and GPU from drifting apart;
// the batch decoder around it is not written yet.
#include "check.h"
#include "cuda_warp.cuh"
#include "tile_decode.h"

namespace l3 {

struct TileJob {
  TileShape shape;
  TileEntry entry;
  TileOutput out;
};

template <class Sample>
__device__ Fault decode_samples(const TileJob& job, CudaWarp::Line& line) {
  switch (job.shape.channels) {
    case 1: return decode_tile<CudaWarp, Sample, 1>(job.shape, job.entry, job.out, line);
    case 2: return decode_tile<CudaWarp, Sample, 2>(job.shape, job.entry, job.out, line);
    case 3: return decode_tile<CudaWarp, Sample, 3>(job.shape, job.entry, job.out, line);
    default: return decode_tile<CudaWarp, Sample, 4>(job.shape, job.entry, job.out, line);
  }
}

// `line_samples` u16 of shared memory for each warp: the tile's strips times kMaxChannels times 32.
__global__ void decode_tiles(const TileJob* jobs, uint32_t count, uint32_t line_samples, Fault* faults) {
  extern __shared__ uint16_t lines[];
  const uint32_t warp = threadIdx.x / kLanes;
  const uint32_t index = blockIdx.x * (blockDim.x / kLanes) + warp;
  if (index >= count) return;
  CudaWarp::Line line{lines + warp * line_samples};
  const TileJob& job = jobs[index];
  Fault fault;
  if (job.entry.method != Method::constant &&
      check_of<CudaWarp>(job.entry.payload, job.entry.payload_bytes / 4) != job.entry.check) {
    fault.reason = Reason::tile_check;
  } else {
    fault = job.shape.bits > 8 ? decode_samples<uint16_t>(job, line) : decode_samples<uint8_t>(job, line);
  }
  if (lane_number() == 0) faults[index] = fault;
}

}  // namespace l3
