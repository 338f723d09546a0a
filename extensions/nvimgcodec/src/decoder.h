// Decodes L3 files on the CPU.
#pragma once

#include <nvimgcodec.h>

#include "log.h"

namespace l3_nvimgcodec {

// The description to register. `log` must outlive it.
nvimgcodecDecoderDesc_t decoder_of(Log& log);

}  // namespace l3_nvimgcodec
