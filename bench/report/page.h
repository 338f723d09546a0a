#pragma once

#include <string>

#include "bench/figures.h"

namespace bench {

// The page for people: one file, for any browser, light and dark, on a phone and on paper.
std::string html_page(const Results& results);

// What the figures say in plain words, one line each; names the peers that win as plainly as our own codecs.
std::vector<std::string> conclusions(const Results& results);

}  // namespace bench
