// Draws the picture of README.md: size against decoding speed, from the figures that `bench/headline.py --tsv` prints.
#include <algorithm>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "plot.h"

namespace {

// A line: name, title, lossy, decodes only, files, pixels, bytes, supplied bytes, MP/s of encoding and of decoding.
bench::CodecFigures read_codec(const std::string& line) {
  std::vector<std::string> values;
  std::istringstream in(line);
  for (std::string value; std::getline(in, value, '\t');) values.push_back(value);
  bench::CodecFigures codec;
  codec.name = values.at(0);
  codec.title = values.at(1);
  codec.lossy = values.at(2) == "1";
  codec.decodes_only = values.at(3) == "1";
  codec.files = std::stoull(values.at(4));
  codec.pixels = std::stoull(values.at(5));
  codec.bytes = std::stoull(values.at(6));
  codec.supplied_bytes = std::stoull(values.at(7));
  codec.encode.median = std::stod(values.at(8));
  codec.decode.median = std::stod(values.at(9));
  return codec;
}

}  // namespace

int main() {
  bench::SetFigures set;
  try {
    for (std::string line; std::getline(std::cin, line);) set.codecs.push_back(read_codec(line));
  } catch (const std::exception&) {
    std::cerr << "l3_plot_figures: line " << set.codecs.size() + 1 << " is not a line of bench/headline.py --tsv\n";
    return 1;
  }
  for (const bench::CodecFigures& codec : set.codecs) set.files = std::max(set.files, codec.files);
  std::cout << bench::alone(bench::trade_plot(set, bench::Direction::decode, bench::PlotSize::wide));
  return std::cout.flush() ? 0 : 1;
}
