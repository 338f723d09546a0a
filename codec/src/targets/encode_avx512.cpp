// The encoder's loops for the target "avx512". Compiled with AVX-512 and VBMI.
#include "targets/encode_target_body.h"
#include "targets/warp_avx512.h"

namespace l3 {

const EncodeTarget kAvx512EncodeTarget = EncodeTargetBody<Avx512Warp, ShortVectors<64>>::get();

}  // namespace l3
