// Writes the same images as different data sets, and measures how fast each of them feeds a training.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/figures.h"
#include "l3/l3.h"
#include "options.h"

namespace tools {

struct TrainingOptions {
  uint32_t threads = 1;
  uint32_t rounds = 3;
  double step_seconds = 0;  // of the simulated training; 0: half the time to load a batch of PNG files
  std::string scratch;      // the folder to write data sets to; empty: the folder for temporary files
  l3_limits limits{};
};

// Takes the images of the most frequent shape among `paths`, writes them as data sets, measures, and removes them
// again. Returns nothing if that fails, and prints why.
std::optional<bench::TrainingFigures> run_training(const std::vector<std::string>& paths,
                                                   const TrainingOptions& options, Context& context);

}  // namespace tools
