#include "plot.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "label_places.h"
#include "markup.h"

namespace bench {
namespace {

struct Canvas {
  double width, height, left, right, top, bottom;  // the last four: margins around the axes
};

constexpr Canvas kWide = {580, 400, 58, 16, 12, 48};
constexpr Canvas kNarrow = {372, 400, 50, 12, 12, 46};
constexpr double kRadius = 5;

std::string number(double value) { return fixed(value, 1); }

// A logarithmic axis. All values are above 0.
class Axis {
 public:
  // The axis goes from `begin` to `end` on the canvas.
  Axis(double minimum, double maximum, double begin, double end) : begin_(begin), end_(end) {
    // Leave space next to the outermost points, and cover at least a factor of 2.
    const double middle = std::sqrt(minimum * maximum);
    low_ = std::log(std::min(minimum / 1.25, middle / std::sqrt(2.0)));
    high_ = std::log(std::max(maximum * 1.25, middle * std::sqrt(2.0)));
  }

  double at(double value) const { return begin_ + (std::log(value) - low_) / (high_ - low_) * (end_ - begin_); }

  // 1, 2 and 5 times powers of ten; if that is too coarse, every tenth.
  std::vector<double> ticks() const {
    const double decades = (high_ - low_) / std::log(10.0);
    std::vector<double> steps = {1, 2, 5};
    if (decades > 3) steps = {1};
    if (decades < 0.8) steps = {1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9};
    std::vector<double> ticks;
    for (double decade = std::pow(10, std::floor(low_ / std::log(10.0))); std::log(decade) < high_; decade *= 10) {
      for (const double step : steps) {
        if (std::log(decade * step) > low_ && std::log(decade * step) < high_) ticks.push_back(decade * step);
      }
    }
    return ticks;
  }

 private:
  double begin_, end_, low_ = 0, high_ = 1;
};

// The shortest text for a tick: 0.05, 0.2, 1.5, 200.
std::string tick_text(double value) {
  std::string text = fixed(value, 6);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string line(const char* style, double x1, double y1, double x2, double y2) {
  return "<line class=\"" + std::string(style) + "\" x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" +
         number(x2) + "\" y2=\"" + number(y2) + "\"/>";
}

std::string text(const char* style, double x, double y, const char* anchor, const std::string& words) {
  return "<text class=\"" + std::string(style) + "\" x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" +
         anchor + "\">" + escaped(words) + "</text>";
}

std::string open(double width, double height, const std::string& title) {
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" role=\"img\" viewBox=\"0 0 " + fixed(width, 0) +
         " " + fixed(height, 0) + "\"><title>" + escaped(title) + "</title>";
}

const char* style_of(const SetFigures& set, const CodecFigures& codec) {
  if (is_ours(codec)) return "ours";
  if (codec.lossy) return "lossy";
  return codec.files < set.files ? "part" : "peer";
}

struct Point {
  const CodecFigures* codec;
  double x, y;
};

// Our codecs are discs, the others are squares. Codecs that do not compete are hollow.
std::string marker(const SetFigures& set, const Point& point, Direction direction) {
  const std::string style = style_of(set, *point.codec);
  const std::string about =
      "<title>" +
      escaped(point.codec->title + ": " + three_digits(point.codec->ratio()) + " of the source size, " +
              three_digits(speed_of(*point.codec, direction)) + " MP/s") +
      "</title>";
  if (style == "ours") {
    return "<circle class=\"ours\" cx=\"" + number(point.x) + "\" cy=\"" + number(point.y) + "\" r=\"" +
           number(kRadius + 0.5) + "\">" + about + "</circle>";
  }
  return "<rect class=\"" + style + "\" x=\"" + number(point.x - kRadius + 0.5) + "\" y=\"" +
         number(point.y - kRadius + 0.5) + "\" width=\"" + number(2 * kRadius - 1) + "\" height=\"" +
         number(2 * kRadius - 1) + "\">" + about + "</rect>";
}

std::string frontier_line(const SetFigures& set, std::vector<Point> points, Direction direction, const Canvas& canvas) {
  std::erase_if(points, [&](const Point& point) { return !on_frontier(set, *point.codec, direction); });
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.x < b.x; });
  if (points.empty()) return "";
  // Extend the line to both edges: a codec also covers every lower speed and every larger size.
  std::string path = "M ";
  path += number(canvas.left) + " " + number(points[0].y);
  for (size_t i = 0; i < points.size(); ++i) {
    path += " L" + number(points[i].x) + " " + number(points[i].y);
    const double next = i + 1 < points.size() ? points[i + 1].y : canvas.top;
    path += " L" + number(points[i].x) + " " + number(next);
  }
  return "<path class=\"frontier\" d=\"" + path + "\"/>";
}

}  // namespace

