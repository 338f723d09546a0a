// Compiled for AVX-512.
#include "engine_body.h"
#include "targets/warp_avx512.h"

namespace engine {

const Primitives kAvx512 = PrimitivesBody<l3::Avx512Warp>::all();

}  // namespace engine
