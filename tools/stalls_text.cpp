#include "stalls_text.h"

#include <algorithm>

#include "base/json_writer.h"
#include "progress.h"

namespace tools {
namespace {

std::string padded(std::string text, size_t width, bool left = false) {
  if (text.size() < width) text.insert(left ? text.size() : 0, width - text.size(), ' ');
  return text;
}

std::string rate(double images_per_second) {
  return format_number(images_per_second, images_per_second < 10 ? 2 : images_per_second < 100 ? 1 : 0);
}

std::string milliseconds(double seconds) { return seconds > 0 ? format_number(seconds * 1000, 3) : "-"; }
std::string percent(double share) { return format_number(100 * share, 0) + " %"; }

}  // namespace

std::vector<std::string> stalls_lines(const bench::StallFigures& figures) {
  const bench::StallModel& model = figures.model;
  std::vector<std::string> lines;
  lines.push_back(figures.set + ": " + figures.about + "; " + format_number(model.threads, 0) + " threads on " +
                  format_number(model.processors, 0) + " processors");
  if (!figures.link.empty()) lines.push_back("The store is behind a simulated link: " + figures.link);
  lines.emplace_back();
  lines.push_back(padded("Measured", 28, true) + padded("images/s", 10) + padded("MB/s", 9) + padded("cpu ms", 9) +
                  padded("decode ms", 11) + padded("values ms", 11) + padded("waits", 8));
  for (const bench::StallRun& run : figures.runs) {
    const double bytes = run.images_per_second * run.bytes / 1e6;
    lines.push_back("  " + padded(run.name, 26, true) + padded(rate(run.images_per_second), 10) +
                    padded(bytes > 0 ? format_number(bytes, 1) : "-", 9) + padded(milliseconds(run.cpu), 9) +
                    padded(milliseconds(run.decoding - run.converting), 11) + padded(milliseconds(run.converting), 11) +
                    padded(run.bytes > 0 ? percent(run.waited) : "-", 8));
    if (run.copying + run.device > 0) {
      lines.push_back("    a batch on the GPU: copy " + milliseconds(run.copying) + " ms, decode " +
                      milliseconds(run.device) + " ms");
    }
  }
  lines.push_back("  " + padded("the store alone", 26, true) + padded(rate(model.link / model.bytes), 10) +
                  padded(format_number(model.link / 1e6, 1), 9));
  lines.emplace_back();
  lines.push_back("Where the time of an epoch goes: " + percent(figures.step_share) + " training, " +
                  percent(figures.decode_share) + " waiting for decoding, " + percent(figures.store_share) +
                  " waiting for the store");
  lines.emplace_back();
  lines.emplace_back("Predicted images/s, and the limit");
  for (const bench::PredictionTable& table : figures.predictions) {
    lines.push_back("  " + table.title);
    for (const bench::PredictionRow& row : table.rows) {
      lines.push_back("    " + padded(row.what, 14) + padded(rate(row.prediction.images_per_second), 10) + "  " +
                      padded(bench::bound_text(row.prediction.bound), 18, true) +
                      (row.is_now ? "  (as measured)" : ""));
      while (lines.back().ends_with(' ')) lines.back().pop_back();
    }
  }
  for (const bench::StallCheck& check : figures.checks) {
    lines.emplace_back();
    lines.push_back("Checked by running it: " + check.what + ": predicted " + rate(check.predicted) + ", measured " +
                    rate(check.measured) + " images/s, error " + format_number(100 * check.error(), 1) + " %");
  }
  lines.emplace_back();
  lines.push_back(figures.advice);
  return lines;
}

std::string stalls_json(const bench::StallFigures& figures) {
  const bench::StallModel& model = figures.model;
  const auto bound_name = [](bench::Bound bound) {
    switch (bound) {
      case bench::Bound::step: return "step";
      case bench::Bound::processors: return "processors";
      case bench::Bound::device: return "device";
      case bench::Bound::link: return "link";
    }
    return "";
  };
  base::Json json;
  json.open_object().member("set", std::string_view(figures.set)).member("about", std::string_view(figures.about));
  json.member("command", std::string_view(figures.command));
  json.key("machine").open_object();
  json.member("processor", std::string_view(figures.machine.processor))
      .member("processors", figures.machine.processors)
      .member("library", std::string_view(figures.machine.library))
      .member("date", std::string_view(figures.machine.date))
      .close_object();
  json.key("model").open_object();
  json.key("batch").number(model.batch, 0).key("bytes").number(model.bytes, 0).key("step").number(model.step, 6);
  json.key("threads").number(model.threads, 0).key("processors").number(model.processors, 0);
  json.key("one_thread").number(model.one_thread, 2).key("all_threads").number(model.all_threads, 2);
  json.key("cpu_from_memory").number(model.cpu_from_memory, 9).key("cpu_from_store").number(model.cpu_from_store, 9);
  json.key("link").number(model.link, 0).key("device_seconds").number(model.device_seconds, 9);
  json.close_object();
  json.key("shares").open_object().key("step").number(figures.step_share, 4);
  json.key("decode").number(figures.decode_share, 4).key("store").number(figures.store_share, 4).close_object();
  json.key("measured").open_array();
  for (const bench::StallRun& run : figures.runs) {
    json.open_object().member("name", std::string_view(run.name));
    json.key("images_per_second").number(run.images_per_second, 2).key("cpu").number(run.cpu, 9);
    json.key("decoding").number(run.decoding, 9).key("converting").number(run.converting, 9);
    json.key("copying").number(run.copying, 9).key("device").number(run.device, 9);
    json.key("waited").number(run.waited, 4).key("bytes").number(run.bytes, 1).close_object();
  }
  json.close_array().key("predicted").open_array();
  for (const bench::PredictionTable& table : figures.predictions) {
    json.open_object().member("title", std::string_view(table.title)).key("rows").open_array();
    for (const bench::PredictionRow& row : table.rows) {
      json.open_object().member("case", std::string_view(row.what));
      json.key("images_per_second").number(row.prediction.images_per_second, 2);
      json.member("bound", std::string_view(bound_name(row.prediction.bound))).member("now", row.is_now).close_object();
    }
    json.close_array().close_object();
  }
  json.close_array().key("checks").open_array();
  for (const bench::StallCheck& check : figures.checks) {
    json.open_object().member("case", std::string_view(check.what));
    json.key("predicted").number(check.predicted, 2).key("measured").number(check.measured, 2);
    json.key("error").number(check.error(), 4).close_object();
  }
  json.close_array().member("advice", std::string_view(figures.advice)).close_object();
  return json.line();
}

std::vector<std::string> layout_lines(const bench::LayoutFigures& figures) {
  std::vector<std::string> lines;
  lines.push_back(figures.about + "; " + std::to_string(figures.threads) + " threads, batches of " +
                  std::to_string(figures.batch));
  for (size_t i = 0; i < figures.places.size(); ++i) {
    lines.push_back("  " + figures.places[i] + ": " + figures.details[i]);
  }
  lines.emplace_back();
  std::string head = padded("images/s", 30, true) + padded("size", 12);
  for (const std::string& place : figures.places) head += padded(place, 14);
  lines.push_back(std::move(head));
  for (const bench::LayoutRow& row : figures.rows) {
    std::string line = padded(row.name + (row.lossy ? " (lossy)" : ""), 30, true) + padded(format_bytes(row.bytes), 12);
    for (const double images : row.images_per_second) line += padded(images > 0 ? rate(images) : "-", 14);
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string layouts_json(const bench::LayoutFigures& figures) {
  base::Json json;
  json.open_object()
      .member("about", std::string_view(figures.about))
      .member("command", std::string_view(figures.command));
  json.member("images", figures.images).member("threads", figures.threads).member("batch", figures.batch);
  json.key("places").open_array();
  for (size_t i = 0; i < figures.places.size(); ++i) {
    json.open_object().member("name", std::string_view(figures.places[i]));
    json.member("what", std::string_view(figures.details[i])).close_object();
  }
  json.close_array().key("layouts").open_array();
  for (const bench::LayoutRow& row : figures.rows) {
    json.open_object().member("name", std::string_view(row.name)).member("lossy", row.lossy).member("bytes", row.bytes);
    json.key("images_per_second").open_array();
    for (const double images : row.images_per_second) json.number(images, 2);
    json.close_array().close_object();
  }
  json.close_array().close_object();
  return json.line();
}

}  // namespace tools
