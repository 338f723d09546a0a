// The encoder of kernels/, host code and kernels alike.
#include "emulated_gpu.h"

// Behind the emulated GPU.
#include "../kernels/src/encode_batch.cpp"
#include "../kernels/src/encode_files.cu"
#include "../kernels/src/encode_tiles.cu"
