// Checks the options of a loader.
#pragma once

#include "l3/l3_loader.h"

namespace loader {

// Replaces zeros by defaults. Returns why the options are wrong, or null.
const char* complete_options(l3_loader_options& options);

}  // namespace loader
