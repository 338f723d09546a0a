// Groups zones and sign patterns by their statistics.
#include <algorithm>

#include "api/parallel.h"
#include "encode/dense_statistics.h"
#include "encode/entropy.h"

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

// Coarse counts of a channel's samples, by one property (zone or sign pattern), level and symbol.
struct CoarseCounts {
  uint32_t levels;
  std::vector<uint32_t> counts;

  CoarseCounts(uint32_t values, uint32_t of_levels)
      : levels(of_levels), counts(size_t{values} * of_levels * kCoarseSymbols) {}
  uint32_t size() const { return levels * kCoarseSymbols; }
  uint32_t* of(uint32_t value) { return counts.data() + size_t{value} * size(); }
};

// Merges groups, cheapest merge first, until at most `maximum` are left and each remaining group saves more than its
// price.
class Grouping {
 public:
  Grouping(CoarseCounts& counts, uint32_t size, double scale, double price)
      : counts_(counts), size_(size), scale_(scale), price_(price), group_(size) {
    for (uint32_t i = 0; i < size; ++i) group_[i] = i;
  }

  uint32_t run(uint32_t maximum, uint8_t* groups) {
    std::vector<uint32_t> alive(size_);
    for (uint32_t i = 0; i < size_; ++i) alive[i] = i;
    std::vector<double> loss(size_t{size_} * size_);
    for (uint32_t a = 0; a < size_; ++a) {
      for (uint32_t b = 0; b < a; ++b) loss[a * size_ + b] = loss_of(a, b);
    }
    while (alive.size() > 1) {
      uint32_t best_a = 0, best_b = 0;
      double best = 1e300;
      for (const uint32_t a : alive) {
        for (const uint32_t b : alive) {
          if (b < a && loss[a * size_ + b] < best) {
            best = loss[a * size_ + b];
            best_a = a;
            best_b = b;
          }
        }
      }
      if (alive.size() <= maximum && best * scale_ > price_) break;
      uint32_t* into = counts_.of(best_b);
      const uint32_t* from = counts_.of(best_a);
      for (uint32_t i = 0; i < counts_.size(); ++i) into[i] += from[i];
      for (uint32_t& group : group_) group = group == best_a ? best_b : group;
      alive.erase(std::find(alive.begin(), alive.end(), best_a));
      for (const uint32_t other : alive) {
        if (other != best_b) {
          loss[std::max(other, best_b) * size_ + std::min(other, best_b)] = loss_of(other, best_b);
        }
      }
    }
    for (uint32_t i = 0; i < size_; ++i) {
      groups[i] = static_cast<uint8_t>(std::find(alive.begin(), alive.end(), group_[i]) - alive.begin());
    }
    return static_cast<uint32_t>(alive.size());
  }

 private:
  double loss_of(uint32_t a, uint32_t b) const {
    const uint32_t *of_a = counts_.of(a), *of_b = counts_.of(b);
    double loss = 0;
    for (uint32_t level = 0; level < counts_.levels; ++level, of_a += kCoarseSymbols, of_b += kCoarseSymbols) {
      uint64_t total_a = 0, total_b = 0;
      for (uint32_t i = 0; i < kCoarseSymbols; ++i) {
        total_a += of_a[i];
        total_b += of_b[i];
      }
      if (total_a == 0 || total_b == 0) continue;
      loss += more_of(total_a, total_b);
      for (uint32_t i = 0; i < kCoarseSymbols; ++i) {
        if (of_a[i] != 0 && of_b[i] != 0) loss -= more_of(of_a[i], of_b[i]);
      }
    }
    return loss;
  }
  static double more_of(uint64_t a, uint64_t b) { return entropy_term(a + b) - entropy_term(a) - entropy_term(b); }

  CoarseCounts& counts_;
  uint32_t size_;
  double scale_, price_;
  std::vector<uint32_t> group_;
};

}  // namespace

void fit_groups(const std::vector<std::unique_ptr<DenseTile>>& tiles, const DenseKernels& kernels,
                const l3_parallel& parallel, double share, uint32_t levels, DenseModel& model) {
  // The approximate bits that one more group takes, in rows and in the map.
  constexpr double kZonePrice = 400, kSignPrice = 800;
  static constexpr CoarseSymbols kCoarse;
  auto fit_channel = [&](uint64_t c) {
    const uint32_t channel = static_cast<uint32_t>(c);
    CoarseCounts zones(kZones, levels), signs(kSignPatterns, levels);
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
        ++zones.of(places[i] >> 12)[at];
        ++signs.of(places[i] >> 6 & 63u)[at];
      }
    }
    Grouping(zones, kZones, 1 / share, kZonePrice).run(kMaxZoneGroups, model.zone_group[c]);
    Grouping(signs, kSignPatterns, 1 / share, kSignPrice).run(kMaxSignGroups, model.sign_group[c]);
  };
  run_parallel(parallel, model.channels, fit_channel);
}

}  // namespace l3
