// Recognises L3 files and says what they contain.
#pragma once

#include <nvimgcodec.h>

#include "log.h"

namespace l3_nvimgcodec {

// The description to register. `log` must outlive it.
nvimgcodecParserDesc_t parser_of(Log& log);

}  // namespace l3_nvimgcodec
