// The results of l3 stalls as text and JSON.
#pragma once

#include <string>
#include <vector>

#include "bench/stalls.h"

namespace tools {

std::vector<std::string> stalls_lines(const bench::StallFigures& figures);
std::string stalls_json(const bench::StallFigures& figures);
std::vector<std::string> layout_lines(const bench::LayoutFigures& figures);
std::string layouts_json(const bench::LayoutFigures& figures);

}  // namespace tools
