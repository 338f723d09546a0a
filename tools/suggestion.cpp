#include "suggestion.h"

#include <algorithm>

namespace tools {
namespace {

// How many letters must be changed, added, removed or swapped with the next one to turn one word into the other.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> steps(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      size_t& here = steps[i][j];
      if (i == 0 || j == 0) {
        here = i + j;
        continue;
      }
      here = std::min({steps[i - 1][j] + 1, steps[i][j - 1] + 1, steps[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        here = std::min(here, steps[i - 2][j - 2] + 1);
    }
  }
  return steps[a.size()][b.size()];
}

// The number of letters without the dashes of an option.
size_t letters(std::string_view word) { return word.size() - std::min(word.find_first_not_of('-'), word.size()); }

}  // namespace

std::string did_you_mean(std::string_view word, const std::vector<std::string>& names) {
  constexpr size_t kLongest = 40;  // longer words are not typing errors
  constexpr size_t kShortestStart = 3;
  if (word.size() > kLongest) return "";
  const std::string* nearest = nullptr;
  size_t minimum = 0;
  for (const std::string& name : names) {
    const bool starts = word.size() >= kShortestStart && name.starts_with(word);
    const size_t far = starts ? 0 : distance(word, name);
    if (far > std::max<size_t>(1, std::max(word.size(), name.size()) / 3)) continue;
    // If all letters of the shorter word differ, the words have nothing in common.
    if (far >= std::min(letters(word), letters(name))) continue;
    if (nearest == nullptr || far < minimum) {
      nearest = &name;
      minimum = far;
    }
  }
  return nearest == nullptr ? "" : "; did you mean " + *nearest + "?";
}

}  // namespace tools
