// Keeps a device busy for a given time without any effect.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

cudaError_t spin(uint64_t microseconds, cudaStream_t stream);
