// Decodes dense tiles with AVX-512. Compiled for Cascade Lake and later.
#include "engine/dense_body.h"
#include "targets/dense_warp_avx512.h"
#include "targets/target.h"

namespace l3 {
namespace {

struct Avx512DenseWarp : Avx512DenseWarpOf<Avx512DenseWarp> {};

// Zen 3 and 4. The latter has AVX-512, but takes 512 bits in two halves: the loop of AVX2 is quicker there.
bool halves_vectors() {
  static const bool halves = __builtin_cpu_is("amdfam19h") != 0;
  return halves;
}

}  // namespace

Fault decode_dense_avx512(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                          const DenseTables& model) {
  const bool is_small =
      dense_lanes(entry.parameters) <= Avx512DenseWarp::kPartLanes || shape.width * shape.height <= kSmallTile;
  return is_small || halves_vectors() ? decode_dense_avx2(shape, entry, out, model)
                                      : decode_dense<Avx512DenseWarp>(shape, entry, out, model);
}

}  // namespace l3
