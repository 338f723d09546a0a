// Implements dense_statistics.h: groups zones and sign patterns, and fits tables to the counts of symbols.
#include "encode/dense_statistics.h"

#include <algorithm>
#include <cstring>

#include "api/parallel.h"
#include "encode/entropy.h"
#include "encode/token_model.h"

namespace l3 {
namespace {

// ------------------------------------------------------------------------------------------------------------- groups

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

// ------------------------------------------------------------------------------------------------------------- tables

// Makes frequencies that add up to 4096 and that the format can represent. Each symbol that was seen gets at least 1.
template <class Count>
void normalise(const Count* counts, uint32_t symbols, uint16_t* frequencies) {
  std::memset(frequencies, 0, symbols * sizeof(*frequencies));
  double total = 0;
  uint32_t seen = 0, rest = 0;
  for (uint32_t i = 0; i < symbols; ++i) {
    total += static_cast<double>(counts[i]);
    seen += counts[i] > 0;
    if (i < 32 && counts[i] > counts[rest]) rest = i;
  }
  if (seen == 0 || (seen == 1 && counts[rest] > 0)) {
    // The format requires at least two symbols in a table.
    frequencies[rest] = kProbabilities - 1;
    frequencies[rest == 0 ? 1 : 0] = 1;
    return;
  }
  uint32_t sum = 0;
  for (uint32_t i = 0; i < symbols; ++i) {
    if (counts[i] == 0 || i == rest) continue;
    const double exact = static_cast<double>(counts[i]) * kProbabilities / total;
    const uint32_t f = writable_frequency(std::max(1u, static_cast<uint32_t>(exact + 0.5)));
    frequencies[i] = static_cast<uint16_t>(std::min(f, kProbabilities / 2 + kProbabilities / 4));
    sum += frequencies[i];
  }
  const auto step_of = [](uint32_t f) { return f < 16 ? 1u : 1u << (28 - static_cast<uint32_t>(__builtin_clz(f))); };
  while (sum > kProbabilities - 1) {
    uint32_t greatest = symbols;
    for (uint32_t i = 0; i < symbols; ++i) {
      if (i != rest && frequencies[i] > 1 && (greatest == symbols || frequencies[i] > frequencies[greatest]))
        greatest = i;
    }
    const uint32_t smaller_one = writable_frequency(frequencies[greatest] - step_of(frequencies[greatest] - 1u));
    sum -= frequencies[greatest] - smaller_one;
    frequencies[greatest] = static_cast<uint16_t>(smaller_one);
  }
  // Improve by single steps, the most profitable first.
  for (uint32_t round = 0; round < 48; ++round) {
    const double of_rest = kProbabilities - sum;
    double best = 1e-6;
    uint32_t best_symbol = symbols, best_frequency = 0;
    for (uint32_t i = 0; i < symbols; ++i) {
      if (counts[i] == 0 || i == rest) continue;
      const uint32_t f = frequencies[i];
      for (const int direction : {-1, 1}) {
        const uint32_t to = direction < 0 ? f - step_of(f - 1) : f + step_of(f);
        if (to == 0 || to > f + kProbabilities || to != writable_frequency(to)) continue;
        const double rest_to = of_rest - (static_cast<double>(to) - f);
        if (rest_to < 1 || to >= kProbabilities) continue;
        const double gain = static_cast<double>(counts[i]) * logarithm(static_cast<double>(to) / f) +
                            static_cast<double>(counts[rest]) * logarithm(rest_to / of_rest);
        if (gain > best) {
          best = gain;
          best_symbol = i;
          best_frequency = to;
        }
      }
    }
    if (best_symbol == symbols) break;
    sum += best_frequency - frequencies[best_symbol];
    frequencies[best_symbol] = static_cast<uint16_t>(best_frequency);
  }
  frequencies[rest] = static_cast<uint16_t>(kProbabilities - sum);
}

// The samples with one row and level of a channel.
struct Context {
  uint32_t channel, row, level;
  double total = 0, mean = 0;
  std::vector<std::pair<uint32_t, uint32_t>> symbols;  // symbols that were seen, and how often
};

// Assigns contexts to tables: k-means with code lengths as distances, plus the cost of coding each level's table.
class TableFit {
 public:
  TableFit(SymbolCounts& counts, DenseModel& model) : model_(model) {
    first_.assign(size_t{model.channels} * kMaxRows * kLevels, -1);
    for (uint32_t c = 0; c < model.channels; ++c) {
      rows_[c] = counts.rows(c);
      for (uint32_t i = 0; i < rows_[c] * kLevels; ++i) {
        add(c, i / kLevels, i % kLevels, counts.of(c) + size_t{i} * kMaxSymbols);
      }
    }
    table_of_.resize(contexts_.size());
  }

