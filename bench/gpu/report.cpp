#include "report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <limits>

#include "base/json_writer.h"

namespace gpu_bench {
namespace {

std::string now() {
  const std::time_t time = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&time, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

// "2048x1024", or "various".
std::string size_of(const Case& a_case) {
  const Item& first = a_case.items.front();
  for (const Item& item : a_case.items) {
    if (item.width != first.width || item.height != first.height) return "various";
  }
  return std::to_string(first.width) + "x" + std::to_string(first.height);
}

bool copies(Mode mode) { return mode == Mode::pinned || mode == Mode::staged; }

double giga_per_second(uint64_t bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) / 1e9 / seconds : 0;
}

// Of what the link or the memory could move in that time, how much was moved. Not a number where parts of files are
// read from the device's memory: how many bytes that is the report does not know.
double share(const Run& run, const Case& a_case, const char* method, const Job& job, const Measured& measured) {
  for (const Item& item : a_case.items) {
    const formats::Image& picture = a_case.picture(item);
    const bool whole = item.width == picture.width && item.height == picture.height;
    if (!whole && !copies(measured.mode)) return std::numeric_limits<double>::quiet_NaN();
  }
  // The peer on the processor sends pixels.
  const bool pixels_travel = method == kPngOnProcessor.name;
  const uint64_t travelled = pixels_travel ? a_case.written_bytes() : job.encoded_bytes();
  const uint64_t bytes = copies(measured.mode) ? travelled : job.encoded_bytes() + a_case.written_bytes();
  const double rate = copies(measured.mode) ? run.device.link_bytes_per_second : run.device.copy_bytes_per_second;
  return rate > 0 ? giga_per_second(bytes, measured.median_seconds()) * 1e9 / rate : 0;
}

std::array<double, 2> range(const Measured& measured) {
  if (measured.seconds.empty()) return {0, 0};
  const auto [minimum, maximum] = std::minmax_element(measured.seconds.begin(), measured.seconds.end());
  return {*minimum, *maximum};
}

}  // namespace

std::string json_line(const Run& run, const Settings& settings, const Case& a_case, const char* method, const Job& job,
                      const Measured& measured) {
  constexpr int kDigits = 9;
  const double seconds = measured.median_seconds();
  const auto [minimum, maximum] = range(measured);
  base::Json json;
  json.open_object();
  json.member("device", run.device.name).member("driver", run.device.driver).member("commit", run.commit);
  json.member("method", method).member("case", a_case.name).member("mode", name_of(measured.mode));
  json.member("images", a_case.items.size()).member("distinct", a_case.pictures->size());
  json.member("size", size_of(a_case)).member("source", a_case.source);
  json.member("decoded_bytes", a_case.decoded_bytes()).member("written_bytes", a_case.written_bytes());
  json.member("encoded_bytes", job.encoded_bytes());
  json.key("seconds").number(seconds, kDigits).key("seconds_min").number(minimum, kDigits);
  json.key("seconds_max").number(maximum, kDigits).member("runs", measured.seconds.size());
  if (measured.loop_seconds > 0) json.key("seconds_loop").number(measured.loop_seconds, kDigits);
  if (measured.batches > 0) json.member("batches", measured.batches);
  if (measured.sets > 0) json.member("sets", measured.sets);
  json.key("gb_per_s").number(giga_per_second(a_case.decoded_bytes(), seconds), 3);
  json.key("images_per_s").number(seconds > 0 ? static_cast<double>(a_case.items.size()) / seconds : 0, 1);
  json.key("link_gb_per_s").number(run.device.link_bytes_per_second / 1e9, 2);
  json.key("copy_gb_per_s").number(run.device.copy_bytes_per_second / 1e9, 2);
  json.key(copies(measured.mode) ? "link_share" : "copy_share");
  json.number(share(run, a_case, method, job, measured), 4);
  for (const auto& [name, value] : job.facts()) json.member(name, value);
  json.member("effort", settings.effort).member("threads", run.threads);
  json.member("equal", measured.equal);
  if (!measured.problem.empty()) json.member("problem", measured.problem);
  json.member("clock", measured.clocks).member("time", now()).member("command", run.command);
  json.close_object();
  return json.line() + '\n';
}

std::string table_head() {
  return "GB/s: decoded bytes. share: of the link for pinned and staged, of a copy within the device otherwise.\n"
         "case               method   mode    images    decoded MB  ratio    median ms  min..max %      GB/s   "
         "images/s  "
         "share  equal\n";
}

std::string table_row(const Run& run, const Case& a_case, const char* method, const Job& job,
                      const Measured& measured) {
  const double seconds = measured.median_seconds();
  const auto [minimum, maximum] = range(measured);
  const auto percent = [&](double value) { return seconds > 0 ? 100 * (value / seconds - 1) : 0; };
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(),
                "%-18s %-8s %-7s %6zu  %12.1f %6.3f %12.4f  %+5.1f..%+5.1f %9.2f %10.0f %5.1f%%  %s\n",
                a_case.name.c_str(), method, name_of(measured.mode), a_case.items.size(),
                static_cast<double>(a_case.decoded_bytes()) / 1e6,
                static_cast<double>(job.encoded_bytes()) / static_cast<double>(a_case.decoded_bytes()), seconds * 1e3,
                percent(minimum), percent(maximum), giga_per_second(a_case.decoded_bytes(), seconds),
                seconds > 0 ? static_cast<double>(a_case.items.size()) / seconds : 0,
                100 * share(run, a_case, method, job, measured), measured.equal ? "yes" : "NO");
  std::string row = text.data();
  if (!measured.problem.empty()) row += "  " + measured.problem + '\n';
  return row;
}

}  // namespace gpu_bench
