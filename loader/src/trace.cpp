#include "trace.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <string>

#include "data_error.h"

namespace loader {
namespace {

constexpr int kRowsOfStage = 10000;

// Each stage has a row in the picture. Batches that overlap within a stage get rows of their own.
class Rows {
 public:
  explicit Rows(int stage) : stage_(stage) {}
  int row_for(uint64_t begin, uint64_t end) {
    size_t row = 0;
    while (row < ends_.size() && ends_[row] > begin) ++row;
    if (row == ends_.size()) ends_.push_back(0);
    ends_[row] = end;
    return kRowsOfStage * stage_ + static_cast<int>(row);
  }
  size_t count() const { return ends_.size(); }
  int stage() const { return stage_; }

 private:
  int stage_;
  std::vector<uint64_t> ends_;
};

constexpr const char* kStages[] = {"fetch", "copy", "decode", "ready", "consumer waits", "consumer works", "request"};
constexpr size_t kRequest = 6;
constexpr size_t kStageCount = sizeof kStages / sizeof kStages[0];

void add_event(std::string& json, Rows& rows, const char* name, size_t batch, uint64_t begin, uint64_t end,
               const l3_batch_times& times) {
  if (begin == 0 || end < begin) return;
  char text[320];
  std::snprintf(text, sizeof text,
                ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"name\":\"%s %zu\",\"ts\":%.3f,\"dur\":%.3f,\"args\":"
                "{\"bytes_read\":%" PRIu64 ",\"bytes_out\":%" PRIu64 "}}",
                rows.row_for(begin, end), name, batch, static_cast<double>(begin) / 1e3,
                static_cast<double>(end - begin) / 1e3, times.bytes_read, times.bytes_out);
  json += text;
}

// A request, from when it was sent until its last byte. Before that it waited for its turn.
void add_request(std::string& json, Rows& rows, const l3_request& request) {
  const uint64_t begin = request.sent != 0 ? request.sent : request.queued;
  if (begin == 0 || request.finished < begin) return;
  char text[480];
  const auto ms = [](uint64_t from, uint64_t to) {
    return to > from && from > 0 ? static_cast<double>(to - from) / 1e6 : 0;
  };
  std::snprintf(text, sizeof text,
                ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"name\":\"sample %" PRIu64
                "\",\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"batch\":%" PRIu64 ",\"offset\":%" PRIu64 ",\"bytes\":%" PRIu64
                ",\"queued_ms\":%.3f,\"first_byte_ms\":%.3f,\"attempts\":%" PRIu32 ",\"shared\":%" PRIu32
                ",\"hedged\":%" PRIu32 ",\"failed\":%" PRIu32 "}}",
                rows.row_for(begin, request.finished), request.sample, static_cast<double>(begin) / 1e3,
                static_cast<double>(request.finished - begin) / 1e3, request.batch, request.offset, request.bytes,
                ms(request.queued, request.sent), ms(begin, request.answered), request.attempts, request.shared,
                request.hedged, request.failed);
  json += text;
}

}  // namespace

l3_status write_trace(const std::vector<l3_batch_times>& times, const std::vector<l3_request>& requests,
                      const char* path, l3_data_error* error) {
  std::string json =
      "{\"traceEvents\":[{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"l3 loader\"}}";
  std::vector<Rows> rows;
  for (size_t stage = 0; stage < kStageCount; ++stage) rows.emplace_back(static_cast<int>(stage));
  for (size_t i = 0; i < times.size(); ++i) {
    const l3_batch_times& of = times[i];
    const auto add = [&](size_t stage, uint64_t begin, uint64_t end) {
      add_event(json, rows[stage], kStages[stage], i, begin, end, of);
    };
    add(0, of.begun, of.fetched);
    add(1, of.copy_begun, of.copied);
    add(2, of.decode_begun, of.decoded);
    add(3, of.decoded, of.given);
    add(4, of.asked, of.given);
    if (i + 1 < times.size()) add(5, of.given, times[i + 1].asked);
  }
  std::vector<l3_request> sorted = requests;
  std::sort(sorted.begin(), sorted.end(), [](const l3_request& a, const l3_request& b) {
    return std::max(a.sent, a.queued) < std::max(b.sent, b.queued);
  });
  for (const l3_request& request : sorted) add_request(json, rows[kRequest], request);
  for (const Rows& stage : rows) {
    for (size_t row = 0; row < stage.count(); ++row) {
      const int id = kRowsOfStage * stage.stage() + static_cast<int>(row);
      char text[160];
      std::snprintf(text, sizeof text,
                    ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":\"%s\"}}", id,
                    kStages[stage.stage()]);
      json += text;
    }
  }
  json += "\n]}\n";

  std::FILE* file = std::fopen(path, "wb");
  if (file == nullptr) {
    return fail(error, L3_ERROR_FILE, path, std::string("cannot write: ") + std::strerror(errno), L3_DATA_NONE, errno);
  }
  const bool written = std::fwrite(json.data(), 1, json.size(), file) == json.size();
  const int why = errno;
  if (std::fclose(file) != 0 || !written) {
    const int number = written ? errno : why;
    return fail(error, L3_ERROR_FILE, path, std::string("cannot write: ") + std::strerror(number), L3_DATA_NONE,
                number);
  }
  return succeed(error);
}

}  // namespace loader
