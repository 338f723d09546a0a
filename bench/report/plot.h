// Plots as SVG.
#pragma once

#include <string>

#include "bench/figures.h"
#include "frontier.h"

namespace bench {

enum class PlotSize : uint8_t { wide, narrow };  // for a desktop, for a phone

// A plot of size against speed on one thread, with logarithmic axes and the frontier.
std::string trade_plot(const SetFigures& set, Direction direction, PlotSize size);

// Sizes as bars, the smallest first.
std::string size_bars(const SetFigures& set);

// The CSS of both plots. A page contains it once; each separate SVG file contains it too.
std::string plot_style();

// Turns `svg` into a complete file, with its style and background.
std::string alone(const std::string& svg);

}  // namespace bench
