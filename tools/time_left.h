// How long a work over many files still takes.
#pragma once

#include <cstdint>
#include <optional>

namespace tools {

// What of a work is listed, begun or done, in pieces: a piece is a file, or files that are done together.
struct Pieces {
  double count = 0, bytes = 0;  // bytes as they were listed
};

// Time goes with pixels, but what is only listed has bytes alone, and a screen has many more pixels for each byte than
// a photograph. So pixels are estimated: a straight line through the bytes and pixels of what is done.
// Where the rest is larger than all that is done, nobody knows whether the line goes on: the estimate stays within
// reach.
class TimeLeft {
 public:
  explicit TimeLeft(Pieces all) : all_(all) {}

  // A piece of so many listed bytes begins, and ends. Who says where pieces begin gets a better estimate: what is being
  // worked on counts as half done.
  void begin(double bytes);
  void end(double bytes, double pixels);

  // Nothing as long as what is done says little of the rest.
  std::optional<double> seconds(double elapsed) const;

 private:
  double pixels_of(Pieces pieces) const;

  Pieces all_, begun_, done_;
  double pixels_ = 0, largest_ = 0;                  // of what is done; bytes of the largest piece
  double bytes_by_bytes_ = 0, bytes_by_pixels_ = 0;  // sums of products over what is done
};

}  // namespace tools
