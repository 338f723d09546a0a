// Makes reports: an HTML page, plots, and a table for programs.
#pragma once

#include <string>
#include <vector>

#include "bench/figures.h"

namespace bench {

struct ReportFile {
  std::string name;
  std::string contents;
};

// Returns report.html, which needs no other file and no network; its plots as SVG files; and results.csv with all
// measurements, a line for each codec of each category.
std::vector<ReportFile> make_report(const Results& results);

}  // namespace bench
