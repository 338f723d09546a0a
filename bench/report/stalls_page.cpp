// The pages of l3 stalls.
#include <algorithm>

#include "bench/stalls.h"
#include "markup.h"
#include "page_parts.h"
#include "plot.h"

namespace bench {
namespace {

std::string page(const std::string& title, const std::string& about, const std::string& main) {
  return "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
         "<meta name=\"color-scheme\" content=\"light dark\"><title>" +
         title + "</title><style>" + plot_style() + kPageStyle + "</style></head><body><header><h1>" + title +
         "</h1><p>" + about + "</p></header><main>" + main + "</main><script>" + std::string(kPageScript) +
         "</script></body></html>\n";
}

std::string cell(const std::string& text) { return "<td>" + text + "</td>"; }
std::string time_cell(double seconds) { return cell(seconds > 0 ? three_digits(seconds * 1000) : "\u2013"); }

struct Bar {
  std::string name, value;
  double length = 0;
  bool is_marked = false;
};

// Bars of one unit, the longest as wide as there is room.
std::string bars(const std::string& title, const std::vector<Bar>& all) {
  constexpr double kWidth = 490, kNames = 182, kValues = 84, kRow = 21;
  double maximum = 0;
  for (const Bar& bar : all) maximum = std::max(maximum, bar.length);
  const double height = kRow * static_cast<double>(all.size()) + 6, room = kWidth - kNames - kValues;
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" role=\"img\" viewBox=\"0 0 " +
                    fixed(kWidth, 0) + " " + fixed(height, 0) + "\"><title>" + escaped(title) + "</title>";
  double top = 3;
  for (const Bar& bar : all) {
    const double width = maximum > 0 ? std::max(room * bar.length / maximum, 1.0) : 1;
    const std::string style = bar.is_marked ? "ours" : "peer";
    svg += "<text class=\"label " + style + "\" x=\"" + fixed(kNames - 6, 1) + "\" y=\"" + fixed(top + 14, 1) +
           "\" text-anchor=\"end\">" + escaped(bar.name) + "</text><rect class=\"" + style + "\" x=\"" +
           fixed(kNames, 1) + "\" y=\"" + fixed(top + 3, 1) + "\" width=\"" + fixed(width, 1) + "\" height=\"" +
           fixed(kRow - 6, 1) + "\"/><text class=\"tick\" x=\"" + fixed(kNames + width + 5, 1) + "\" y=\"" +
           fixed(top + 14, 1) + "\" text-anchor=\"start\">" + escaped(bar.value) + "</text>";
    top += kRow;
  }
  return svg + "</svg>";
}

std::string machine_text(const Machine& machine) {
  return escaped(machine.processor) + ", " + std::to_string(machine.processors) + " processors, " +
         escaped(machine.memory) + "; " + escaped(machine.system) + "; " + escaped(machine.library) + "; " +
         escaped(machine.date);
}

std::string measured(const StallFigures& figures) {
  std::string html =
      "<section><h2 id=\"measured\">Measured</h2><div class=\"wide\"><table><thead><tr><th>run</th><th>images/s</th>"
      "<th>MB/s</th><th>processor ms</th><th>decode ms</th><th>values ms</th><th>copy ms per batch</th>"
      "<th>GPU ms per batch</th><th>waits</th></tr></thead><tbody>";
  for (const StallRun& run : figures.runs) {
    html += "<tr><th>" + escaped(run.name) + "</th>" + cell(three_digits(run.images_per_second)) +
            cell(run.bytes > 0 ? three_digits(run.images_per_second * run.bytes / 1e6) : "\u2013") +
            time_cell(run.cpu) + time_cell(run.decoding - run.converting) + time_cell(run.converting) +
            time_cell(run.copying) + time_cell(run.device) +
            cell(run.bytes > 0 ? fixed(100 * run.waited, 0) + "\u202f%" : "\u2013") + "</tr>";
  }
  const StallModel& model = figures.model;
  html += "<tr><th>the store alone</th>" + cell(three_digits(model.bytes > 0 ? model.link / model.bytes : 0)) +
          cell(three_digits(model.link / 1e6)) +
          "<td>\u2013</td><td>\u2013</td><td>\u2013</td><td>\u2013</td>"
          "<td>\u2013</td><td>\u2013</td></tr></tbody></table></div>"
          "<p class=\"note\">Times are per image unless a column says otherwise. Processor time is that of the whole "
          "process; decode and values are times of threads. Waits is the share of the time for which the training "
          "waited for a batch.</p></section>";
  return html;
}

std::string predicted(const StallFigures& figures) {
  std::string html =
      "<section><h2 id=\"predicted\">Predicted</h2><p>Images per second, computed from what was measured. Each plot "
      "changes one thing. The set-up that was measured is blue.</p><div class=\"plots\">";
  for (const PredictionTable& table : figures.predictions) {
    std::vector<Bar> rows;
    for (const PredictionRow& row : table.rows) {
      rows.push_back(
          {row.what, three_digits(row.prediction.images_per_second), row.prediction.images_per_second, row.is_now});
    }
    html += "<figure><figcaption>" + escaped(table.title) + "</figcaption>" + bars(table.title, rows) + "</figure>";
  }
  html +=
      "</div><details><summary>The same as a table, with the limits</summary><div class=\"wide\"><table><thead><tr>"
      "<th>what changes</th><th>to</th><th>images/s</th><th>limit</th>"
      "</tr></thead><tbody>";
  for (const PredictionTable& table : figures.predictions) {
    for (const PredictionRow& row : table.rows) {
      html += std::string("<tr") + (row.is_now ? " class=\"ours\"" : "") + "><th>" + escaped(table.title) + "</th>" +
              cell(escaped(row.what)) + cell(three_digits(row.prediction.images_per_second)) +
              cell(bound_text(row.prediction.bound)) + "</tr>";
    }
  }
  return html + "</tbody></table></div></details></section>";
}

std::string checked(const StallFigures& figures) {
  if (figures.checks.empty()) return "";
  std::string html =
      "<section><h2 id=\"checked\">Checked by running it</h2><div class=\"wide\"><table><thead><tr><th>case</th>"
      "<th>predicted</th><th>measured</th><th>error</th></tr></thead><tbody>";
  for (const StallCheck& check : figures.checks) {
    html += "<tr><th>" + escaped(check.what) + "</th>" + cell(three_digits(check.predicted)) +
            cell(three_digits(check.measured)) + cell(fixed(100 * check.error(), 1) + "\u202f%") + "</tr>";
  }
  return html + "</tbody></table></div></section>";
}

}  // namespace

std::string stalls_page(const StallFigures& figures) {
  const StallModel& model = figures.model;
  const auto percent = [](double share) { return fixed(100 * share, 0) + "\u202f%"; };
  std::string main =
      "<ul class=\"short\"><li><b>" + escaped(figures.advice) +
      "</b></li></ul><section><h2 id=\"time\">Where the time "
      "of an epoch goes</h2><div class=\"plots\">" +
      bars("Shares of the time",
           {{"training", percent(figures.step_share), figures.step_share, true},
            {"waiting for decoding", percent(figures.decode_share), figures.decode_share, false},
            {"waiting for the store", percent(figures.store_share), figures.store_share, false}}) +
      "</div></section>" + measured(figures) + predicted(figures) + checked(figures) +
      "<section><h2 id=\"how\">How it was measured</h2><pre>" + escaped(figures.command) + "</pre><ul><li>" +
      machine_text(figures.machine) + ".</li>" +
      (figures.link.empty() ? "" : "<li>The store was behind a simulated link: " + escaped(figures.link) + ".</li>") +
      "<li>The loader prepares batches while the training works. So the slowest part alone determines the speed: the "
      "steps of the training, the processors, the GPU's decoding, or the store for what is not cached.</li>"
      "<li>Only the tables Measured and Checked are measurements. Everything else is computed from them.</li></ul>"
      "</section>";
  return page("What a training on " + escaped(figures.set) + " waits for",
              escaped(figures.about) + "; " + fixed(model.threads, 0) + " threads.", main);
}

std::string layouts_page(const LayoutFigures& figures) {
  std::string main =
      "<section><h2 id=\"table\">Images per second</h2><div class=\"wide\"><table><thead><tr>"
      "<th>kept as</th><th>size</th>";
  for (const std::string& place : figures.places) main += "<th>" + escaped(place) + "</th>";
  main += "</tr></thead><tbody>";
  for (const LayoutRow& row : figures.rows) {
    main += std::string("<tr") + (row.name.starts_with("l3") ? " class=\"ours\"" : "") + "><th>" + escaped(row.name) +
            (row.lossy ? " <small>lossy</small>" : "") + "</th>" + cell(format_size(row.bytes));
    for (const double images : row.images_per_second) main += cell(images > 0 ? three_digits(images) : "\u2013");
    main += "</tr>";
  }
  main += "</tbody></table></div></section><section><h2 id=\"plots\">Side by side</h2><div class=\"plots\">";
  for (size_t i = 0; i < figures.places.size(); ++i) {
    std::vector<Bar> rows;
    for (const LayoutRow& row : figures.rows) {
      const double images = row.images_per_second[i];
      rows.push_back({row.name, images > 0 ? three_digits(images) : "", images, row.name.starts_with("l3")});
    }
    main += "<figure><figcaption>" + escaped(figures.places[i]) +
            ", images per second (longer is better)</figcaption>" + bars(figures.places[i], rows) + "</figure>";
  }
  main += "</div></section><section><h2 id=\"how\">How it was measured</h2><pre>" + escaped(figures.command) +
          "</pre><ul><li>" + machine_text(figures.machine) + ".</li>";
  for (size_t i = 0; i < figures.places.size(); ++i) {
    main += "<li>" + escaped(figures.places[i]) + ": " + escaped(figures.details[i]) + ".</li>";
  }
  return page("Ways to keep these images",
              escaped(figures.about) + "; " + std::to_string(figures.threads) + " threads, batches of " +
                  std::to_string(figures.batch) + ".",
              main + "</ul></section>");
}

}  // namespace bench
