// Fits tables to the counts of symbols.
#include "encode/dense_statistics.h"

#include <algorithm>
#include <cstring>

#include "encode/entropy.h"

namespace l3 {
namespace {

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
      make_frequencies(&counts_[size_t{t} * kMaxSymbols], kMaxSymbols, model_.frequencies[t]);
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
    make_frequencies(counts, kMaxSymbols, frequencies);
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

double fit_tables(SymbolCounts& counts, uint32_t maximum, uint32_t rounds, DenseModel& model) {
  return TableFit(counts, model).run(maximum, rounds);
}

}  // namespace l3
