#pragma once

#include <string>

#include "bench/figures.h"

namespace bench {

// Returns all measurements as CSV: a header line, then a line for each codec of each category and of the whole set.
std::string csv_table(const Results& results);

}  // namespace bench
