// The encoder's loops for the target "portable". Compiled without processor-specific options.
#include "targets/encode_target_body.h"
#include "targets/warp_portable.h"

namespace l3 {

const EncodeTarget kPortableEncodeTarget = EncodeTargetBody<PortableWarp, ShortVectors<16>>::get();

}  // namespace l3
