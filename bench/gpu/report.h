// Writes the results: a line of JSON for each case, method and mode, and a text to read.
#pragma once

#include <string>

#include "measure.h"

namespace gpu_bench {

// The same for every line of a run.
struct Run {
  Device device;
  std::string commit, command;
  uint32_t threads = 0;
};

// With the newline.
std::string json_line(const Run& run, const Settings& settings, const Case& a_case, const char* method, const Job& job,
                      const Measured& measured);

std::string table_head();
std::string table_row(const Run& run, const Case& a_case, const char* method, const Job& job, const Measured& measured);

}  // namespace gpu_bench
