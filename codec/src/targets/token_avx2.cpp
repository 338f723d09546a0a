// Decodes tiles of token models and of bit models. Compiled with AVX2.
#include "engine/bit_loop.h"
#include "engine/token_body.h"
#include "targets/target.h"
#include "targets/token_warp_avx2.h"

namespace l3 {
namespace {

struct Avx2TokenWarp : Avx2TokenWarpOf<Avx2TokenWarp> {};
struct Avx2ExtractWarp : Avx2TokenWarpOf<Avx2ExtractWarp> {
  L3_INLINE static uint64_t extract(uint64_t word, uint64_t bits) { return _pext_u64(word, bits); }
};

}  // namespace

Fault decode_tokens_avx2(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                         const TokenTables& model) {
  return decode_tokens<Avx2TokenWarp>(shape, entry, out, model);
}

Fault decode_bits_avx2(const TileShape& shape, const TileEntry& entry, const TileOutput& out, const BitTables& model) {
  // Before Zen 3, AMD's processors take up to a hundred times as long to extract bits.
  static const bool is_quick = !__builtin_cpu_is("amdfam15h") && !__builtin_cpu_is("amdfam17h");
  return is_quick ? decode_bits<Avx2ExtractWarp>(shape, entry, out, model)
                  : decode_bits<Avx2TokenWarp>(shape, entry, out, model);
}

}  // namespace l3
