// Plots as SVG.
#pragma once

#include <string>

#include "bench/figures.h"
#include "frontier.h"

namespace bench {

enum class PlotSize : uint8_t { wide, narrow };  // for a desk, for a phone

// Size against speed on one thread, both axes logarithmic; the frontier is drawn.
std::string trade_plot(const SetFigures& set, Direction direction, PlotSize size);

// Sizes as bars, the smallest first.
std::string size_bars(const SetFigures& set);

// The style of both, for a file that stands alone. A page has it once.
std::string plot_style();

// `svg` as a file of its own.
std::string alone(const std::string& svg);

}  // namespace bench
