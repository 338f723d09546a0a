// Compiled for AVX2.
#include "target_body.h"
#include "warp_avx2.h"

namespace l3 {

const Target kAvx2Target = TargetBody<Avx2Warp>::as("avx2");

}  // namespace l3
