// Places the labels of points so that no label overlaps another label or a point.
#pragma once

#include <string>
#include <vector>

namespace bench {

struct Box {
  double x, y, width, height;  // x and y: the upper left corner
};

struct LabelWish {
  double x, y;  // the point
  std::string text;
};

struct LabelPlace {
  Box box;
  bool far;                   // far from its point: draw a line between the two
  double anchor_x, anchor_y;  // where that line ends
};

// The approximate size of a label in the plots' font.
double text_width(const std::string& text);

// Returns a place for each label, inside `room` if possible. `radius` is the radius of the points.
std::vector<LabelPlace> place_labels(const std::vector<LabelWish>& wishes, const Box& room, double radius);

// The area that two boxes share.
double overlap(const Box& a, const Box& b);

}  // namespace bench
