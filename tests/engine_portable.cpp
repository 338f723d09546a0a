#include "engine_body.h"
#include "vector_warp.h"

namespace engine {

const Primitives kPortable = PrimitivesBody<l3::VectorWarp<16>>::all();

}  // namespace engine
