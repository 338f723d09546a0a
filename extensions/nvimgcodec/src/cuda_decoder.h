// Decodes L3 files on a GPU, with libl3_cuda.
#pragma once

#include <nvimgcodec.h>

#include "log.h"

namespace l3_nvimgcodec {

// The description to register. `log` must outlive it.
nvimgcodecDecoderDesc_t cuda_decoder_of(Log& log);

}  // namespace l3_nvimgcodec
