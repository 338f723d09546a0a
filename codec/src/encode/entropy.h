// The entropy of symbols: the least that coding them takes. Every processor computes the same numbers.
#pragma once

#include <algorithm>
#include <cstddef>

#include "container/logarithm.h"

namespace l3 {

struct EntropyTerms {
  static constexpr uint32_t kKnown = 4096;
  double known[kKnown];

  constexpr EntropyTerms() : known() {
    for (uint32_t n = 1; n < kKnown; ++n) known[n] = n * logarithm(n);
  }
};
inline constexpr EntropyTerms kEntropyTerms;

// n log2 n.
inline double entropy_term(uint64_t n) {
  return n < EntropyTerms::kKnown ? kEntropyTerms.known[n] : static_cast<double>(n) * logarithm(static_cast<double>(n));
}

// Whether any of these counts is not 0.
inline bool occurs(const uint32_t* counts, size_t size) {
  return std::any_of(counts, counts + size, [](uint32_t n) { return n != 0; });
}

// The bits that symbols with these counts take, coded with their own frequencies.
template <class Count>
double own_bits(const Count* counts, uint32_t size) {
  uint64_t total = 0;
  double sum = 0;
  for (uint32_t i = 0; i < size; ++i) {
    total += counts[i];
    sum += entropy_term(counts[i]);
  }
  return entropy_term(total) - sum;
}

}  // namespace l3