std::string trade_plot(const SetFigures& set, Direction direction, PlotSize size) {
  const Canvas& canvas = size == PlotSize::wide ? kWide : kNarrow;
  const bool decode = direction == Direction::decode;
  double least_speed = 0, most_speed = 0, least_size = 0, most_size = 0;
  for (const CodecFigures& codec : set.codecs) {
    const double speed = speed_of(codec, direction), ratio = codec.ratio();
    if (speed <= 0 || ratio <= 0) continue;
    const bool first = most_speed == 0;
    least_speed = first ? speed : std::min(least_speed, speed);
    most_speed = std::max(most_speed, speed);
    least_size = first ? ratio : std::min(least_size, ratio);
    most_size = std::max(most_size, ratio);
  }
  std::string svg =
      open(canvas.width, canvas.height, std::string("Size against ") + (decode ? "decoding" : "encoding") + " speed");
  if (most_speed == 0)
    return svg + text("axis", canvas.width / 2, canvas.height / 2, "middle", "no measurements") + "</svg>";

  const double floor = canvas.height - canvas.bottom, end = canvas.width - canvas.right;
  const Axis x(least_speed, most_speed, canvas.left, end);
  const Axis y(least_size, most_size, floor, canvas.top);
  for (const double tick : x.ticks()) {
    svg += line("grid", x.at(tick), canvas.top, x.at(tick), floor);
    svg += text("tick", x.at(tick), floor + 16, "middle", tick_text(tick));
  }
  for (const double tick : y.ticks()) {
    svg += line("grid", canvas.left, y.at(tick), end, y.at(tick));
    svg += text("tick", canvas.left - 6, y.at(tick) + 4, "end", tick_text(tick));
  }
  svg += line("edge", canvas.left, floor, end, floor) + line("edge", canvas.left, canvas.top, canvas.left, floor);
  svg += text("axis", (canvas.left + end) / 2, canvas.height - 10, "middle",
              std::string(decode ? "decoding" : "encoding") + ", MP/s on one core (higher is better)");
  svg += "<g transform=\"translate(14 " + number((canvas.top + floor) / 2) + ") rotate(-90)\">" +
         text("axis", 0, 0, "middle", "size / size of the source files (lower is better)") + "</g>";

  std::vector<Point> points;
  for (const CodecFigures& codec : set.codecs) {
    if (speed_of(codec, direction) <= 0 || codec.ratio() <= 0) continue;
    points.push_back({&codec, x.at(speed_of(codec, direction)), y.at(codec.ratio())});
  }
  // Our codecs get their labels first and are drawn over the others.
  std::stable_sort(points.begin(), points.end(),
                   [](const Point& a, const Point& b) { return is_ours(*a.codec) > is_ours(*b.codec); });
  svg += frontier_line(set, points, direction, canvas);

  std::vector<LabelWish> wishes;
  for (const Point& point : points) wishes.push_back({point.x, point.y, point.codec->name});
  const std::vector<LabelPlace> places =
      place_labels(wishes, {canvas.left + 2, canvas.top, end - canvas.left - 2, floor - canvas.top - 2}, kRadius + 1);
  for (size_t i = points.size(); i-- > 0;) {
    const std::string style = std::string("label ") + style_of(set, *points[i].codec);
    const LabelPlace& place = places[i];
    if (place.far) svg += line("leader", points[i].x, points[i].y, place.anchor_x, place.anchor_y);
    svg += marker(set, points[i], direction);
    svg += text(style.c_str(), place.box.x, place.box.y + place.box.height - 4, "start", points[i].codec->name);
  }
  return svg + "</svg>";
}

