// A build without kernels/ has no GPU.
#include "bench/gpu.h"

namespace bench {

std::unique_ptr<Gpu> find_gpu() { return nullptr; }

}  // namespace bench
