// Work for a device that takes a given time and does nothing.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

cudaError_t spin(uint64_t microseconds, cudaStream_t stream);
