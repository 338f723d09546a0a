#pragma once

#include "bench/figures.h"

namespace bench {

// Returns the description of this machine for reports, and the date.
Machine this_machine();

}  // namespace bench
