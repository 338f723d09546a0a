// Compiled for AVX-512 as of Ice Lake and Zen 4.
#include "target_body.h"
#include "warp_avx512.h"
#include "word_warp_avx512.h"

namespace l3 {

const Target kAvx512Target = TargetBody<Avx512Warp, Avx512WordWarp, ShortVectors<64>>::as("avx512");

}  // namespace l3
