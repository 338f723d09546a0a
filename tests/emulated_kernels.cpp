// The decoder of kernels/, host code and kernels alike, on the emulated GPU; the dense kernels, which take long to
// compile, are in files of their own.
#include "emulated_gpu.h"

// Behind the emulated GPU.
#include "../kernels/src/build_models.cu"
#include "../kernels/src/change_images.cu"
#include "../kernels/src/decode_batch.cpp"
#include "../kernels/src/decode_bytes.cu"
#include "../kernels/src/decode_words.cu"
#include "../kernels/src/list_tiles.cu"
#include "../kernels/src/open_images.cu"
#include "../kernels/src/stage_files.cu"
