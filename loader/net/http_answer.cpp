#include "http_answer.h"

#include <curl/curl.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "http_url.h"

namespace loader::net {
namespace {

constexpr size_t kLocationLimit = 8192;
constexpr uint64_t kRetryAfterLimit = 60;  // seconds

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

// Sets Answer::first, last and total.
bool take_range(Answer& answer, std::string_view value) {
  if (lower(value.substr(0, 6)) != "bytes ") return false;
  std::string_view total = trim(value.substr(6)), last = take_until(total, '/');
  answer.has_total = total != "*";
  if (answer.has_total && !to_number(total, answer.total)) return false;
  if (last == "*") return answer.has_total;
  const std::string_view first = take_until(last, '-');
  answer.has_range = to_number(first, answer.first) && to_number(last, answer.last) && answer.first <= answer.last &&
                     answer.last < UINT64_MAX && (!answer.has_total || answer.last < answer.total);
  return answer.has_range;
}

std::optional<std::chrono::milliseconds> waiting_time(const std::string& value) {
  uint64_t seconds = 0;
  if (!to_number(value, seconds)) {
    const time_t date = curl_getdate(value.c_str(), nullptr);
    if (date < 0) return std::nullopt;
    const time_t now = time(nullptr);
    seconds = date > now ? static_cast<uint64_t>(date - now) : 0;
  }
  return std::chrono::seconds(std::min(seconds, kRetryAfterLimit));
}

}  // namespace

void take_header(Answer& answer, std::string_view line) {
  if (line.starts_with("HTTP/")) {
    answer = {};
    (void)take_until(line, ' ');
    uint64_t status = 0;
    if (to_number(trim(line).substr(0, 3), status)) answer.status = static_cast<int>(status);
    return;
  }
  std::string_view rest = line;
  const std::string name = lower(take_until(rest, ':'));
  const std::string_view value = trim(rest);
  if (name == "content-length") {
    uint64_t length = 0;
    if (!to_number(value, length) || (answer.length && *answer.length != length)) answer.is_malformed = true;
    answer.length = length;
  } else if (name == "content-range") {
    if (answer.has_range || answer.has_total || !take_range(answer, value)) answer.is_malformed = true;
  } else if (name == "content-encoding") {
    if (!value.empty() && lower(value) != "identity") answer.is_encoded = true;
  } else if (name == "etag") {
    answer.etag = value.substr(0, 256);
  } else if (name == "location") {
    if (value.size() <= kLocationLimit) answer.location = value;
  } else if (name == "x-amz-bucket-region") {
    answer.region = printable(value, 40);
  } else if (name == "retry-after") {
    answer.retry_after = waiting_time(std::string(value.substr(0, 64)));
  }
}

std::string xml_text(std::string_view document, std::string_view name) {
  std::string opening = "<", closing = "</";
  opening.append(name) += '>';
  closing.append(name) += '>';
  const size_t begin = document.find(opening);
  if (begin == std::string_view::npos) return {};
  const size_t end = document.find(closing, begin + opening.size());
  if (end == std::string_view::npos) return {};
  std::string text(document.substr(begin + opening.size(), end - begin - opening.size()));
  // The ampersand comes last, so that nothing is decoded twice.
  for (const auto& [entity, letter] :
       {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&apos;", "'"}, {"&#34;", "\""}, {"&amp;", "&"}}) {
    for (size_t at = 0; (at = text.find(entity, at)) != std::string::npos; ++at) {
      text.replace(at, std::string_view(entity).size(), letter);
    }
  }
  return text;
}

StoreFault make_fault(l3_status status, int system_error, std::string reason) {
  return {status, system_error, L3_DATA_NONE, std::move(reason)};
}

StoreFault protocol_fault(std::string reason) { return make_fault(L3_ERROR_FILE, EPROTO, std::move(reason)); }

StoreFault status_fault(const Answer& answer) {
  std::string reason = "the server answered " + std::to_string(answer.status);
  if (!answer.code.empty()) {
    reason.append(" (").append(answer.code);
    if (!answer.message.empty()) reason.append(": ").append(answer.message);
    reason += ')';
  }
  int error = EPROTO;
  switch (answer.status) {
    case 401:
    case 403:
    case 407: error = EACCES; break;
    case 404:
    case 410: error = ENOENT; break;
    case 408:
    case 504: error = ETIMEDOUT; break;
    case 429:
    case 503: error = EBUSY; break;
    case 500:
    case 502: error = EIO; break;
    case 507: error = ENOSPC; break;
    default: break;
  }
  if (answer.status == 401 || answer.status == 403) reason += ": access is denied";
  if (answer.status == 404 || answer.status == 410) reason += ": there is no such object";
  return make_fault(L3_ERROR_FILE, error, std::move(reason));
}

bool is_temporary(const Answer& answer) {
  switch (answer.status) {
    case 408:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504: return true;
    default: return answer.code == "RequestTimeout" || is_overload(answer);
  }
}

bool is_overload(const Answer& answer) {
  return answer.status == 429 || answer.status == 503 || answer.code == "SlowDown";
}

}  // namespace loader::net
