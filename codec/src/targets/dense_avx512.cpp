// Decodes dense tiles with the registers of AVX2 and the instructions of AVX-512. Compiled for Cascade Lake and later.
#include "engine/dense_body.h"
#include "targets/dense_warp_avx2.h"
#include "targets/target.h"
#include "targets/word_warp_avx512.h"

namespace l3 {
namespace {

struct Avx512DenseWarp : Avx2DenseWarpOf<Avx512DenseWarp> {
  L3_INLINE static void refill(Lanes& state, Mask mask, const uint8_t* payload, uint32_t& at) {
    refill_by_expanding(state, mask, payload, at);
  }
};

}  // namespace

Fault decode_dense_avx512(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                          const DenseTables& model) {
  return decode_dense<Avx512DenseWarp>(shape, entry, out, model);
}

}  // namespace l3
