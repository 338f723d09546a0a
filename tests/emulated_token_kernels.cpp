// The kernels that decode dense tiles of tokens, on the emulated GPU.
#include "emulated_gpu.h"

// Behind the emulated GPU.
#include "../kernels/src/decode_tokens.cu"
