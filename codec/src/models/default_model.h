// A default model (section 16 of the spec), on processors and GPUs alike.
#pragma once

#include "container/format.h"

namespace l3 {

// `bytes` is aligned to a unit and followed by zeros up to the next multiple of the unit, like a section in a file.
struct DefaultModel {
  const uint8_t* bytes;
  uint32_t size;
  uint8_t name[kModelNameBytes];
};

}  // namespace l3
