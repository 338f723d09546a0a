// The engine, compiled once for each processor target and chosen at run time.
#pragma once

#include "dense_fit_kernels.h"
#include "dense_tables.h"
#include "tile.h"
#include "token.h"

namespace l3 {

struct Target {
  const char* name;
  // The check of `words` u32.
  uint32_t (*check)(const uint8_t* bytes, uint64_t words);
  // Decode a tile whose payload matches its check: one that is not dense, and one that is, with either kind of model.
  Fault (*decode)(const TileShape& shape, const TileEntry& entry, const TileOutput& out);
  Fault (*decode_dense)(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                        const DenseTables& model);
  Fault (*decode_tokens)(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                         const TokenTables& model);
  // Encodes a tile; `out` has room for raw_bytes() of it.
  TileChoice (*encode)(const TileShape& shape, const TileInput& in, uint8_t* out);
  DenseKernels dense;  // the arithmetic of the dense method's encoder
};

// By the processor's own vectors, by AVX2's, and by AVX-512's as of Cascade Lake.
Fault decode_tokens_portable(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                             const TokenTables& model);
Fault decode_tokens_avx2(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                         const TokenTables& model);
Fault decode_tokens_avx512(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                           const TokenTables& model);

extern const Target kPortableTarget;
#if defined(__x86_64__)
extern const Target kAvx2Target;
extern const Target kAvx512Target;
#endif

// The best target that this processor has, or the one that the environment variable L3_CPU names; null where it names
// one that is unknown or that the processor lacks.
const Target* target();

}  // namespace l3
