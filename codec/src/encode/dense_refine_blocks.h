// What the refinement of a channel uses: code lengths, tables, and the parts of a block's contexts that stay the same.
#pragma once

#include "container/logarithm.h"
#include "encode/dense_refine.h"

namespace l3 {

using RefineKernels = FitKernels<ShortVectors<16>>;

constexpr double kLengthUnits = 64;  // a code length's units per bit

// The lengths of symbols under a model's tables, in 64ths of a bit.
struct SymbolLengths {
  uint16_t of[kMaxTables][kMaxSymbols];

  explicit SymbolLengths(const DenseModel& model) {
    constexpr double kUnseen = 15;  // bits
    for (uint32_t t = 0; t < model.table_count; ++t) {
      for (uint32_t i = 0; i < kMaxSymbols; ++i) {
        const uint16_t f = model.frequencies[t][i];
        of[t][i] = static_cast<uint16_t>(kLengthUnits * (f == 0 ? kUnseen : kProbabilityBits - logarithm(f)));
      }
    }
  }
};

// How a channel selects tables: zone and sign pattern select a row; row and level select a table.
struct ChannelTables {
  uint16_t row_of[kZones * kSignPatterns];  // 64 * row
  uint16_t zone_of[256];                    // 64 * zone, by the distance from the end of the range
  uint8_t table_of[kMaxRows * kLevels];

  ChannelTables(const DenseModel& model, uint32_t channel) {
    const RowMap rows(model, channel);
    rows.contexts(row_of);
    for (uint32_t d = 0; d < 256; ++d) zone_of[d] = static_cast<uint16_t>((3613 * d + 61923) >> 16 << 6);
    for (uint32_t row = 0; row < rows.rows; ++row) {
      __builtin_memcpy(table_of + size_t{row} * kLevels,
                       model.table_of[channel][row / rows.sign_groups][row % rows.sign_groups], kLevels);
    }
  }
};

// The context row, the symbol and the error that follow from a prediction of a sample.
struct Outcome {
  uint16_t row;  // 64 * row
  uint8_t symbol;
  int16_t error;
};

// `twice` is twice the prediction, plus 1 if it leans upwards. `signs` are the signs of the neighbouring errors.
L3_INLINE Outcome outcome_of(int32_t twice, int32_t value, int32_t w, int32_t n, uint32_t signs,
                             const ChannelTables& tables) {
  const int32_t p = twice >> 1, up = -(twice & 1);
  const uint32_t pattern =
      (signs | (w >= p ? 16u : 0u) | (n >= p ? 32u : 0u)) ^ (static_cast<uint32_t>(up) & (kSignPatterns - 1));
  const int32_t folded = static_cast<int8_t>(((value - p) ^ up) - up);
  return {tables.row_of[tables.zone_of[(p ^ up) & 0xFF] | pattern], static_cast<uint8_t>(folded << 1 ^ folded >> 31),
          static_cast<int16_t>(value - p)};
}

// What does not depend on the predictor: for each sample of a block its level, and the signs of the neighbouring
// errors.
struct BlockPlaces {
  uint8_t level[kBlockSamples], signs[kBlockSamples];

  void read(const DensePlanes& planes, uint32_t channel, const RefineKernels::ActivityPairs& pairs,
            const BlockFeatures& block) {
    using R = RefineKernels::R;
    RefineKernels::ContextRow row;
    __builtin_memset(row.terms, 0, sizeof(row.terms));
    for (uint32_t r = 0; r < kBlockEdge; ++r) {
      if (!block.has_row(r)) continue;
      RefineKernels::read_terms(planes, channel, block.x, block.y + kRowOrder[r], row);
      int16_t levels[kBlockEdge];
      for (uint32_t k = 0; k < kBlockEdge; k += R::kShorts) {
        R::store(levels + k, RefineKernels::read_levels(row, pairs, k));
      }
      for (uint32_t k = 0; k < kBlockEdge; ++k) {
        level[r * kBlockEdge + k] = static_cast<uint8_t>(levels[k]);
        signs[r * kBlockEdge + k] = signs_of(row.error, k);
      }
    }
  }

  static uint8_t signs_of(const NeighbourRow& error, uint32_t k) {
    uint8_t signs = 0;
    for (uint32_t n = 0; n < 4; ++n) signs |= static_cast<uint8_t>((error.at[n][k] < 0 ? 1 : 0) << n);
    return signs;
  }
};

struct BlockOfTile {
  const DensePlanes* planes;
  uint32_t block;
};

// Returns about `maximum` of the blocks, at most, evenly spread.
inline std::vector<BlockOfTile> some_of(const std::vector<BlockOfTile>& blocks, uint32_t maximum) {
  const size_t step = (blocks.size() + maximum - 1) / maximum;
  std::vector<BlockOfTile> some;
  for (size_t i = step / 2; i < blocks.size(); i += step) some.push_back(blocks[i]);
  return some;
}

// Refines the weights of a channel's activity terms.
void refine_activity(const std::vector<BlockOfTile>& blocks, uint32_t channel, const SymbolLengths& lengths,
                     DenseModel& model);

// Refines the predictor of one class, using blocks of this class.
void refine_predictor(const std::vector<BlockOfTile>& blocks, uint32_t channel, const SymbolLengths& lengths,
                      const ChannelTables& tables, const DenseModel& model, TapWeights& weights);

}  // namespace l3