  double run(uint32_t maximum, uint32_t rounds) {
    tables_ = static_cast<uint32_t>(std::clamp<size_t>(contexts_.size(), 1, maximum));
    start();
    for (uint32_t round = 0; round < rounds; ++round) assign();
    merge();
    for (uint32_t round = 0; round < (rounds + 1) / 3; ++round) assign();
    drop_unused();
    count();
    for (uint32_t t = 0; t < tables_; ++t)
      normalise(&counts_[size_t{t} * kMaxSymbols], kMaxSymbols, model_.frequencies[t]);
    model_.table_count = tables_;
    fill_rows();
    double bits = 0;
    for (uint32_t t = 0; t < tables_; ++t) bits += coded_bits(t);
    return bits;
  }

 private:
  // The bits of everything that is coded with a table, and of the table itself.
  double coded_bits(uint32_t table) const {
    double bits = table_bits(model_.frequencies[table], kMaxSymbols);
    for (uint32_t i = 0; i < kMaxSymbols; ++i) {
      const uint64_t times = counts_[size_t{table} * kMaxSymbols + i];
      if (times == 0) continue;
      bits += static_cast<double>(times) * (kProbabilityBits - logarithm(model_.frequencies[table][i]));
    }
    return bits;
  }

  void add(uint32_t channel, uint32_t row, uint32_t level, const uint32_t* counts) {
    uint32_t any = 0;
    for (uint32_t symbol = 0; symbol < kMaxSymbols; ++symbol) any |= counts[symbol];
    if (any == 0) return;
    Context context{channel, row, level, 0, 0, {}};
    for (uint32_t symbol = 0; symbol < kMaxSymbols; ++symbol) {
      if (counts[symbol] == 0) continue;
      context.symbols.emplace_back(symbol, counts[symbol]);
      context.total += counts[symbol];
      context.mean += static_cast<double>(counts[symbol]) * ((symbol + 1) / 2);
    }
    context.mean /= context.total;
    first_[(size_t{channel} * kMaxRows + row) * kLevels + level] = static_cast<int32_t>(contexts_.size());
    contexts_.push_back(std::move(context));
  }

  // The initial tables. Contexts are sorted by the size of their symbols and divided evenly among the tables. The
  // number of samples and the number of contexts count half each.
  void start() {
    std::vector<uint32_t> order(contexts_.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return contexts_[a].mean < contexts_[b].mean; });
    double all = 0, sum = 0;
    for (const Context& context : contexts_) all += context.total;
    for (size_t i = 0; i < order.size(); ++i) {
      sum += contexts_[order[i]].total;
      const double place = 0.5 * sum / all + 0.5 * static_cast<double>(i) / static_cast<double>(order.size());
      table_of_[order[i]] = std::min(tables_ - 1, static_cast<uint32_t>(place * tables_));
    }
    count();
  }

  void count() {
    counts_.assign(size_t{tables_} * kMaxSymbols, 0);
    for (size_t i = 0; i < contexts_.size(); ++i) {
      uint64_t* of_table = &counts_[size_t{table_of_[i]} * kMaxSymbols];
      for (const auto& [symbol, times] : contexts_[i].symbols) of_table[symbol] += times;
    }
  }

  // Assigns to each context of each row the table that minimises its bits, including the bits of the row's code.
  void assign() {
    std::vector<float> lengths(size_t{tables_} * kMaxSymbols);
    for (uint32_t t = 0; t < tables_; ++t) {
      const uint64_t* of_table = &counts_[size_t{t} * kMaxSymbols];
      double total = 0;
      for (uint32_t i = 0; i < kMaxSymbols; ++i) total += static_cast<double>(of_table[i]);
      for (uint32_t i = 0; i < kMaxSymbols; ++i) {
        lengths[size_t{i} * tables_ + t] =
            static_cast<float>(logarithm(total + 5.12) - logarithm(static_cast<double>(of_table[i]) + 0.02));
      }
    }
    for (uint32_t c = 0; c < model_.channels; ++c) {
      for (uint32_t row = 0; row < rows_[c]; ++row) assign_row(c, row, lengths);
    }
    count();
  }

