// Runs a job in each of its modes: first for what it writes, then for the time it takes.
#pragma once

#include <string>
#include <vector>

#include "base/median.h"
#include "device.h"
#include "method.h"

namespace gpu_bench {

struct Measured {
  Mode mode = Mode::kernel;
  bool equal = false;           // every byte, before the timing and after it
  std::string problem;          // why not
  std::vector<double> seconds;  // of a batch: kernel and graph: each of the calls; pinned and staged: means of loops
  double loop_seconds = 0;      // kernel: of a batch, where only a whole loop of calls is timed
  uint32_t batches = 0;         // pinned and staged: in a loop
  uint32_t sets = 0;            // kernel and graph: of files and outputs, in turn
  std::string clocks;           // while the device was at it

  double median_seconds() const { return base::median(seconds); }
};

std::vector<Measured> measure(const Case& a_case, Job& job, const Device& device, base::Parallel& parallel);

}  // namespace gpu_bench
