// The encoder's loops for the target "avx2". Compiled with AVX2.
#include "targets/encode_target_body.h"
#include "targets/warp_avx2.h"

namespace l3 {

const EncodeTarget kAvx2EncodeTarget = EncodeTargetBody<Avx2Warp, ShortVectors<32>>::get();

}  // namespace l3
