// Finds the encoder's loops for the chosen target. The target vnni uses those of AVX2, and neon and sse4 the portable
// ones.
#include "targets/encode_target.h"

#include "targets/cpu.h"

namespace l3 {

const EncodeTarget* encode_target() {
  switch (chosen_cpu()) {
#if L3_WITH_AVX512
    case Cpu::avx512: return &kAvx512EncodeTarget;
#endif
#if L3_WITH_VNNI
    case Cpu::vnni: return &kAvx2EncodeTarget;
#endif
#if L3_WITH_AVX2
    case Cpu::avx2: return &kAvx2EncodeTarget;
#endif
#if L3_WITH_NEON
    case Cpu::neon: return &kPortableEncodeTarget;
#endif
#if L3_WITH_SSE4
    case Cpu::sse4: return &kPortableEncodeTarget;
#endif
#if L3_WITH_PORTABLE
    case Cpu::portable: return &kPortableEncodeTarget;
#endif
    default: return nullptr;
  }
}

}  // namespace l3
