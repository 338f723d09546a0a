#pragma once

#include "bench/figures.h"

namespace bench {

// This machine, as reports name it, and the day.
Machine this_machine();

}  // namespace bench
