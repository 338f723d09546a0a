// The kernel that decodes token tiles with still rows, on the emulated GPU.
#include "emulated_gpu.h"

// Behind the emulated GPU.
#include "../kernels/src/decode_rows.cu"
