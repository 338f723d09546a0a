// The kinds of models, a row each, and a model of any kind in the decoder's form.
//
// To add a kind, add a row here, with its tables and a function that reads them, and a decoder for each target and for
// CUDA that takes these tables.
#pragma once

#include "container/reason.h"
#include "models/bits.h"
#include "models/token.h"

namespace l3 {

struct DenseKind {
  using Tables = DenseTables;
  static constexpr uint32_t kNumber = kDenseModelKind;

  // Whether images with this many bits may have such a model, and the bits that a model states.
  L3_INLINE static constexpr bool suits(uint32_t bits) { return bits == 8; }
  L3_INLINE static uint32_t stated_bits(const uint8_t*) { return 8; }
  L3_INLINE static uint32_t bits_of(const Tables&) { return 8; }
  // Reads and verifies a model for an image with these channels and bits. A fault's place is relative to the start of
  // the model.
  [[nodiscard]] static Fault read(const uint8_t* bytes, uint64_t size, uint32_t channels, uint32_t bits,
                                  Tables& tables);
};

struct TokenKind {
  using Tables = TokenTables;
  static constexpr uint32_t kNumber = kTokenModelKind;

  L3_INLINE static constexpr bool suits(uint32_t) { return true; }
  L3_INLINE static uint32_t stated_bits(const uint8_t* bytes) { return bytes[2]; }
  L3_INLINE static uint32_t bits_of(const Tables& tables) { return tables.bits; }
  [[nodiscard]] static Fault read(const uint8_t* bytes, uint64_t size, uint32_t channels, uint32_t bits,
                                  Tables& tables);
};

struct BitKind {
  using Tables = BitTables;
  static constexpr uint32_t kNumber = kBitModelKind;

  L3_INLINE static constexpr bool suits(uint32_t) { return true; }
  L3_INLINE static uint32_t stated_bits(const uint8_t* bytes) { return bytes[2]; }
  L3_INLINE static uint32_t bits_of(const Tables& tables) { return tables.bits; }
  [[nodiscard]] static Fault read(const uint8_t* bytes, uint64_t size, uint32_t channels, uint32_t bits,
                                  Tables& tables);
};

template <class... Rows>
struct ModelKindTable {
  // Calls visit.operator()<Row>() for the row of a kind. Does nothing if there is no such row.
  template <class Visit>
  L3_INLINE static constexpr void visit(uint32_t kind, const Visit& visit) {
    static_cast<void>(((kind == Rows::kNumber && (visit.template operator()<Rows>(), true)) || ...));
  }
  L3_INLINE static constexpr bool has(uint32_t kind) { return ((kind == Rows::kNumber) || ...); }
  // Whether images with this many bits may have a model of this kind. Reading refuses unknown kinds.
  L3_INLINE static constexpr bool suits(uint32_t kind, uint32_t bits) {
    return ((kind != Rows::kNumber || Rows::suits(bits)) && ...);
  }
};
using ModelKinds = ModelKindTable<DenseKind, TokenKind, BitKind>;

// The required features of files with a model.
L3_INLINE constexpr uint32_t features_of(uint32_t kind, bool has_shapes) {
  return kind != kBitModelKind ? 0 : has_shapes ? kBitModel | kShapes : kBitModel;
}
L3_INLINE constexpr uint32_t features_of_model(const uint8_t* bytes, uint64_t size) {
  return size <= kBitFlagsAt ? 0 : features_of(bytes[0], (bytes[kBitFlagsAt] & kBitShapesFlag) != 0);
}
// Whether a file with these required features may have a model that needs those.
L3_INLINE constexpr bool is_announced(uint32_t needed, uint32_t required_features) {
  return (needed & ~required_features) == 0;
}

// The kind of a model, which its first byte says. For an unknown kind, returns one whose reader will refuse the model.
L3_INLINE uint32_t kind_of_model(const uint8_t* bytes, uint64_t size) {
  return size > 0 && ModelKinds::has(bytes[0]) ? bytes[0] : kDenseModelKind;
}

struct ModelTables {
  uint32_t kind = kDenseModelKind;
  union {
    DenseTables dense;
    TokenTables token;
    BitTables bit;
  };

  L3_INLINE ModelTables() {}  // constructs no tables

  L3_INLINE const DenseTables& of(DenseKind) const { return dense; }
  L3_INLINE DenseTables& of(DenseKind) { return dense; }
  L3_INLINE const TokenTables& of(TokenKind) const { return token; }
  L3_INLINE TokenTables& of(TokenKind) { return token; }
  L3_INLINE const BitTables& of(BitKind) const { return bit; }
  L3_INLINE BitTables& of(BitKind) { return bit; }

  L3_INLINE uint32_t features() const { return features_of(kind, kind == kBitModelKind && bit.shapes.count > 0); }
  L3_INLINE uint32_t channels() const {
    uint32_t result = 0;
    ModelKinds::visit(kind, [&]<class Kind>() { result = of(Kind{}).channels; });
    return result;
  }
  L3_INLINE uint32_t bits() const {
    uint32_t result = 0;
    ModelKinds::visit(kind, [&]<class Kind>() { result = Kind::bits_of(of(Kind{})); });
    return result;
  }
};

// Reads and verifies a model for an image with these channels and bits. A fault's place is relative to the start of
// the model.
[[nodiscard]] Fault read_tables(const uint8_t* bytes, uint64_t size, uint32_t channels, uint32_t bits,
                                ModelTables& tables);

}  // namespace l3
