// The decoder's and encoder's inner loops, compiled once for each processor target. The target is chosen at run time.
#pragma once

#include "container/tile.h"
#include "engine/dense_fit_kernels.h"
#include "models/dense_tables.h"
#include "models/token.h"

namespace l3 {

struct Target {
  const char* name;
  // The check of `words` u32.
  uint32_t (*check)(const uint8_t* bytes, uint64_t words);
  // Decode a tile whose payload matches its check: a tile that is not dense, and dense tiles with either kind of
  // model.
  Fault (*decode)(const TileShape& shape, const TileEntry& entry, const TileOutput& out);
  Fault (*decode_dense)(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                        const DenseTables& model);
  Fault (*decode_tokens)(const TileShape& shape, const TileEntry& entry, const TileOutput& out,
                         const TokenTables& model);
  // Encodes a tile that is not dense. `out` must have room for raw_bytes() of it.
  TileChoice (*encode)(const TileShape& shape, const TileInput& in, uint8_t* out);
  DenseKernels dense;  // the arithmetic of the dense method's encoder
};

// Implemented for the portable target, for AVX2, and for AVX-512 with VNNI (Cascade Lake and later).
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

// The best target for this processor, or the one that the environment variable L3_CPU named at the first call, or
// that l3_force_cpu_target() named. Null if that is unknown or if this processor does not support it.
const Target* target();

}  // namespace l3
