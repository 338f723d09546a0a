// The head of an HTTP answer, as far as reads and uploads need it, and faults that answers report.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "loader/store.h"

namespace loader::net {

struct Answer {
  int status = 0;
  std::optional<uint64_t> length;  // Content-Length
  // Content-Range: "bytes FIRST-LAST/TOTAL" or "bytes */TOTAL".
  bool has_range = false, has_total = false;
  uint64_t first = 0, last = 0, total = 0;
  bool is_malformed = false;  // a field that matters is wrong, or is there twice
  bool is_encoded = false;    // Content-Encoding says something other than identity
  std::string etag, location, region;
  std::optional<std::chrono::milliseconds> retry_after;

  // An error document of S3.
  std::string code, message;
};

// Takes a line of the head, with or without its end of line. A status line begins the answer anew.
void take_header(Answer& answer, std::string_view line);

// The text of the first element with this name, without markup; empty if there is none. Enough for S3's answers.
std::string xml_text(std::string_view document, std::string_view name);

// The fault of an answer whose status is not a success.
StoreFault status_fault(const Answer& answer);
// Whether the same request may succeed later.
bool is_temporary(const Answer& answer);
// Whether the server says that it has too much to do.
bool is_overload(const Answer& answer);

StoreFault make_fault(l3_status status, int system_error, std::string reason);
// The other side breaks the protocol.
StoreFault protocol_fault(std::string reason);

}  // namespace loader::net
