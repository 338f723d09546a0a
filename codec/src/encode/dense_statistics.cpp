// Implements dense_statistics.h.
#include "encode/dense_statistics.h"

#include <algorithm>

#include "api/parallel.h"
#include "container/logarithm.h"
#include "encode/row_tables.h"

namespace l3 {
namespace {

// Groups are found with coarser counts than tables: levels are merged, and so are large symbols.
constexpr uint32_t kCoarseSymbols = 24;

// Small symbols stay separate. Larger ones are merged into at most two ranges per octave of magnitude, for each sign.
struct CoarseSymbols {
  uint8_t of[kMaxSymbols];

  constexpr CoarseSymbols() : of() {
    for (uint32_t symbol = 0; symbol < kMaxSymbols; ++symbol) {
      constexpr uint32_t kFirst[] = {8, 12, 16, 24, 32, 64};
      const uint32_t magnitude = (symbol + 1) / 2;
      uint32_t joined = 0;
      while (joined < 6 && magnitude >= kFirst[joined]) ++joined;
      of[symbol] =
          static_cast<uint8_t>(joined == 0 ? symbol : 15 + (joined - 1) / 2 * 2 + (joined > 4 ? 2 : 0) + symbol % 2);
    }
  }
};

constexpr RowKind kSampleRows{kMaxSymbols, 1, 1, 2, 7, 0.02, 2};

// The bits of everything that is coded with a table.
double coded_bits(const uint64_t* counts, const uint16_t* frequencies) {
  double bits = 0;
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

void fit_groups(const std::vector<std::unique_ptr<DenseTile>>& tiles, const DenseKernels& kernels,
                const l3_parallel& parallel, double share, uint32_t levels, DenseModel& model) {
  // The approximate bits that one more group takes, in rows and in the map.
  constexpr double kZonePrice = 400, kSignPrice = 800;
  static constexpr CoarseSymbols kCoarse;
  auto fit_channel = [&](uint64_t c) {
    const uint32_t channel = static_cast<uint32_t>(c);
    const size_t size = size_t{levels} * kCoarseSymbols;  // by level and symbol
    std::vector<uint32_t> zones(kZones * size), signs(kSignPatterns * size);
    uint32_t place_of_level[kLevels];
    for (uint32_t i = 0; i < kLevels; ++i) place_of_level[i] = std::min(levels - 1, i * levels / 48) * kCoarseSymbols;
    std::vector<uint8_t> symbols;
    std::vector<uint16_t> places;
    for (const auto& tile : tiles) {
      symbols.resize(tile->samples());
      places.resize(tile->samples());
      kernels.read_symbols(tile->planes(), channel, model.activity[c], symbols.data(), places.data());
      for (size_t i = 0; i < symbols.size(); ++i) {
        const uint32_t at = place_of_level[places[i] & 63u] + kCoarse.of[symbols[i]];
        ++zones[(places[i] >> 12) * size + at];
        ++signs[(places[i] >> 6 & 63u) * size + at];
      }
    }
    group_values(std::move(zones), kZones, levels, kCoarseSymbols, kMaxZoneGroups, kZonePrice * share,
                 model.zone_group[c]);
    group_values(std::move(signs), kSignPatterns, levels, kCoarseSymbols, kMaxSignGroups, kSignPrice * share,
                 model.sign_group[c]);
  };
  run_parallel(parallel, model.channels, fit_channel);
}

FittedBits fit_tables(const SymbolCounts& counts, uint32_t maximum, uint32_t rounds, DenseModel& model) {
  RowTables tables(kSampleRows);
  for (uint32_t c = 0; c < model.channels; ++c) {
    for (uint32_t row = 0; row < counts.rows(c); ++row) tables.add_row(counts.of_row(c, row), kLevels);
  }
  tables.fit_in_order(maximum, rounds);
  model.table_count = tables.table_count();
  FittedBits bits{};
  for (uint32_t t = 0; t < model.table_count; ++t) {
    tables.frequencies(t, model.frequencies[t]);
    bits.samples += coded_bits(tables.counts(t), model.frequencies[t]);
    bits.tables += table_bits(model.frequencies[t], kMaxSymbols);
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
