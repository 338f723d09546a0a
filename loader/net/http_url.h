// Web addresses: their parts, the keys of objects as parts of paths, and which redirects may be followed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace loader::net {

// Where a request goes.
struct Target {
  std::string origin;  // "https://host:port" in lower case, without the port if it is the scheme's own
  std::string path;    // percent-encoded; begins with a slash
  std::string query;   // percent-encoded, without the question mark; may hold secrets

  std::string url() const { return origin + path + (query.empty() ? "" : "?" + query); }
  std::string_view scheme() const { return std::string_view(origin).substr(0, origin.find(':')); }
  // As the Host header has it.
  std::string_view host() const { return std::string_view(origin).substr(origin.find("://") + 3); }
};

struct WebUrl {
  Target target;
  std::string user, password;  // decoded
};

// Takes http and https. If it returns false, `reason` says why, without the URL.
bool parse_url(const std::string& url, WebUrl& parsed, std::string& reason);

// Finds where a redirect leads. Returns false, and says why, unless that is the same scheme, host and port, or https at
// the same host, both with their usual ports.
bool follow(const Target& from, const std::string& location, Target& to, std::string& reason);

// Percent-encodes every byte that is not unreserved (RFC 3986), as S3 signs it. Slashes are kept in paths.
std::string encode(std::string_view text, bool is_path);
// Decodes percent-encoded bytes; returns false if a percent sign is followed by something else.
bool decode(std::string_view text, std::string& decoded);

// Splits at the first separator; `rest` is empty if there is none.
std::string_view take_until(std::string_view& rest, char separator);

// What another side wrote, for messages: printable ASCII, at most `limit` bytes.
std::string printable(std::string_view text, size_t limit = 200);

std::string lower(std::string_view text);
// A whole number and nothing else.
bool to_number(std::string_view text, uint64_t& number);

}  // namespace loader::net
