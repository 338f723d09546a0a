// Stands in for the header of CUDA, of which nvimgcodec.h uses only this type. So the extension builds without CUDA.
#pragma once

#include <stddef.h>  // nvimgcodec.h needs it, too

typedef struct CUstream_st* cudaStream_t;
