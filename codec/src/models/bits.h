// A bit model in the decoder's form, and how it is read (section 24 of the spec), for processors and GPUs alike.
#pragma once

#include "models/bit_shapes.h"

namespace l3 {

constexpr uint32_t kBitModelKind = 2;
constexpr uint32_t kMaxBitNeighbours = 14;
constexpr uint32_t kBitRows = 4, kBitColumns = 16;  // of the places that neighbours may have
// The neighbours of the step before: W, and the one that the lane above decoded.
constexpr uint32_t kNewestOwn = 0, kNewestAbove = 16;
constexpr uint32_t kBitContexts = 1u << kMaxBitNeighbours;
constexpr uint32_t kMaxBitModelBytes = 1u << 17;
constexpr uint32_t kBitHeadBytes = 5;  // before the neighbours
constexpr uint32_t kBitFlagsAt = 3, kBitColoursFlag = 1, kBitShapesFlag = 2;
constexpr uint32_t kBitLevels = 64, kBitLevelBits = 6;

// The frequency of 1 for a level.
struct BitFrequencies {
  uint16_t of[kBitLevels / 2];
  L3_INLINE constexpr uint32_t operator()(uint32_t level) const {
    return level < kBitLevels / 2 ? of[level] : kProbabilities - of[kBitLevels - 1 - level];
  }
};
L3_INLINE constexpr BitFrequencies bit_frequencies() {
  return {{1,  2,   3,   4,   5,   6,   8,   10,  13,  16,  20,  25,   32,   40,   51,   64,
           81, 102, 128, 161, 203, 256, 323, 406, 512, 645, 813, 1024, 1218, 1448, 1722, 1930}};
}

// The order of neighbours in processors' contexts.
L3_INLINE constexpr uint32_t bit_order(uint32_t neighbour) {
  return (kBitRows - 1 - neighbour / kBitColumns) * kBitColumns + neighbour % kBitColumns;
}

struct BitTables {
  uint32_t channels, bits;  // of the image
  bool has_colours;
  uint16_t colours[2][kMaxChannels];  // the samples of a pixel, by its bit
  uint32_t count;                     // of neighbours
  uint8_t neighbours[kMaxBitNeighbours];
  // The frequencies of 1. GPUs have them in the order of the tree. Processors have four together, which differ in the
  // newest neighbours: in the lower halves of a bucket's words that of this lane is 0, in `own` that of the lane above.
  // Which four is a context of the other neighbours: those of the uppermost row in the lowest bits, and of a row those
  // with the lowest numbers.
  union {
    alignas(64) uint16_t frequencies[kBitContexts];
    Bucket fours[kBitContexts / 4];
  };
  BitShapes shapes;

  L3_INLINE uint32_t sample_of(uint32_t channel, uint32_t bit) const {
    return has_colours ? colours[bit][channel] : bit;
  }
};

// Reads a model in this order: the head, the rest. A fault's place is relative to the start of the model.
class BitModelReader {
 public:
  L3_INLINE BitModelReader(const uint8_t* bytes, uint64_t size, BitTables& tables)
      : bytes_(bytes), size_(size), tables_(tables) {}

  // Reads what is before the bit string, for an image with these channels and bits.
  L3_INLINE Fault read_head(uint32_t channels, uint32_t bits) {
    if (size_ > kMaxBitModelBytes) return {Reason::model_head, kMaxBitModelBytes};
    if (size_ < kBitHeadBytes) return {Reason::model_head, static_cast<uint32_t>(size_)};
    if (bytes_[0] != kBitModelKind) return {Reason::model_kind, 0};
    if (bytes_[1] != channels) return {Reason::model_head, 1};
    if (bytes_[2] != bits) return {Reason::model_head, 2};
    const uint32_t flags = bytes_[kBitFlagsAt];
    if ((flags & ~(kBitColoursFlag | kBitShapesFlag)) != 0) return {Reason::model_head, kBitFlagsAt};
    tables_.channels = channels;
    tables_.bits = bits;
    tables_.has_colours = (flags & kBitColoursFlag) != 0;
    if (!tables_.has_colours && (channels != 1 || bits != 1)) return {Reason::model_head, kBitFlagsAt};
    tables_.count = bytes_[4];
    if (tables_.count < 2 || tables_.count > kMaxBitNeighbours) return {Reason::model_head, 4};
    if (size_ < string_at()) return {Reason::model_head, static_cast<uint32_t>(size_)};
    uint64_t seen = 0;
    for (uint32_t i = 0; i < tables_.count; ++i) {
      const uint32_t neighbour = bytes_[kBitHeadBytes + i];
      const uint64_t bit = uint64_t{1} << neighbour % 64;
      if (neighbour >= 64 || (bit & (kNewestBits << 32 | seen)) != 0) return {Reason::model_head, kBitHeadBytes + i};
      seen |= bit;
      tables_.neighbours[i] = static_cast<uint8_t>(neighbour);
    }
    return (seen & kNewestBits) == kNewestBits ? Fault{} : Fault{Reason::model_head, kBitHeadBytes};
  }

  // Reads the bit string. Calls fill(first, count, frequency) for each leaf of the tree, in order: `count` contexts, a
  // power of two, from `first` on.
  template <class Fill>
  L3_INLINE Fault read_rest(const Fill& fill) {
    BitReader bits(bytes_ + string_at(), static_cast<uint32_t>(size_) - string_at());
    for (uint32_t bit = 0; bit < 2 && tables_.has_colours; ++bit) {
      for (uint32_t c = 0; c < tables_.channels; ++c) {
        tables_.colours[bit][c] = static_cast<uint16_t>(bits.take(tables_.bits));
      }
    }
    constexpr BitFrequencies kFrequencies = bit_frequencies();
    const uint32_t contexts = 1u << tables_.count;
    for (uint32_t context = 0, leaf; context < contexts; context += leaf) {
      // A node begins where the contexts of the leaf before end; the greatest node that begins there is meant.
      leaf = context == 0 ? contexts : context & (0u - context);
      while (leaf > 1 && bits.take(1) != 0) leaf /= 2;
      fill(context, leaf, kFrequencies(bits.take(kBitLevelBits)));
    }
    bool sound = true;
    if ((bytes_[kBitFlagsAt] & kBitShapesFlag) != 0) {
      sound = read_shapes(bits, tables_.shapes);
    } else {
      tables_.shapes.count = 0;
    }
    return sound && bits.ends_here() ? Fault{} : Fault{Reason::model_table, string_at()};
  }

 private:
  static constexpr uint64_t kNewestBits = 1 | uint64_t{1} << kNewestAbove;
  static_assert(kBitRows * kBitColumns == 64);

  // Where the bit string begins.
  L3_INLINE uint32_t string_at() const { return kBitHeadBytes + tables_.count; }

  const uint8_t* bytes_;
  const uint64_t size_;
  BitTables& tables_;
};

}  // namespace l3
