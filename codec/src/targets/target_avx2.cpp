// The target compiled with AVX2.
#include "targets/target_body.h"
#include "targets/warp_avx2.h"

namespace l3 {

const Target kAvx2Target = TargetBody<Avx2Warp>::with(decode_dense_avx2, decode_tokens_avx2, decode_bits_avx2);

}  // namespace l3