  void assign_row(uint32_t channel, uint32_t row, const std::vector<float>& lengths) {
    constexpr float kSame = 1, kNext = 2, kOther = 7;
    const int32_t* contexts = &first_[(size_t{channel} * kMaxRows + row) * kLevels];
    uint32_t levels = kLevels;
    while (levels > 0 && contexts[levels - 1] < 0) --levels;
    if (levels == 0) return;
    std::vector<float> cost(tables_, 0.0f), next(tables_), own(tables_);
    std::vector<uint8_t> from(size_t{levels} * tables_);
    for (uint32_t level = 0; level < levels; ++level) {
      const uint32_t cheapest = static_cast<uint32_t>(std::min_element(cost.begin(), cost.end()) - cost.begin());
      std::fill(own.begin(), own.end(), 0.0f);
      if (contexts[level] >= 0) {
        for (const auto& [symbol, times] : contexts_[static_cast<size_t>(contexts[level])].symbols) {
          const float* length = &lengths[size_t{symbol} * tables_];
          const float weight = static_cast<float>(times);
          for (uint32_t t = 0; t < tables_; ++t) own[t] += weight * length[t];
        }
      }
      for (uint32_t t = 0; t < tables_; ++t) {
        float best = cost[t] + kSame;
        uint32_t source = t;
        if (t > 0 && cost[t - 1] + kNext < best) {
          best = cost[t - 1] + kNext;
          source = t - 1;
        }
        if (cost[cheapest] + kOther < best) {
          best = cost[cheapest] + kOther;
          source = cheapest;
        }
        next[t] = best + own[t];
        from[size_t{level} * tables_ + t] = static_cast<uint8_t>(source);
      }
      std::swap(cost, next);
    }
    uint32_t t = static_cast<uint32_t>(std::min_element(cost.begin(), cost.end()) - cost.begin());
    for (uint32_t level = levels; level-- > 0;) {
      if (contexts[level] >= 0) table_of_[static_cast<size_t>(contexts[level])] = t;
      t = from[size_t{level} * tables_ + t];
    }
  }

  double bits_with_header(const uint64_t* counts) const {
    uint16_t frequencies[kMaxSymbols];
    normalise(counts, kMaxSymbols, frequencies);
    return own_bits(counts, kMaxSymbols) + table_bits(frequencies, kMaxSymbols) + 24;
  }

  // Merges adjacent tables for as long as that makes the file smaller.
  void merge() {
    std::vector<double> bits(tables_);
    for (uint32_t t = 0; t < tables_; ++t) bits[t] = bits_with_header(&counts_[size_t{t} * kMaxSymbols]);
    while (tables_ > 1) {
      double best = 0, best_bits = 0;
      uint32_t best_table = tables_;
      for (uint32_t t = 0; t + 1 < tables_; ++t) {
        uint64_t both[kMaxSymbols];
        for (uint32_t i = 0; i < kMaxSymbols; ++i) {
          both[i] = counts_[size_t{t} * kMaxSymbols + i] + counts_[size_t{t + 1} * kMaxSymbols + i];
        }
        // Most merges are far from profitable. Compute the size of the header only if a merge might be.
        if (own_bits(both, kMaxSymbols) > bits[t] + bits[t + 1]) continue;
        const double joined = bits_with_header(both);
        if (joined - bits[t] - bits[t + 1] < best) {
          best = joined - bits[t] - bits[t + 1];
          best_bits = joined;
          best_table = t;
        }
      }
      if (best_table == tables_) break;
      for (uint32_t& table : table_of_) table -= table > best_table ? 1 : 0;
      bits[best_table] = best_bits;
      bits.erase(bits.begin() + best_table + 1);
      --tables_;
      count();
    }
  }

  void drop_unused() {
    std::vector<uint32_t> renamed(tables_, 0);
    for (const uint32_t table : table_of_) renamed[table] = 1;
    uint32_t kept = 0;
    for (uint32_t& table : renamed) table = table != 0 ? kept++ : 0;
    for (uint32_t& table : table_of_) table = renamed[table];
    tables_ = std::max(kept, 1u);
  }

