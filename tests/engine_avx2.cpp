// Compiled for AVX2.
#include "engine_body.h"
#include "targets/warp_avx2.h"

namespace engine {

const Primitives kAvx2 = PrimitivesBody<l3::Avx2Warp>::all();

}  // namespace engine
