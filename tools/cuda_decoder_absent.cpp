// The CUDA decoder in a build without kernels/.
#include "cuda_decoder.h"

namespace tools {

CudaDecoder cuda_decoder(const l3_decode_options&) { return {{}, "this l3 was built without CUDA"}; }

}  // namespace tools
