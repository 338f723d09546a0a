// Implements row_tables.h: assigns contexts to tables by code length, and merges tables and groups.
#include "encode/row_tables.h"

#include <algorithm>

#include "encode/dense_statistics.h"
#include "encode/entropy.h"

namespace l3 {

template <class Use>
void RowTables::for_contexts(const Use& use) {
  for (auto& row : rows_) {
    for (Context& context : row) {
      if (context.total > 0) use(context);
    }
  }
}

void RowTables::add_row(const uint32_t* counts, uint32_t contexts) {
  std::vector<Context> row(contexts);
  for (Context& context : row) {
    for (uint32_t symbol = 0; symbol < symbols_; ++symbol, ++counts) {
      if (*counts == 0) continue;
      context.seen.emplace_back(symbol, *counts);
      context.total += *counts;
      context.mean += static_cast<double>(*counts) * size_of(symbol);
    }
    if (context.total > 0) context.mean /= context.total;
  }
  rows_.push_back(std::move(row));
}

void RowTables::fit(uint32_t maximum, uint32_t rounds) {
  start(2 * maximum);
  assign(rounds);
  merge(maximum);
  assign((rounds + 1) / 2);
  merge(maximum);
  drop_unused(true);
  for (auto& row : rows_) fill_row(row.begin(), row.end());
}

void RowTables::fit_in_order(uint32_t maximum, uint32_t rounds) {
  start(maximum);
  assign(rounds);
  merge_adjacent();
  assign((rounds + 1) / 3);
  drop_unused(false);
  for (auto& row : rows_) fill_row(row.rbegin(), row.rend());
}

// The initial tables. Contexts are sorted by the size of their symbols and divided evenly among the tables. The number
// of symbols and the number of contexts count half each. If there are enough tables, each context has its own.
void RowTables::start(uint32_t maximum) {
  std::vector<Context*> order;
  double all = 0, sum = 0;
  for_contexts([&](Context& context) {
    order.push_back(&context);
    all += context.total;
  });
  std::stable_sort(order.begin(), order.end(), [](const Context* a, const Context* b) { return a->mean < b->mean; });
  tables_ = static_cast<uint32_t>(std::clamp<size_t>(order.size(), 1, maximum));
  for (size_t i = 0; i < order.size(); ++i) {
    sum += order[i]->total;
    const double place = 0.5 * sum / all + 0.5 * static_cast<double>(i) / static_cast<double>(order.size());
    const uint32_t table = order.size() <= maximum ? static_cast<uint32_t>(i) : static_cast<uint32_t>(place * tables_);
    order[i]->table = static_cast<uint8_t>(std::min(tables_ - 1, table));
  }
  count();
}

void RowTables::count() {
  counts_.assign(size_t{tables_} * symbols_, 0);
  for_contexts([&](const Context& context) {
    for (const auto& [symbol, times] : context.seen) counts_[size_t{context.table} * symbols_ + symbol] += times;
  });
}

// Assigns to each context of each row the table that minimises its bits, including the bits of the row's code.
void RowTables::assign(uint32_t rounds) {
  for (uint32_t round = 0; round < rounds; ++round) {
    std::vector<float> lengths(size_t{symbols_} * tables_);
    for (uint32_t t = 0; t < tables_; ++t) {
      double total = 0;
      for (uint32_t i = 0; i < symbols_; ++i) total += static_cast<double>(counts(t)[i]);
      for (uint32_t i = 0; i < symbols_; ++i) {
        lengths[size_t{i} * tables_ + t] = static_cast<float>(
            logarithm(total + kind_.unseen * symbols_) - logarithm(static_cast<double>(counts(t)[i]) + kind_.unseen));
      }
    }
    for (auto& row : rows_) assign_row(row, lengths);
    count();
  }
}

void RowTables::assign_row(std::vector<Context>& row, const std::vector<float>& lengths) {
  size_t size = row.size();
  while (size > 0 && row[size - 1].total == 0) --size;
  if (size == 0) return;
  std::vector<float> cost(tables_, 0.0f), next(tables_), own(tables_);
  std::vector<uint8_t> from(size * tables_);
  for (size_t i = 0; i < size; ++i) {
    const uint32_t cheapest = static_cast<uint32_t>(std::min_element(cost.begin(), cost.end()) - cost.begin());
    std::fill(own.begin(), own.end(), 0.0f);
    for (const auto& [symbol, times] : row[i].seen) {
      const float* length = &lengths[size_t{symbol} * tables_];
      const float weight = static_cast<float>(times);
      for (uint32_t t = 0; t < tables_; ++t) own[t] += weight * length[t];
    }
    for (uint32_t t = 0; t < tables_; ++t) {
      float best = cost[t] + (i > 0 ? kind_.same : kind_.first);
      uint32_t source = t;
      if (t > 0 && cost[t - 1] + kind_.next < best) {
        best = cost[t - 1] + kind_.next;
        source = t - 1;
      }
      if (cost[cheapest] + kind_.other < best) {
        best = cost[cheapest] + kind_.other;
        source = cheapest;
      }
      next[t] = best + own[t];
      from[i * tables_ + t] = static_cast<uint8_t>(source);
    }
    cost.swap(next);
  }
  uint32_t table = static_cast<uint32_t>(std::min_element(cost.begin(), cost.end()) - cost.begin());
  for (size_t i = size; i < row.size(); ++i) row[i].table = static_cast<uint8_t>(table);
  for (size_t i = size; i-- > 0;) {
    row[i].table = static_cast<uint8_t>(table);
    table = from[i * tables_ + table];
  }
}

double RowTables::written_bits(const uint64_t* counts) const {
  uint16_t frequencies[kMaxSymbols];
  make_frequencies(counts, symbols_, frequencies);
  return table_bits(frequencies, symbols_);
}

double RowTables::table_bits_of(const uint64_t* counts) const {
  const bool is_used = std::any_of(counts, counts + symbols_, [](uint64_t count) { return count != 0; });
  return is_used ? written_bits(counts) + 8 : 0;
}

// Merges adjacent tables for as long as that makes the file smaller.
void RowTables::merge_adjacent() {
  const auto bits_of = [&](const uint64_t* of_table) {
    return own_bits(of_table, symbols_) + written_bits(of_table) + 24;
  };
  std::vector<double> bits(tables_);
  for (uint32_t t = 0; t < tables_; ++t) bits[t] = bits_of(counts(t));
  std::vector<uint64_t> both(symbols_);
  while (tables_ > 1) {
    double best = 0, best_bits = 0;
    uint32_t best_table = tables_;
    for (uint32_t t = 0; t + 1 < tables_; ++t) {
      for (uint32_t i = 0; i < symbols_; ++i) both[i] = counts(t)[i] + counts(t + 1)[i];
      // Most merges are far from profitable. Compute the size of the header only if a merge might be.
      if (own_bits(both.data(), symbols_) > bits[t] + bits[t + 1]) continue;
      const double joined = bits_of(both.data());
      if (joined - bits[t] - bits[t + 1] < best) {
        best = joined - bits[t] - bits[t + 1];
        best_bits = joined;
        best_table = t;
      }
    }
    if (best_table == tables_) break;
    for_contexts([&](Context& context) {
      if (context.table > best_table) --context.table;
    });
    bits[best_table] = best_bits;
    bits.erase(bits.begin() + best_table + 1);
    --tables_;
    count();
  }
}

// Merges the two tables that lose least by it, for as long as they lose less than a table costs, or there are too many.
void RowTables::merge(uint32_t maximum) {
  std::vector<double> bits(tables_), table_size(tables_);
  const auto of = [&](uint32_t t) { return &counts_[size_t{t} * symbols_]; };
  std::vector<bool> alive(tables_);
  uint32_t count_alive = 0;
  for (uint32_t t = 0; t < tables_; ++t) {
    bits[t] = own_bits(of(t), symbols_);
    table_size[t] = table_bits_of(of(t));
    alive[t] = table_size[t] > 0;
    count_alive += alive[t];
  }
  std::vector<uint64_t> joined(symbols_);
  const auto gain_of = [&](uint32_t a, uint32_t b) {
    for (uint32_t i = 0; i < symbols_; ++i) joined[i] = of(a)[i] + of(b)[i];
    const double table = std::max(table_size[a], table_size[b]) + 4;
    return bits[a] + bits[b] + table_size[a] + table_size[b] - own_bits(joined.data(), symbols_) - table;
  };
  std::vector<double> gains(size_t{tables_} * tables_, -1e300);
  for (uint32_t a = 0; a < tables_; ++a) {
    for (uint32_t b = 0; b < a; ++b) {
      if (alive[a] && alive[b]) gains[a * tables_ + b] = gain_of(a, b);
    }
  }
  for (;;) {
    const size_t best = static_cast<size_t>(std::max_element(gains.begin(), gains.end()) - gains.begin());
    if (gains[best] <= 0 && count_alive <= maximum) break;
    const uint32_t a = static_cast<uint32_t>(best / tables_), b = static_cast<uint32_t>(best % tables_);
    for (uint32_t i = 0; i < symbols_; ++i) {
      of(b)[i] += of(a)[i];
      of(a)[i] = 0;
    }
    for_contexts(
        [&](Context& context) { context.table = static_cast<uint8_t>(context.table == a ? b : context.table); });
    alive[a] = false;
    --count_alive;
    bits[b] = own_bits(of(b), symbols_);
    table_size[b] = table_bits_of(of(b));
    for (uint32_t t = 0; t < tables_; ++t) {
      gains[std::max(a, t) * tables_ + std::min(a, t)] = -1e300;
      if (t != b && alive[t])
        gains[std::max(b, t) * tables_ + std::min(b, t)] = gain_of(std::max(b, t), std::min(b, t));
    }
  }
}

// If tables are sorted by the size of their symbols, rows more often refer to the next table, which is cheap.
void RowTables::drop_unused(bool by_size) {
  count();
  struct Kept {
    double mean;
    uint32_t table;
  };
  std::vector<Kept> kept;
  for (uint32_t t = 0; t < tables_; ++t) {
    double total = 0, sum = 0;
    for (uint32_t i = 0; i < symbols_; ++i) {
      total += static_cast<double>(counts(t)[i]);
      sum += static_cast<double>(counts(t)[i]) * i;
    }
    if (total > 0) kept.push_back({sum / total, t});
  }
  if (kept.empty()) kept.push_back({0, 0});
  if (by_size) {
    std::stable_sort(kept.begin(), kept.end(), [](const Kept& a, const Kept& b) { return a.mean < b.mean; });
  }
  std::vector<uint8_t> renamed(tables_);
  for (size_t i = 0; i < kept.size(); ++i) renamed[kept[i].table] = static_cast<uint8_t>(i);
  for_contexts([&](Context& context) { context.table = renamed[context.table]; });
  tables_ = static_cast<uint32_t>(kept.size());
  count();
}

template <class Iterator>
void RowTables::fill_row(Iterator first, Iterator end) {
  const Iterator seen = std::find_if(first, end, [](const Context& context) { return context.total > 0; });
  uint8_t table = seen != end ? seen->table : 0;
  for (; first != end; ++first) {
    if (first->total == 0) first->table = table;
    table = first->table;
  }
}

void RowTables::frequencies(uint32_t table, uint16_t* frequencies) const {
  make_frequencies(counts(table), symbols_, frequencies);
}

double RowTables::bits() const {
  double sum = 0;
  for (uint32_t t = 0; t < tables_; ++t) {
    sum += own_bits(counts(t), symbols_) + table_bits_of(counts(t));
  }
  for (const auto& row : rows_) {
    sum += 2 * kind_.other;
    for (size_t i = 1; i < row.size() && row[i].total > 0; ++i) {
      sum += row[i].table == row[i - 1].table       ? kind_.same
             : row[i].table == row[i - 1].table + 1 ? kind_.next
                                                    : kind_.other;
    }
  }
  return sum;
}

void group_values(std::vector<uint32_t> counts, uint32_t values, uint32_t contexts, uint32_t symbols, uint32_t maximum,
                  double price, uint8_t* groups) {
  if (symbols > 64) __builtin_trap();
  const size_t size = size_t{contexts} * symbols;
  // By value and context: totals, and a bit for each symbol that occurs.
  std::vector<uint64_t> totals(size_t{values} * contexts), seen(totals.size());
  // What each count and each total adds to the entropy.
  std::vector<double> terms(counts.size()), total_terms(totals.size());
  const auto update = [&](uint32_t value) {
    for (size_t i = size_t{value} * contexts; i < size_t{value + 1} * contexts; ++i) {
      totals[i] = seen[i] = 0;
      for (uint32_t symbol = 0; symbol < symbols; ++symbol) {
        const size_t k = i * symbols + symbol;
        if (counts[k] == 0) continue;
        totals[i] += counts[k];
        seen[i] |= uint64_t{1} << symbol;
        terms[k] = entropy_term(counts[k]);
      }
      total_terms[i] = entropy_term(totals[i]);
    }
  };
  const auto loss_of = [&](uint32_t a, uint32_t b) {
    double loss = 0;
    for (uint32_t context = 0; context < contexts; ++context) {
      const size_t of_a = size_t{a} * contexts + context, of_b = size_t{b} * contexts + context;
      if (totals[of_a] == 0 || totals[of_b] == 0) continue;
      double joined = 0;
      for (uint64_t left = seen[of_a] & seen[of_b]; left != 0; left &= left - 1) {
        const uint32_t symbol = static_cast<uint32_t>(__builtin_ctzll(left));
        const size_t in_a = of_a * symbols + symbol, in_b = of_b * symbols + symbol;
        joined += entropy_term(counts[in_a] + uint64_t{counts[in_b]}) - terms[in_a] - terms[in_b];
      }
      loss += entropy_term(totals[of_a] + totals[of_b]) - total_terms[of_a] - total_terms[of_b] - joined;
    }
    return loss;
  };
  std::vector<uint32_t> alive, group(values);
  for (uint32_t i = 0; i < values; ++i) {
    // Values that never occur cost nothing in the first group. In small images most do not.
    group[i] = occurs(&counts[i * size], size) ? i : 0;
    if (group[i] != i) continue;
    alive.push_back(i);
    update(i);
  }
  std::vector<double> loss(size_t{values} * values);
  for (const uint32_t a : alive) {
    for (const uint32_t* b = alive.data(); *b < a; ++b) loss[a * values + *b] = loss_of(a, *b);
  }
  while (alive.size() > 1) {
    uint32_t best_a = 0, best_b = 0;
    double best = 1e300;
    for (const uint32_t a : alive) {
      const double* const of_a = &loss[a * values];
      for (const uint32_t* b = alive.data(); *b < a; ++b) {
        if (of_a[*b] >= best) continue;
        best = of_a[*b];
        best_a = a;
        best_b = *b;
      }
    }
    if (alive.size() <= maximum && best > price) break;
    for (size_t i = 0; i < size; ++i) counts[best_b * size + i] += counts[best_a * size + i];
    update(best_b);
    for (uint32_t& g : group) g = g == best_a ? best_b : g;
    alive.erase(std::find(alive.begin(), alive.end(), best_a));
    for (const uint32_t other : alive) {
      if (other != best_b) {
        loss[std::max(other, best_b) * values + std::min(other, best_b)] =
            loss_of(std::max(other, best_b), std::min(other, best_b));
      }
    }
  }
  for (uint32_t i = 0; i < values; ++i) {
    groups[i] = static_cast<uint8_t>(std::find(alive.begin(), alive.end(), group[i]) - alive.begin());
  }
}

}  // namespace l3
