// The encoder's inner loops, compiled once for each processor target and chosen by the same rule as the decoder's.
#pragma once

#include "container/tile.h"
#include "engine/token_fit_kernels.h"

namespace l3 {

struct EncodeTarget {
  // The check of `words` u32.
  uint32_t (*check)(const uint8_t* bytes, uint64_t words);
  // Encodes a tile that is not dense. `out` must have room for raw_bytes() of it.
  TileChoice (*encode)(const TileShape& shape, const TileInput& in, uint8_t* out);
  DenseKernels dense;   // the arithmetic of the dense method's encoder
  TokenKernels tokens;  // the same for token models
};

extern const EncodeTarget kPortableEncodeTarget;
extern const EncodeTarget kAvx2EncodeTarget;
extern const EncodeTarget kAvx512EncodeTarget;

// Like target(), for the encoder.
const EncodeTarget* encode_target();

}  // namespace l3
