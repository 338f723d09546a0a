// The target compiled with AVX2.
#include "engine/dense_body.h"
#include "targets/target_body.h"
#include "targets/warp_avx2.h"
#include "targets/word_warp_avx2.h"

namespace l3 {

const Target kAvx2Target = TargetBody<Avx2Warp>::with(decode_dense<Avx2WordWarp>, decode_tokens_avx2);

}  // namespace l3
