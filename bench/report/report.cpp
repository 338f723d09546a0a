#include "bench/report.h"

#include "csv.h"
#include "page.h"
#include "plot.h"

namespace bench {
namespace {

// Converts the name of a category to a part of a file name.
std::string in_file_name(const std::string& name) {
  std::string result;
  for (const char c : name) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    result += plain ? c : '_';
  }
  return result;
}

void add_plots(std::vector<ReportFile>& files, const std::string& name, const SetFigures& set) {
  files.push_back({name + "-decode.svg", alone(trade_plot(set, Direction::decode, PlotSize::wide))});
  files.push_back({name + "-encode.svg", alone(trade_plot(set, Direction::encode, PlotSize::wide))});
  files.push_back({name + "-sizes.svg", alone(size_bars(set))});
}

}  // namespace

std::vector<ReportFile> make_report(const Results& results) {
  std::vector<ReportFile> files = {{"report.html", html_page(results)}, {"results.csv", csv_table(results)}};
  add_plots(files, "all", results.whole);
  for (size_t i = 0; i < results.categories.size(); ++i) {
    // The number keeps two names apart that become equal in a file name.
    add_plots(files, std::to_string(i + 1) + "-" + in_file_name(results.categories[i].name), results.categories[i]);
  }
  return files;
}

}  // namespace bench
