// Implements token_statistics.h: fits the tables of tokens, matches, classes and still blocks to counts.
#include "encode/token_statistics.h"

#include <algorithm>
#include <cstring>

#include "encode/dense_statistics.h"
#include "encode/entropy.h"
#include "encode/row_tables.h"

namespace l3 {
namespace {

constexpr uint32_t kMaxLiteralTables = 34;
constexpr uint32_t kMinOtherTables = 20;     // that are left for numbers, if they may need so many
constexpr uint32_t kMinStillFrequency = 16;  // at least, for still blocks and for others
constexpr uint32_t kRowBits = 60;            // approximate cost of a row and its tables

constexpr RowKind rows_of(uint32_t symbols) { return {symbols, 0, 1, 2, 8, 0.05, 1}; }
constexpr RowKind kMatchRows = rows_of(kMatchSymbols), kTokenRows = rows_of(kTokens);

// The approximate size of a table that suits these counts.
double bits_of_table(const uint32_t* counts, uint32_t symbols) {
  uint64_t total = 0;
  uint32_t seen = 0;
  for (uint32_t i = 0; i < symbols; ++i) {
    total += counts[i];
    seen += counts[i] > 0;
  }
  return seen > 0 ? 0.5 * seen * logarithm(static_cast<double>(total) + 1) : 0;
}

// The counts of matches under each pattern: the equalities that a mask selects.
struct MatchCounts {
  uint32_t mask = kMatchPatterns - 1;
  std::vector<uint32_t> of;  // `size` numbers for each pattern

  // Without the equality that is bit `bit` of the patterns.
  MatchCounts without(uint32_t bit, uint32_t size) const {
    MatchCounts result{mask, std::vector<uint32_t>(of.size() / 2)};
    uint32_t equality = mask;
    for (uint32_t i = 0; i < bit; ++i) equality &= equality - 1;
    result.mask &= ~(equality & -equality);
    for (size_t pattern = 0; pattern < result.of.size() / size; ++pattern) {
      const size_t first = (pattern >> bit << (bit + 1)) | (pattern & ((size_t{1} << bit) - 1));
      const uint32_t *a = &of[first * size], *b = &of[(first | size_t{1} << bit) * size];
      for (uint32_t i = 0; i < size; ++i) result.of[pattern * size + i] = a[i] + b[i];
    }
    return result;
  }

