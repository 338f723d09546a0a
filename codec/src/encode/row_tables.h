// Fits tables to rows of contexts: which contexts share a table, and the tables' frequencies. How to fit is not part
// of the format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace l3 {

// What differs between the rows of different kinds of models.
struct RowKind {
  uint32_t symbols;
  // The bits that a context's table takes in the code of its row: of the first context; then the same table as before,
  // the next one, or another one.
  float first, same, next, other;
  double unseen;             // what is added to each count, so that symbols that were not seen have a length too
  uint32_t symbols_of_size;  // how many symbols, except for symbol 0, have the same size: one, or two of either sign
};

class RowTables {
 public:
  explicit RowTables(const RowKind& kind) : kind_(kind), symbols_(kind.symbols) {}

  // Adds a row of adjacent contexts, with the counts of their symbols.
  void add_row(const uint32_t* counts, uint32_t contexts);

  // Finds at most `maximum` tables and assigns one to each context: merges any two tables, and orders them by the size
  // of their symbols. Contexts without symbols get the table of the context before them.
  void fit(uint32_t maximum, uint32_t rounds);
  // The same, but merges only adjacent tables and keeps their order. Contexts without symbols get the table of the
  // context after them.
  void fit_in_order(uint32_t maximum, uint32_t rounds);

  uint32_t table_count() const { return tables_; }
  uint8_t table_of(uint32_t row, uint32_t context) const { return rows_[row][context].table; }
  void frequencies(uint32_t table, uint16_t* frequencies) const;
  // How often each symbol is coded with a table.
  const uint64_t* counts(uint32_t table) const { return &counts_[size_t{table} * symbols_]; }
  // The bits of everything that is coded, tables and rows included.
  double bits() const;

 private:
  struct Context {
    std::vector<std::pair<uint32_t, uint32_t>> seen;  // symbols that were seen, and how often
    double total = 0, mean = 0;
    uint8_t table = 0;
  };

  uint32_t size_of(uint32_t symbol) const { return (symbol + kind_.symbols_of_size - 1) / kind_.symbols_of_size; }
  void start(uint32_t maximum);
  void count();
  void assign(uint32_t rounds);
  void assign_row(std::vector<Context>& row, const std::vector<float>& lengths);
  void merge(uint32_t maximum);
  void merge_adjacent();
  void drop_unused(bool by_size);
  // Gives a table to contexts without symbols. The iterators are those of a row, in either direction.
  template <class Iterator>
  static void fill_row(Iterator first, Iterator end);
  double written_bits(const uint64_t* counts) const;
  double table_bits_of(const uint64_t* counts) const;
  template <class Use>
  void for_contexts(const Use& use);

  const RowKind& kind_;
  const uint32_t symbols_;
  uint32_t tables_ = 0;
  std::vector<std::vector<Context>> rows_;
  std::vector<uint64_t> counts_;
};

// Groups the values of a property by the symbols that occur with them. `counts` has `contexts` * `symbols` numbers for
// each value. Makes at most `maximum` groups, each of which saves at least `price` bits.
void group_values(std::vector<uint32_t> counts, uint32_t values, uint32_t contexts, uint32_t symbols, uint32_t maximum,
                  double price, uint8_t* groups);

}  // namespace l3
