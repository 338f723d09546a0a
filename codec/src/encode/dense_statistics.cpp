// Fits tables to the counts of symbols.
#include "encode/dense_statistics.h"

#include <algorithm>

#include "container/logarithm.h"
#include "encode/row_tables.h"

namespace l3 {
namespace {

constexpr RowKind kSampleRows{kMaxSymbols, 1, 1, 2, 7, 0.02, 2};

// The bits of everything that is coded with a table, and of the table itself.
double coded_bits(const uint64_t* counts, const uint16_t* frequencies) {
  double bits = table_bits(frequencies, kMaxSymbols);
  for (uint32_t i = 0; i < kMaxSymbols; ++i) {
    if (counts[i] == 0) continue;
    bits += static_cast<double>(counts[i]) * (kProbabilityBits - logarithm(frequencies[i]));
  }
  return bits;
}

}  // namespace

RowMap::RowMap(const DenseModel& model, uint32_t channel) : sign_groups(1), rows(0) {
  uint32_t zone_groups = 1;
  for (const uint8_t group : model.zone_group[channel]) zone_groups = std::max(zone_groups, group + 1u);
  for (const uint8_t group : model.sign_group[channel]) sign_groups = std::max(sign_groups, group + 1u);
  rows = zone_groups * sign_groups;
  for (uint32_t i = 0; i < kZones * kSignPatterns; ++i) {
    of[i] = static_cast<uint8_t>(model.zone_group[channel][i / kSignPatterns] * sign_groups +
                                 model.sign_group[channel][i % kSignPatterns]);
  }
}

SymbolCounts::SymbolCounts(const DenseModel& model) {
  for (uint32_t c = 0; c < model.channels; ++c) counts_[c].resize(RowMap(model, c).rows * kRowCounts);
}

void SymbolCounts::add(const SymbolCounts& other) {
  for (uint32_t c = 0; c < kMaxChannels; ++c) {
    for (size_t i = 0; i < counts_[c].size(); ++i) counts_[c][i] += other.counts_[c][i];
  }
}

double fit_tables(const SymbolCounts& counts, uint32_t maximum, uint32_t rounds, DenseModel& model) {
  RowTables tables(kSampleRows);
  for (uint32_t c = 0; c < model.channels; ++c) {
    for (uint32_t row = 0; row < counts.rows(c); ++row) tables.add_row(counts.of_row(c, row), kLevels);
  }
  tables.fit_in_order(maximum, rounds);
  model.table_count = tables.table_count();
  double bits = 0;
  for (uint32_t t = 0; t < model.table_count; ++t) {
    tables.frequencies(t, model.frequencies[t]);
    bits += coded_bits(tables.counts(t), model.frequencies[t]);
  }
  uint32_t row = 0;
  for (uint32_t c = 0; c < model.channels; ++c) {
    const uint32_t sign_groups = RowMap(model, c).sign_groups;
    for (uint32_t i = 0; i < counts.rows(c); ++i, ++row) {
      uint8_t* const levels = model.table_of[c][i / sign_groups][i % sign_groups];
      for (uint32_t level = 0; level < kLevels; ++level) levels[level] = tables.table_of(row, level);
    }
  }
  return bits;
}

}  // namespace l3
