#include "engine_body.h"
#include "targets/warp_portable.h"

namespace engine {

const Primitives kPortable = PrimitivesBody<l3::PortableWarp>::all();

}  // namespace engine
