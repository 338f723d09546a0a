// Finds the decoder's loops for the chosen target.
#include "targets/target.h"

#include "targets/cpu.h"

namespace l3 {
namespace {

// A target with other decoders for tiles that need a model.
[[maybe_unused]] constexpr Target with(Target target, DecodeWith<DenseKind> decode_dense,
                                       DecodeWith<TokenKind> decode_tokens, DecodeWith<BitKind> decode_bits) {
  target.decode_dense = decode_dense;
  target.decode_tokens = decode_tokens;
  target.decode_bits = decode_bits;
  return target;
}

}  // namespace

const Target* target() {
  switch (chosen_cpu()) {
#if L3_WITH_AVX512
    case Cpu::avx512: return &kAvx512Target;
#endif
#if L3_WITH_VNNI
    case Cpu::vnni: {
      static const Target vnni = with(kAvx2Target, decode_dense_avx512, decode_tokens_avx512, decode_bits_avx512);
      return &vnni;
    }
#endif
#if L3_WITH_AVX2
    case Cpu::avx2: return &kAvx2Target;
#endif
#if L3_WITH_NEON
    case Cpu::neon: {
      static const Target neon = with(kPortableTarget, decode_dense_neon, decode_tokens_neon, decode_bits_neon);
      return &neon;
    }
#endif
#if L3_WITH_SSE4
    case Cpu::sse4: {
      static const Target sse4 = with(kPortableTarget, decode_dense_sse4, decode_tokens_sse4, decode_bits_sse4);
      return &sse4;
    }
#endif
#if L3_WITH_PORTABLE
    case Cpu::portable: return &kPortableTarget;
#endif
    default: return nullptr;
  }
}

}  // namespace l3
