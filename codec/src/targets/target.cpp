// Chooses the decoder's loops.
#include "targets/target.h"

#include "targets/choose.h"
#include "targets/dense_avx512.h"

namespace l3 {
namespace {

struct Choices {
  static const Target* portable() { return &kPortableTarget; }
  static const Target* avx2() { return &kAvx2Target; }
  // The AVX2 target, except that dense tiles are decoded with AVX-512.
  static const Target* vnni() {
    static const Target combined = [] {
      Target target = kAvx2Target;
      target.name = "vnni";
      target.decode_dense = decode_dense_avx512;
      target.decode_tokens = decode_tokens_avx512;
      return target;
    }();
    return &combined;
  }
  static const Target* avx512() { return &kAvx512Target; }
};

}  // namespace

const Target* target() { return choose<Choices>(); }

}  // namespace l3
