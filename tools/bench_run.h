// Chooses the files that `l3 bench` measures, their order, and how long it measures them.
#pragma once

#include <string>
#include <vector>

#include "bench/figures.h"
#include "l3/l3.h"
#include "options.h"

namespace tools {

struct BenchOptions {
  std::string folder;
  std::vector<std::string> codecs;
  std::vector<std::string> models;
  std::string by = "folder";
  l3_limits limits{};
  uint32_t threads = 0;
  uint32_t rounds = 3;
  uint32_t seconds = 60;
  bool no_memory = false;
  bool training = false;
  double step_ms = 0;
  std::string scratch;
  std::string out;
  bool json = false;
  bool quiet = false;
};

// Measures a folder, or one file. Failures are printed and counted. The result is empty if there is nothing to measure,
// which is also printed.
bench::Results run_bench(const BenchOptions& options, Context& context);

// All results as one line of JSON.
std::string bench_json(const bench::Results& results);

// The table for a terminal.
std::vector<std::string> bench_table(const bench::Results& results);

}  // namespace tools
