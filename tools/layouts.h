// Compares ways to keep images for training: trees of files, shards and a tar, from memory, a slow disk and a far
// store.
#pragma once

#include <optional>

#include "bench/stalls.h"
#include "stalls_runs.h"

namespace tools {

// Writes the images of the folder `path` in each way. Returns nothing if that fails, and prints why.
std::optional<bench::LayoutFigures> measure_layouts(const StallOptions& options, Context& context);

}  // namespace tools
