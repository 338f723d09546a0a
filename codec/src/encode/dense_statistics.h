// From the symbols of an image to the tables of its model: groups, rows and tables.
#pragma once

#include "encode/dense_fit.h"
#include "encode/frequencies.h"

namespace l3 {

// The row of each zone and sign pattern of a channel.
struct RowMap {
  uint32_t sign_groups, rows;
  uint8_t of[kZones * kSignPatterns];

  RowMap(const DenseModel& model, uint32_t channel);
  // Fills in 64 * row for each zone and sign pattern.
  void contexts(uint16_t* first) const {
    for (uint32_t i = 0; i < kZones * kSignPatterns; ++i) first[i] = static_cast<uint16_t>(of[i] * kLevels);
  }
};

// How often each symbol was seen in each row and level of each channel.
class SymbolCounts {
 public:
  SymbolCounts(const DenseModel& model);

  uint32_t rows(uint32_t channel) const { return static_cast<uint32_t>(counts_[channel].size() / kRowCounts); }
  // Indexed by 256 * context + symbol; the context is 64 * row + level.
  uint32_t* of(uint32_t channel) { return counts_[channel].data(); }
  const uint32_t* of_row(uint32_t channel, uint32_t row) const { return &counts_[channel][row * kRowCounts]; }
  void add(const SymbolCounts& other);

 private:
  static constexpr size_t kRowCounts = size_t{kLevels} * kMaxSymbols;
  std::vector<uint32_t> counts_[kMaxChannels];
};

// Groups the zones and the sign patterns of each channel by the statistics of the samples that have them. The tiles
// are the fraction `share` of the image. `levels` is the number of activity levels that are distinguished.
void fit_groups(const std::vector<std::unique_ptr<DenseTile>>& tiles, const DenseKernels& kernels,
                const l3_parallel& parallel, double share, uint32_t levels, DenseModel& model);

// The bits of everything that was counted, and of the tables that code it.
struct FittedBits {
  double samples, tables;
};

// Fits rows and at most `maximum` tables to the counts.
FittedBits fit_tables(const SymbolCounts& counts, uint32_t maximum, uint32_t rounds, DenseModel& model);

}  // namespace l3
