// What `--device cuda` decodes with.
#pragma once

#include <string>

#include "bridge/image_bridge.h"

namespace tools {

// A decoder, or why there is none.
struct CudaDecoder {
  bridge::RegionDecoder decode;
  std::string problem;
};

// Asks for a device: may take a second.
CudaDecoder cuda_decoder();

}  // namespace tools
