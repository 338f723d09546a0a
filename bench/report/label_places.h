// Where the labels of points go, so that none lies over another one or over a point.
#pragma once

#include <string>
#include <vector>

namespace bench {

struct Box {
  double x, y, width, height;  // the left upper corner
};

struct LabelWish {
  double x, y;  // the point
  std::string text;
};

struct LabelPlace {
  Box box;
  bool far;                   // so far from its point that a line should lead there
  double anchor_x, anchor_y;  // where that line ends
};

// About what a text of the plots' size takes.
double text_width(const std::string& text);

// A place for each, inside `room` where that can be; `radius` is that of the points.
std::vector<LabelPlace> place_labels(const std::vector<LabelWish>& wishes, const Box& room, double radius);

// The area that two boxes share.
double overlap(const Box& a, const Box& b);

}  // namespace bench
