// Groups zones and sign patterns by their statistics.
#include <algorithm>

#include "api/parallel.h"
#include "encode/dense_statistics.h"
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

}  // namespace

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

}  // namespace l3
