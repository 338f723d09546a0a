// The decoder of `--device cuda`.
#pragma once

#include <string>

#include "bridge/image_bridge.h"

namespace tools {

// A decoder, or the reason why there is none.
struct CudaDecoder {
  bridge::RegionDecoder decode;
  std::string problem;
};

// Looks for a device, which can take a second. `options` are those that files are opened with.
CudaDecoder cuda_decoder(const l3_decode_options& options);

}  // namespace tools
