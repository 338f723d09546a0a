#include "trace.h"

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <string>

#include "data_error.h"

namespace loader {
namespace {

// Each stage has a row in the picture. Batches that overlap within a stage get rows of their own.
class Rows {
 public:
  explicit Rows(int stage) : stage_(stage) {}
  int row_for(uint64_t begin, uint64_t end) {
    size_t row = 0;
    while (row < ends_.size() && ends_[row] > begin) ++row;
    if (row == ends_.size()) ends_.push_back(0);
    ends_[row] = end;
    return 100 * stage_ + static_cast<int>(row);
  }
  size_t count() const { return ends_.size(); }
  int stage() const { return stage_; }

 private:
  int stage_;
  std::vector<uint64_t> ends_;
};

constexpr const char* kStages[] = {"fetch", "copy", "decode", "ready", "consumer waits", "consumer works"};
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

}  // namespace

l3_status write_trace(const std::vector<l3_batch_times>& times, const char* path, l3_data_error* error) {
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
  for (const Rows& stage : rows) {
    for (size_t row = 0; row < stage.count(); ++row) {
      const int id = 100 * stage.stage() + static_cast<int>(row);
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
