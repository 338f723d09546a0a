// Reports of results: a page for people, plots and tables for papers and programs.
#pragma once

#include <string>
#include <vector>

#include "bench/figures.h"

namespace bench {

struct ReportFile {
  std::string name;
  std::string contents;
};

// report.html, which needs no other file and no network; the plots in it as SVG; results.csv with all that was
// measured, a line for each codec of each category.
std::vector<ReportFile> make_report(const Results& results);

}  // namespace bench
