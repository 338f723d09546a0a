// Estimates how long work on many files still takes.
#pragma once

#include <cstdint>
#include <optional>

namespace tools {

// An amount of work in pieces. A piece is a file, or a group of files that are done together.
struct Pieces {
  double count = 0, bytes = 0;  // sizes of the files when they were listed
};

// Time is proportional to pixels, but of listed files only the bytes are known, and a screenshot has many more pixels
// for each byte than a photograph. So pixels are estimated by a straight line through the bytes and pixels of finished
// pieces. If the remaining pieces are larger than all finished ones, the line may not hold there, so the estimate is
// limited.
class TimeLeft {
 public:
  explicit TimeLeft(Pieces all) : all_(all) {}

  // Work on a piece of this listed size begins, and ends. Calling begin() makes the estimate better, because pieces in
  // work count as half done.
  void begin(double bytes);
  void end(double bytes, double pixels);

  // The time left. Nothing while too little is done for an estimate.
  std::optional<double> seconds(double elapsed) const;

 private:
  double pixels_of(Pieces pieces) const;

  Pieces all_, begun_, done_;
  double pixels_ = 0, largest_ = 0;                  // of finished pieces; bytes of the largest one
  double bytes_by_bytes_ = 0, bytes_by_pixels_ = 0;  // sums of products over finished pieces
};

}  // namespace tools