  // Levels without samples get the table of the next level that has some; after the last such level, its table.
  void fill_rows() {
    for (uint32_t c = 0; c < model_.channels; ++c) {
      const uint32_t sign_groups = RowMap(model_, c).sign_groups;
      for (uint32_t row = 0; row < rows_[c]; ++row) {
        uint8_t* levels = model_.table_of[c][row / sign_groups][row % sign_groups];
        const int32_t* contexts = &first_[(size_t{c} * kMaxRows + row) * kLevels];
        uint32_t table = 0;
        for (uint32_t level = 0; level < kLevels; ++level) {
          if (contexts[level] >= 0) table = table_of_[static_cast<size_t>(contexts[level])];
        }
        for (uint32_t level = kLevels; level-- > 0;) {
          if (contexts[level] >= 0) table = table_of_[static_cast<size_t>(contexts[level])];
          levels[level] = static_cast<uint8_t>(table);
        }
      }
    }
  }

  DenseModel& model_;
  uint32_t rows_[kMaxChannels] = {};
  uint32_t tables_ = 1;
  std::vector<Context> contexts_;
  std::vector<int32_t> first_;  // index of the context for each channel, row and level, or -1
  std::vector<uint32_t> table_of_;
  std::vector<uint64_t> counts_;
};

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

double fit_tables(SymbolCounts& counts, uint32_t maximum, uint32_t rounds, DenseModel& model) {
  return TableFit(counts, model).run(maximum, rounds);
}

template <class Model>
void fit_class_tables(const ClassCounts& counts, uint32_t channels, Model& model) {
  for (uint32_t c = 0; c < channels; ++c) {
    const uint32_t classes = model.classes[c];
    model.class_tables[c] = 0;
    if (classes == 1) continue;
    const uint32_t contexts = c == 0 ? 1 : model.classes[c - 1];
    struct Group {
      uint32_t counts[kMaxClasses];
      double bits;
    };
    std::vector<Group> groups(contexts);
    std::vector<uint32_t> group_of(contexts);
    const auto measure = [&](Group& group) {
      uint16_t frequencies[kMaxClasses];
      normalise(group.counts, classes, frequencies);
      group.bits = own_bits(group.counts, classes) + table_bits(frequencies, classes) + 24;
    };
    for (uint32_t k = 0; k < contexts; ++k) {
      std::memcpy(groups[k].counts, counts[c][k], sizeof(groups[k].counts));
      group_of[k] = k;
      measure(groups[k]);
    }
    while (groups.size() > 1) {
      double best = 1e300;
      uint32_t best_a = 0, best_b = 0;
      Group best_group{};
      for (uint32_t a = 1; a < groups.size(); ++a) {
        for (uint32_t b = 0; b < a; ++b) {
          Group both = groups[b];
          for (uint32_t i = 0; i < classes; ++i) both.counts[i] += groups[a].counts[i];
          measure(both);
          const double more = both.bits - groups[a].bits - groups[b].bits;
          if (more < best) {
            best = more;
            best_a = a;
            best_b = b;
            best_group = both;
          }
        }
      }
      if (best > 0 && groups.size() <= 8) break;
      groups[best_b] = best_group;
      groups.erase(groups.begin() + best_a);
      for (uint32_t& group : group_of) {
        group = group == best_a ? best_b : group > best_a ? group - 1 : group;
      }
    }
    model.class_tables[c] = static_cast<uint32_t>(groups.size());
    for (uint32_t i = 0; i < groups.size(); ++i) {
      std::memset(model.class_frequencies[c][i], 0, sizeof(model.class_frequencies[c][i]));
      normalise(groups[i].counts, classes, model.class_frequencies[c][i]);
    }
    for (uint32_t k = 0; k < contexts; ++k) model.class_table_of[c][k] = static_cast<uint8_t>(group_of[k]);
  }
}

template void fit_class_tables(const ClassCounts& counts, uint32_t channels, DenseModel& model);
template void fit_class_tables(const ClassCounts& counts, uint32_t channels, TokenModel& model);

void make_frequencies(const uint64_t* counts, uint32_t symbols, uint16_t* frequencies) {
  normalise(counts, symbols, frequencies);
}

}  // namespace l3
