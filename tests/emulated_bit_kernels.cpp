// The kernel that decodes tiles of bit models, on the emulated GPU.
#include "emulated_gpu.h"

// Behind the emulated GPU.
#include "../kernels/src/decode_bits.cu"
