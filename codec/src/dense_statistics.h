// From the symbols of an image to the tables of its model: groups, rows, tables and class tables.
#pragma once

#include "dense_fit.h"

namespace l3 {

// The row of each zone and sign pattern of a channel.
struct RowMap {
  uint32_t sign_groups, rows;
  uint8_t of[kZones * kSignPatterns];

  RowMap(const DenseModel& model, uint32_t channel);
  // 64 times the row, by zone and sign pattern.
  void contexts(uint16_t* first) const {
    for (uint32_t i = 0; i < kZones * kSignPatterns; ++i) first[i] = static_cast<uint16_t>(of[i] * kLevels);
  }
};

// How often each symbol was seen in each row and level of each channel.
class SymbolCounts {
 public:
  SymbolCounts(const DenseModel& model);

  uint32_t rows(uint32_t channel) const { return static_cast<uint32_t>(counts_[channel].size() / kRowCounts); }
  // By 256 times the context, which is 64 times the row and the level, and the symbol.
  uint32_t* of(uint32_t channel) { return counts_[channel].data(); }
  void add(const SymbolCounts& other);

 private:
  static constexpr size_t kRowCounts = size_t{kLevels} * kMaxSymbols;
  std::vector<uint32_t> counts_[kMaxChannels];
};

// Groups zones and sign patterns of each channel by what follows them in the given tiles, which are `share` of the
// image. So many levels of activity are told apart.
void fit_groups(const std::vector<std::unique_ptr<DenseTile>>& tiles, const DenseKernels& kernels,
                const l3_parallel& parallel, double share, uint32_t levels, DenseModel& model);

// Fits rows and at most `most` tables to the counts. Gives the bits of tables and of what was counted.
double fit_tables(SymbolCounts& counts, uint32_t maximum, uint32_t rounds, DenseModel& model);

// How often each class was seen, by channel and the class of the channel before.
using ClassCounts = uint32_t[kMaxChannels][kMaxClasses][kMaxClasses];

// For a DenseModel or a TokenModel.
template <class Model>
void fit_class_tables(const ClassCounts& counts, uint32_t channels, Model& model);

// Makes frequencies that add up to 4096 and can be written, of which each symbol that was seen has one.
void make_frequencies(const uint64_t* counts, uint32_t symbols, uint16_t* frequencies);

}  // namespace l3
