// Compiled for AVX2.
#include "target_body.h"
#include "warp_avx2.h"
#include "word_warp_avx2.h"

namespace l3 {

const Target kAvx2Target = TargetBody<Avx2Warp, Avx2WordWarp, ShortVectors<32>>::as("avx2");

}  // namespace l3
