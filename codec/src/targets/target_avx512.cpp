// The target compiled with AVX-512 and VBMI (Ice Lake, Zen 4 and later).
#include "targets/target_body.h"
#include "targets/warp_avx512.h"

namespace l3 {

const Target kAvx512Target =
    TargetBody<Avx512Warp>::with(decode_dense_avx512, decode_tokens_avx512, decode_bits_avx512);

}  // namespace l3
