// The CUDA decoder in a build that has kernels/.
#include "cuda_decoder.h"

#include <algorithm>

#include "l3/l3_cuda.hpp"

namespace tools {

CudaDecoder cuda_decoder(const l3_decode_options& options) {
  l3_error error{};
  if (l3_cuda_check_device(&error) != L3_OK) return {{}, std::string("no usable CUDA device: ") + error.reason};
  return {[options](const l3::File& file, const bridge::Region& region, std::span<uint8_t> out) {
            const auto pixels = l3::cuda::decode_region(file, region.x, region.y, region.width, region.height, options);
            if (!pixels) return pixels.error();
            std::copy(pixels->bytes.begin(), pixels->bytes.end(), out.begin());
            return l3_error{L3_OK, 0, L3_NO_TILE, "no error"};
          },
          {}};
}

}  // namespace tools
