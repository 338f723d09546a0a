// A model of either kind in the decoder's form.
#pragma once

#include "container/reason.h"
#include "models/token.h"

namespace l3 {

struct ModelTables {
  bool is_token = false;
  union {
    DenseTables dense;
    TokenTables token;
  };

  L3_INLINE ModelTables() {}  // constructs neither member
  L3_INLINE uint32_t channels() const { return is_token ? token.channels : dense.channels; }
  L3_INLINE uint32_t bits() const { return is_token ? token.bits : 8; }
};

// Whether a model is a token model, by its first byte.
L3_INLINE bool is_token_model(const uint8_t* bytes, uint64_t size) { return size > 0 && bytes[0] == kTokenModelKind; }

// Reads and verifies a model for an image with these channels and bits. A fault's place is relative to the start of
// the model.
[[nodiscard]] Fault read_tables(const uint8_t* bytes, uint64_t size, uint32_t channels, uint32_t bits,
                                ModelTables& tables);
// The same for a model of kind 0, and for a token model.
[[nodiscard]] Fault read_model(const uint8_t* bytes, uint64_t size, uint32_t channels, DenseTables& tables);
[[nodiscard]] Fault read_token_model(const uint8_t* bytes, uint64_t size, uint32_t channels, uint32_t bits,
                                     TokenTables& tables);

}  // namespace l3
