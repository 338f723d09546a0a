// Finds the decoder's loops for the chosen target.
#include "targets/target.h"

#include "targets/cpu.h"

namespace l3 {
namespace {

#if L3_WITH_VNNI
// The AVX2 target, except that dense tiles are decoded with AVX-512.
const Target& vnni_target() {
  static const Target combined = [] {
    Target target = kAvx2Target;
    target.decode_dense = decode_dense_avx512;
    target.decode_tokens = decode_tokens_avx512;
    return target;
  }();
  return combined;
}
#endif

}  // namespace

const Target* target() {
  switch (chosen_cpu()) {
#if L3_WITH_AVX512
    case Cpu::avx512: return &kAvx512Target;
#endif
#if L3_WITH_VNNI
    case Cpu::vnni: return &vnni_target();
#endif
#if L3_WITH_AVX2
    case Cpu::avx2: return &kAvx2Target;
#endif
#if L3_WITH_PORTABLE
    case Cpu::portable: return &kPortableTarget;
#endif
    default: return nullptr;
  }
}

}  // namespace l3
