#include "label_places.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace bench {
namespace {

constexpr double kHeight = 15;
constexpr int kPasses = 4;
constexpr int kDirections = 16;

// Possible places around a point, the nearest first.
std::vector<LabelPlace> places_of(const LabelWish& wish, double radius) {
  const double width = text_width(wish.text);
  std::vector<LabelPlace> places;
  for (const double distance : {radius + 2, radius + 10, radius + 20, radius + 34, radius + 50, radius + 70}) {
    for (int i = 0; i < kDirections; ++i) {
      // From the right, alternately up and down.
      const double turn = (i % 2 == 0 ? -1 : 1) * ((i + 1) / 2) * 2 * 3.14159265358979 / kDirections;
      const double dx = std::cos(turn), dy = std::sin(turn);
      // Move the centre of the box out until its nearest side is at the distance.
      const double centre_x = wish.x + dx * (distance + width / 2);
      const double centre_y = wish.y + dy * (distance + kHeight / 2);
      const Box box = {centre_x - width / 2, centre_y - kHeight / 2, width, kHeight};
      places.push_back({box, distance > radius + 12, std::clamp(wish.x, box.x, box.x + width),
                        std::clamp(wish.y, box.y + 2, box.y + kHeight - 2)});
    }
  }
  return places;
}

double outside(const Box& box, const Box& room) { return box.width * box.height - overlap(box, room); }

}  // namespace

double text_width(const std::string& text) { return 7.0 * static_cast<double>(text.size()) + 2; }

double overlap(const Box& a, const Box& b) {
  const double width = std::min(a.x + a.width, b.x + b.width) - std::max(a.x, b.x);
  const double height = std::min(a.y + a.height, b.y + b.height) - std::max(a.y, b.y);
  return width > 0 && height > 0 ? width * height : 0;
}

std::vector<LabelPlace> place_labels(const std::vector<LabelWish>& wishes, const Box& room, double radius) {
  std::vector<std::vector<LabelPlace>> candidates;
  std::vector<LabelPlace> chosen;
  for (const LabelWish& wish : wishes) {
    candidates.push_back(places_of(wish, radius));
    chosen.push_back(candidates.back()[0]);
  }
  // The cost of a place, given the places of the other labels. An overlap costs the most.
  const auto cost = [&](size_t which, size_t place, size_t known) {
    const LabelPlace& candidate = candidates[which][place];
    double sum = 0.3 * static_cast<double>(place) + 40 * outside(candidate.box, room);
    for (size_t i = 0; i < wishes.size(); ++i) {
      const double edge = 2 * radius;
      sum += 8 * overlap(candidate.box, {wishes[i].x - radius, wishes[i].y - radius, edge, edge});
      if (i != which && i < known) sum += 20 * overlap(candidate.box, chosen[i].box);
    }
    return sum;
  };
  for (int pass = 0; pass < kPasses; ++pass) {
    for (size_t i = 0; i < wishes.size(); ++i) {
      const size_t known = pass == 0 ? i : wishes.size();
      size_t best = 0;
      double minimum = cost(i, 0, known);
      for (size_t place = 1; place < candidates[i].size(); ++place) {
        const double here = cost(i, place, known);
        if (here >= minimum) continue;
        minimum = here;
        best = place;
      }
      chosen[i] = candidates[i][best];
    }
  }
  return chosen;
}

}  // namespace bench
