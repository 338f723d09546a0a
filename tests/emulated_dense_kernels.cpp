// The kernels that decode dense tiles of weighted predictions, on the emulated GPU.
#include "emulated_gpu.h"

// Behind the emulated GPU.
#include "../kernels/src/decode_dense.cu"
