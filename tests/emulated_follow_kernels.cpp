// The kernel that decodes token tiles whose pixels may follow others, on the emulated GPU.
#include "emulated_gpu.h"

// Behind the emulated GPU.
#include "../kernels/src/decode_follow.cu"
