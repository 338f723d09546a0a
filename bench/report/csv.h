#pragma once

#include <string>

#include "bench/figures.h"

namespace bench {

// All that was measured, with a head line, a line for each codec of each category and of the whole.
std::string csv_table(const Results& results);

}  // namespace bench