std::string size_bars(const SetFigures& set) {
  std::vector<const CodecFigures*> codecs;
  double maximum = 0;
  for (const CodecFigures& codec : set.codecs) {
    if (codec.files == 0 || codec.decodes_only) continue;
    codecs.push_back(&codec);
    maximum = std::max(maximum, codec.ratio());
  }
  std::stable_sort(codecs.begin(), codecs.end(),
                   [](const CodecFigures* a, const CodecFigures* b) { return a->ratio() < b->ratio(); });
  constexpr double kWidth = 360, kNames = 84, kValues = 48, kRow = 19;
  const double height = kRow * static_cast<double>(codecs.size()) + 6, room = kWidth - kNames - kValues;
  std::string svg = open(kWidth, height, "Sizes: " + set.name);
  if (maximum > 1) {
    const double one = kNames + room / maximum;
    svg += line("edge", one, 0, one, height);
  }
  double top = 3;
  for (const CodecFigures* codec : codecs) {
    const double width = maximum > 0 ? std::max(room * codec->ratio() / maximum, 1.0) : 1;
    const std::string style = style_of(set, *codec);
    svg += text(("label " + style).c_str(), kNames - 6, top + 13, "end", codec->name);
    svg += "<rect class=\"bar " + style + "\" x=\"" + number(kNames) + "\" y=\"" + number(top + 2) + "\" width=\"" +
           number(width) + "\" height=\"" + number(kRow - 5) + "\"/>";
    svg += text("tick", kNames + width + 5, top + 13, "start", three_digits(codec->ratio()));
    top += kRow;
  }
  return svg + "</svg>";
}

std::string plot_style() {
  return ".plot{--ink:#1d2430;--soft:#5b6675;--grid:#e3e7ec;--ours:#0b62c4;--peer:#5b6675;--lossy:#a14a00;"
         "--paper:#fff;font:12px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}"
         "@media(prefers-color-scheme:dark){.plot{--ink:#e4e8ee;--soft:#a3adba;--grid:#2c3440;--ours:#6cb2ff;"
         "--peer:#a3adba;--lossy:#f0a35c;--paper:#14181f}}"
         "@media print{.plot{--ink:#000;--soft:#333;--grid:#ddd;--ours:#0b4fa0;--peer:#444;--lossy:#8a3d00;"
         "--paper:#fff}}"
         ".plot "
         "text{fill:var(--ink);paint-order:stroke;stroke:var(--paper);stroke-width:3px;stroke-linejoin:round}.plot "
         ".tick,.plot .axis{fill:var(--soft)}.plot .tick{font-size:11px}"
         ".plot .grid{stroke:var(--grid)}.plot .edge{stroke:var(--soft)}"
         ".plot .leader{stroke:var(--soft);stroke-width:.7;stroke-dasharray:2 2}"
         ".plot .frontier{fill:none;stroke:var(--ours);stroke-width:1.4;stroke-dasharray:5 3;opacity:.75}"
         ".plot circle.ours,.plot rect.ours{fill:var(--ours);stroke:var(--paper)}"
         ".plot rect.peer{fill:var(--peer);stroke:var(--paper)}"
         ".plot rect.part{fill:var(--paper);stroke:var(--peer);stroke-width:1.5}"
         ".plot rect.lossy{fill:var(--paper);stroke:var(--lossy);stroke-width:1.5}"
         ".plot .label{font-size:12px}.plot .label.ours{fill:var(--ours);font-weight:600}"
         ".plot .label.lossy{fill:var(--lossy)}.plot .label.part{fill:var(--soft)}";
}

std::string alone(const std::string& svg) {
  const size_t end = svg.find('>');
  // In a page, the page sets the size and the background. A file needs its own.
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + svg.substr(0, end + 1) + "<style>" + plot_style() +
         "</style><rect width=\"100%\" height=\"100%\" style=\"fill:var(--paper)\"/>" + svg.substr(end + 1) + "\n";
}

}  // namespace bench
