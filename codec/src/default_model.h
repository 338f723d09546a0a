// A default model (section 16 of the spec), on processors and GPUs alike.
#pragma once

#include "format.h"

namespace l3 {

// The bytes begin at a multiple of the unit in memory, and zeros follow up to the next one.
struct DefaultModel {
  const uint8_t* bytes;
  uint32_t size;
  uint8_t name[kModelNameBytes];
};

}  // namespace l3
