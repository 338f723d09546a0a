// Fits tables to rows of contexts: which contexts share a table, and the tables' frequencies. How to fit is not part
// of the format.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace l3 {

class RowTables {
 public:
  explicit RowTables(uint32_t symbols) : symbols_(symbols) {}

  // Adds a row of adjacent contexts, with the counts of their symbols.
  void add_row(const uint32_t* counts, uint32_t contexts);

  // Finds at most `maximum` tables and assigns one to each context.
  void fit(uint32_t maximum, uint32_t rounds);

  uint32_t table_count() const { return tables_; }
  // Contexts without symbols have the table of the context before them.
  uint8_t table_of(uint32_t row, uint32_t context) const { return rows_[row][context].table; }
  void frequencies(uint32_t table, uint16_t* frequencies) const;
  // The bits of everything that is coded, tables and rows included.
  double bits() const;

 private:
  struct Context {
    std::vector<std::pair<uint32_t, uint32_t>> seen;  // symbols that were seen, and how often
    double total = 0, mean = 0;
    uint8_t table = 0;
  };

  void start();
  void count();
  void assign();
  void assign_row(std::vector<Context>& row, const std::vector<float>& lengths);
  void merge();
  void drop_unused();
  double table_bits_of(const uint64_t* counts) const;
  template <class Use>
  void for_contexts(const Use& use);

  const uint32_t symbols_;
  uint32_t tables_ = 0;
  std::vector<std::vector<Context>> rows_;
  std::vector<uint64_t> counts_;
};

// Groups the values of a property by the symbols that occur with them. `counts` has `contexts` * `symbols` numbers for
// each value. Makes at most `maximum` groups, each of which saves at least `price` bits.
uint32_t group_values(std::vector<uint32_t> counts, uint32_t values, uint32_t contexts, uint32_t symbols,
                      uint32_t maximum, double price, uint8_t* groups);

}  // namespace l3
