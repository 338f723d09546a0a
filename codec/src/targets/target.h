// The decoder's inner loops, compiled once for each processor target. The target is chosen at run time. The encoder's
// loops are apart, in encode_target.h, so that programs that only decode do not link them.
#pragma once

#include "container/tile.h"
#include "models/model_tables.h"

namespace l3 {

template <class Kind>
using DecodeWith = Fault (*)(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                             const typename Kind::Tables& model);

struct Target {
  // The check of `words` u32.
  uint32_t (*check)(const uint8_t* bytes, uint64_t words);
  // Decode a tile whose payload matches its check: a tile of a method without a model, and tiles with each kind of
  // model.
  Fault (*decode)(const TileShape& shape, const TileEntry& entry, const TileOutput& out);
  DecodeWith<DenseKind> decode_dense;
  DecodeWith<TokenKind> decode_tokens;
  DecodeWith<BitKind> decode_bits;

  DecodeWith<DenseKind> decoder(DenseKind) const { return decode_dense; }
  DecodeWith<TokenKind> decoder(TokenKind) const { return decode_tokens; }
  DecodeWith<BitKind> decoder(BitKind) const { return decode_bits; }
};

// The decoders of tiles that need a model: for NEON, for SSE4.2, for AVX2, and for AVX-512 with VNNI (Cascade Lake and
// later).
Fault decode_dense_neon(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                        const DenseTables& model);
Fault decode_dense_sse4(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                        const DenseTables& model);
Fault decode_dense_avx2(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                        const DenseTables& model);
Fault decode_dense_avx512(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                          const DenseTables& model);
Fault decode_tokens_portable(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                             const TokenTables& model);
Fault decode_tokens_neon(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                         const TokenTables& model);
Fault decode_tokens_sse4(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                         const TokenTables& model);
Fault decode_tokens_avx2(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                         const TokenTables& model);
Fault decode_tokens_avx512(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                           const TokenTables& model);
Fault decode_bits_portable(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                           const BitTables& model);
Fault decode_bits_neon(const TileShape& shape, const TileEntry& entry, const TileOutput& out, const BitTables& model);
Fault decode_bits_sse4(const TileShape& shape, const TileEntry& entry, const TileOutput& out, const BitTables& model);
Fault decode_bits_avx2(const TileShape& shape, const TileEntry& entry, const TileOutput& out, const BitTables& model);
Fault decode_bits_avx512(const TileShape& shape, const TileEntry& entry, const TileOutput& out, const BitTables& model);

extern const Target kPortableTarget;
extern const Target kAvx2Target;
extern const Target kAvx512Target;

// The loops for chosen_cpu(); null if that is Cpu::none.
const Target* target();

}  // namespace l3
