// Compiled for AVX-512 as of Ice Lake and Zen 4.
#include "dense_avx512.h"
#include "target_body.h"
#include "warp_avx512.h"

namespace l3 {

const Target kAvx512Target =
    TargetBody<Avx512Warp, ShortVectors<64>>::as("avx512", decode_dense_avx512, decode_tokens_avx512);

}  // namespace l3
