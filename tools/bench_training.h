// The same images as different data sets, and how each of them feeds a training.
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
  double step_seconds = 0;  // of the training that waits; 0: twice as quick as PNG files feed it
  std::string scratch;      // the folder to write data sets below; empty: that for temporary files
  l3_limits limits{};
};

// Takes images of the commonest shape among `paths`, writes them as data sets, measures, and removes them again.
// Nothing (and said so) where that cannot be done.
std::optional<bench::TrainingFigures> run_training(const std::vector<std::string>& paths,
                                                   const TrainingOptions& options, Context& context);

}  // namespace tools
