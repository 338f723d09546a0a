// Suggestions for mistyped words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tools {

// Returns "; did you mean NAME?" for the name that is closest to `word`, or an empty text if none is close.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& names);

}  // namespace tools