  // The approximate cost: the bits of the symbols under each pattern, and of the tables of the patterns.
  double cost(uint32_t size) const {
    double bits = 1.2 * static_cast<double>(of.size() / size);
    for (size_t first = 0; first < of.size(); first += kMatchSymbols) {
      const uint32_t* const counts = &of[first];
      if (!occurs(counts, kMatchSymbols)) continue;
      bits += own_bits(counts, kMatchSymbols) + bits_of_table(counts, kMatchSymbols);
    }
    return bits;
  }
};

// Leaves out equalities for as long as that lowers the cost.
MatchCounts choose_mask(const std::vector<uint32_t>& matches, uint32_t size) {
  MatchCounts best{kMatchPatterns - 1, matches};
  double cost = best.cost(size);
  for (bool is_better = true; is_better;) {
    is_better = false;
    const MatchCounts before = best;
    for (uint32_t bit = 0; 1u << bit < before.of.size() / size; ++bit) {
      MatchCounts without = before.without(bit, size);
      const double cost_without = without.cost(size);
      if (cost_without >= cost) continue;
      cost = cost_without;
      best = std::move(without);
      is_better = true;
    }
  }
  return best;
}

// Numbers rows in the order in which patterns first use them. A pattern without samples gets the row of the one
// before.
uint32_t number_rows(const std::vector<uint32_t>& counts, uint32_t patterns, uint32_t size, const uint8_t* groups,
                     uint8_t* rows) {
  int32_t number_of[kMatchPatterns];
  std::fill(number_of, number_of + kMatchPatterns, -1);
  int32_t next = 0;
  uint32_t first_seen = 0;
  const auto seen = [&](uint32_t i) { return occurs(&counts[size_t{i} * size], size); };
  while (first_seen + 1 < patterns && !seen(first_seen)) ++first_seen;
  for (uint32_t i = 0; i < patterns; ++i) {
    const uint32_t like = i <= first_seen ? first_seen : i;
    if (i > first_seen && !seen(i)) {
      rows[i] = rows[i - 1];
      continue;
    }
    int32_t& number = number_of[groups[like]];
    if (number < 0) number = next++;
    rows[i] = static_cast<uint8_t>(number);
  }
  return static_cast<uint32_t>(std::max(next, 1));
}

void fit_matches(const std::vector<uint32_t>& matches, const TokenEffort& effort, TokenModel& model) {
  const uint32_t octaves = model.columns();
  const uint32_t size = octaves * kMatchSymbols;
  const MatchCounts chosen = choose_mask(matches, size);
  const std::vector<uint32_t>& counts = chosen.of;
  model.match_mask = chosen.mask;
  const uint32_t patterns = static_cast<uint32_t>(counts.size() / size);
  uint8_t groups[kMatchPatterns];
  group_values(counts, patterns, octaves, kMatchSymbols, kMaxMatchRows, kRowBits, groups);
  const uint32_t rows = number_rows(counts, patterns, size, groups, model.match_row);
  std::vector<uint32_t> of_rows(size_t{rows} * size);
  for (uint32_t i = 0; i < patterns; ++i) {
    for (uint32_t k = 0; k < size; ++k) of_rows[size_t{model.match_row[i]} * size + k] += counts[size_t{i} * size + k];
  }
  RowTables tables(kMatchRows);
  for (uint32_t row = 0; row < rows; ++row) tables.add_row(&of_rows[size_t{row} * size], octaves);
  const uint32_t others = model.literal ? std::min(kMinOtherTables, 1u << model.depth[0]) : kMinOtherTables;
  tables.fit(kMaxTokenTables - others, effort.table_rounds);
  for (uint32_t row = 0; row < rows; ++row) {
    for (uint32_t octave = 0; octave < kMatchOctaves; ++octave) {
      model.match_table[row][octave] = tables.table_of(row, std::min(octave, octaves - 1));
    }
  }
  std::memset(model.frequencies, 0, sizeof(model.frequencies));
  for (uint32_t t = 0; t < tables.table_count(); ++t) tables.frequencies(t, model.frequencies[t]);
  model.table_count = tables.table_count();
}

}  // namespace

TokenCounts::TokenCounts(const TokenModel& model) : channels_(model.engine_channels) {
  matches_.resize(model.match ? size_t{kMatchPatterns} * model.columns() * kMatchSymbols : 0);
  for (uint32_t c = 0; c < channels_; ++c) {
    const TokenRows rows(model, c);
    sign_groups_[c] = rows.sign_groups;
    rows_[c] = rows.rows;
    tokens_[c].resize(size_t{model.literal ? kLiteralContexts : rows_[c] * kTokenLevels} * kTokens);
  }
}

void TokenCounts::add(const TokenCounts& other) {
  const auto join = [](std::vector<uint32_t>& to, const std::vector<uint32_t>& from) {
    for (size_t i = 0; i < to.size(); ++i) to[i] += from[i];
  };
  join(matches_, other.matches_);
  for (uint32_t i = 0; i < 4; ++i) still_[i / 2][i % 2] += other.still_[i / 2][i % 2];
  for (uint32_t i = 0; i < 2 * kRowContexts; ++i) rows_still_[i / 2][i % 2] += other.rows_still_[i / 2][i % 2];
  for (uint32_t c = 0; c < kMaxChannels; ++c) {
    join(tokens_[c], other.tokens_[c]);
    for (uint32_t before = 0; before < kMaxClasses; ++before) {
      for (uint32_t k = 0; k < kMaxClasses; ++k) classes_[c][before][k] += other.classes_[c][before][k];
    }
  }
}

void TokenCounts::add(const TokenSymbols& symbols, uint32_t width, uint32_t height) {
  const size_t pixels = size_t{width} * height;
  const uint32_t across = ceil_div(width, kBlockEdge), blocks = across * ceil_div(height, kBlockEdge);
  if (symbols.rows != nullptr) {
    const std::vector<uint8_t> contexts = row_contexts(symbols, width, height, kLanes);
    for (size_t i = 0; i < contexts.size(); ++i) {
      if (contexts[i] != kNoSymbol) ++rows_still_[contexts[i]][symbols.rows[i / kBlockEdge] >> i % kBlockEdge & 1];
    }
  }
  const uint8_t* const of = symbols.symbols.get();
  if (symbols.matches != nullptr) {
    for (size_t i = 0; i < pixels; ++i) {
      if (of[i] != kNoSymbol) ++matches_[size_t{symbols.matches[i]} * kMatchSymbols + of[i]];
    }
  }
  for (uint32_t b = 0; b < blocks; ++b) ++still_[b >= across && symbols.still[b - across] != 0][symbols.still[b]];
  for (uint32_t c = 0; c < channels_; ++c) {
    for (uint32_t b = 0; b < blocks; ++b) {
      if (symbols.still[b] != 0) continue;
      ++classes_[c][c > 0 ? symbols.classes[c - 1][b] : 0][symbols.classes[c][b]];
    }
    for (size_t i = 0; i < pixels; ++i) {
      if (of[i] != kMatchNone) continue;
      ++tokens_[c][size_t{symbols.contexts[c][i]} * kTokens + token_of(symbols.numbers[c][i])];
    }
  }
}

double TokenCounts::bits(const TokenModel& model) const {
  double sum = 0;
  const auto add = [&](const uint32_t* counts, uint32_t symbols, const uint16_t* frequencies) {
    for (uint32_t i = 0; i < symbols; ++i) {
      if (counts[i] == 0) continue;
      const double length = frequencies[i] > 0 ? kProbabilityBits - logarithm(frequencies[i]) : 2 * kProbabilityBits;
      sum += counts[i] * (length + (symbols == kTokens ? raw_bits_of(i) : 0));
    }
  };
  const auto add_binary = [&](const uint32_t(&counts)[2], uint32_t frequency) {
    const double still = logarithm(frequency), not_still = logarithm(kProbabilities - frequency);
    sum += counts[1] * (kProbabilityBits - still) + counts[0] * (kProbabilityBits - not_still);
  };
  for (uint32_t above = 0; above < 2 && model.still; ++above) add_binary(still_[above], model.still_frequency[above]);
  for (uint32_t i = 0; i < kRowContexts && model.rows; ++i) add_binary(rows_still_[i], model.row_frequency[i]);
  const uint32_t octaves = model.columns();
  for (uint32_t i = 0; i < matches_.size() / kMatchSymbols; ++i) {
    const uint32_t row = model.match_row[pattern_of(i / octaves, model.match_mask)];
    add(&matches_[size_t{i} * kMatchSymbols], kMatchSymbols, model.frequencies[model.match_table[row][i % octaves]]);
  }
  for (uint32_t c = 0; c < model.engine_channels; ++c) {
    for (uint32_t i = 0; i < tokens_[c].size() / kTokens; ++i) {
      const uint32_t row = i / kTokenLevels;
      const uint32_t table = model.literal
                                 ? model.literal_table[i]
                                 : model.table_of[c][row / sign_groups_[c]][row % sign_groups_[c]][i % kTokenLevels];
      add(&tokens_[c][size_t{i} * kTokens], kTokens, model.frequencies[table]);
    }
  }
  return sum;
}

double TokenCounts::estimate(double share) const {
  double bits = 0, tables = 0;
  const auto add = [&](const uint32_t* counts, uint32_t symbols) {
    bits += own_bits(counts, symbols);
    tables += bits_of_table(counts, symbols);
  };
  for (const auto& of_above : still_) bits += own_bits(of_above, 2);
  for (const auto& of_context : rows_still_) bits += own_bits(of_context, 2);
  if (!matches_.empty()) {
    const uint32_t size = static_cast<uint32_t>(matches_.size()) / kMatchPatterns;
    const MatchCounts chosen = choose_mask(matches_, size);
    for (size_t first = 0; first < chosen.of.size(); first += kMatchSymbols) add(&chosen.of[first], kMatchSymbols);
  }
  for (uint32_t c = 0; c < channels_; ++c) {
    const std::vector<uint32_t>& tokens = tokens_[c];
    const bool literal = tokens.size() == size_t{kLiteralContexts} * kTokens;
    const size_t size = kTokens * (literal ? 1 : 4);  // levels of an octave are much alike
    for (size_t first = 0; first < tokens.size(); first += size) {
      uint32_t of_tokens[kTokens] = {};
      for (size_t i = 0; i < size; ++i) of_tokens[i % kTokens] += tokens[first + i];
      uint64_t raw_bits = 0;
      for (uint32_t token = 0; token < kTokens; ++token) raw_bits += uint64_t{of_tokens[token]} * raw_bits_of(token);
      bits += static_cast<double>(raw_bits);
      add(of_tokens, kTokens);
    }
  }
  return bits / share + tables;
}

void fit_token_groups(const TokenTiles& tiles, const TokenKernels& kernels, uint32_t c, double share,
                      const TokenEffort& effort, TokenModel& model) {
  const uint32_t contexts = ceil_div(kMatchOctaves, effort.group_octaves);
  std::vector<uint32_t> by_zone(size_t{kZones} * contexts * kTokens);
  std::vector<uint32_t> by_pattern(size_t{kSignPatterns} * contexts * kTokens);
  for (const auto& tile : tiles) {
    const TokenPlanes& planes = tile->planes();
    const auto places = std::make_unique_for_overwrite<TokenPlace[]>(tile->pixels());
    kernels.read_symbols(planes, c, model.activity[c], model.depth[c], places.get());
    const TokenPlace* place = places.get();
    for (uint32_t y = 0; y < planes.height; ++y) {
      for (uint32_t x = 0; x < planes.width; ++x, ++place) {
        if (planes.symbols[y * planes.pitch + x] != kMatchNone) continue;
        const uint32_t token = token_of(place->number), context = place->level / (4 * effort.group_octaves);
        ++by_zone[(place->zone * contexts + context) * kTokens + token];
        ++by_pattern[(place->pattern * contexts + context) * kTokens + token];
      }
    }
  }
  const double price = 120 * share;
  group_values(std::move(by_zone), kZones, contexts, kTokens, kMaxZoneGroups, 3 * price, model.zone_group[c]);
  group_values(std::move(by_pattern), kSignPatterns, contexts, kTokens, kMaxSignGroups, price, model.sign_group[c]);
}

void fit_token_tables(const TokenCounts& counts, const TokenEffort& effort, TokenModel& model) {
  model.table_count = 0;
  const auto frequency_of = [](const uint32_t(&of)[2]) {
    // Add one to each count, since tiles that were not seen may contain either kind.
    const uint64_t all = uint64_t{of[0]} + of[1] + 2, share = kProbabilities * (uint64_t{of[1]} + 1) / all;
    return static_cast<uint32_t>(std::clamp<uint64_t>(share, kMinStillFrequency, kProbabilities - kMinStillFrequency));
  };
  for (uint32_t above = 0; above < 2 && model.still; ++above) {
    model.still_frequency[above] = frequency_of(counts.still_[above]);
  }
  for (uint32_t i = 0; i < kRowContexts && model.rows; ++i)
    model.row_frequency[i] = frequency_of(counts.rows_still_[i]);
  if (model.match) fit_matches(counts.matches_, effort, model);
  const uint32_t first = model.table_count;
  RowTables tables(kTokenRows);
  if (model.literal) {
    tables.add_row(counts.tokens_[0].data(), kLiteralContexts);
  } else {
    for (uint32_t c = 0; c < model.engine_channels; ++c) {
      for (uint32_t row = 0; row < counts.rows_[c]; ++row) {
        tables.add_row(&counts.tokens_[c][size_t{row} * kTokenLevels * kTokens], kTokenLevels);
      }
    }
  }
  const uint32_t maximum = std::min(kMaxTokenTables - first, model.literal ? kMaxLiteralTables : effort.tables);
  tables.fit(maximum, effort.table_rounds);
  uint32_t row = 0;
  for (uint32_t w = 0; w < kLiteralContexts && model.literal; ++w) {
    model.literal_table[w] = static_cast<uint8_t>(first + tables.table_of(0, w));
  }
  for (uint32_t c = 0; c < model.engine_channels && !model.literal; ++c) {
    for (uint32_t z = 0; z < counts.rows_[c] / counts.sign_groups_[c]; ++z) {
      for (uint32_t s = 0; s < counts.sign_groups_[c]; ++s, ++row) {
        for (uint32_t level = 0; level < kTokenLevels; ++level) {
          model.table_of[c][z][s][level] = static_cast<uint8_t>(first + tables.table_of(row, level));
        }
      }
    }
  }
  for (uint32_t t = 0; t < tables.table_count(); ++t) tables.frequencies(t, model.frequencies[first + t]);
  model.table_count = first + tables.table_count();
  if (!model.literal) fit_class_tables(counts.classes_, model.engine_channels, model);
}

}  // namespace l3
