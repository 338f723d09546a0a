#pragma once

#include <string>

#include "bench/figures.h"

namespace bench {

// Makes the HTML report: one file for any browser, light and dark, on a phone and on paper.
std::string html_page(const Results& results);

// Describes the results in sentences, one per line. It names other codecs that win as plainly as ours.
std::vector<std::string> conclusions(const Results& results);

}  // namespace bench
