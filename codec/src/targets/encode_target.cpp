// Chooses the encoder's loops. The target vnni uses those of AVX2.
#include "targets/encode_target.h"

#include "targets/choose.h"

namespace l3 {
namespace {

struct Choices {
  static const EncodeTarget* portable() { return &kPortableEncodeTarget; }
  static const EncodeTarget* avx2() { return &kAvx2EncodeTarget; }
  static const EncodeTarget* vnni() { return &kAvx2EncodeTarget; }
  static const EncodeTarget* avx512() { return &kAvx512EncodeTarget; }
};

}  // namespace

const EncodeTarget* encode_target() { return choose<Choices>(); }

}  // namespace l3
