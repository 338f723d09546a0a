// What someone may have meant who typed a word that does not exist.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tools {

// "; did you mean NAME?" of the name that is nearest to `word`, or nothing where none is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& names);

}  // namespace tools
