// Implements frequencies.h.
#include "encode/frequencies.h"

#include <algorithm>
#include <cstring>

#include "encode/entropy.h"
#include "encode/token_model.h"

namespace l3 {
namespace {

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

}  // namespace

void make_frequencies(const uint32_t* counts, uint32_t symbols, uint16_t* frequencies) {
  normalise(counts, symbols, frequencies);
}

void make_frequencies(const uint64_t* counts, uint32_t symbols, uint16_t* frequencies) {
  normalise(counts, symbols, frequencies);
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
      make_frequencies(group.counts, classes, frequencies);
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
      make_frequencies(groups[i].counts, classes, model.class_frequencies[c][i]);
    }
    for (uint32_t k = 0; k < contexts; ++k) model.class_table_of[c][k] = static_cast<uint8_t>(group_of[k]);
  }
}

template void fit_class_tables(const ClassCounts& counts, uint32_t channels, DenseModel& model);
template void fit_class_tables(const ClassCounts& counts, uint32_t channels, TokenModel& model);

}  // namespace l3
