#include "redis_url.h"

#include <algorithm>
#include <charconv>

namespace loader::redis {
namespace {

constexpr size_t kMaxUrl = 8192;

StoreFault wrong(std::string reason) { return {L3_ERROR_ARGUMENT, 0, L3_DATA_NONE, std::move(reason)}; }

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool decode(std::string_view text, std::string& to) {
  to.clear();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      to += text[i];
      continue;
    }
    if (text.size() - i < 3) return false;
    const int high = digit_of(text[i + 1]), low = digit_of(text[i + 2]);
    if (high < 0 || low < 0) return false;
    to += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return true;
}

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

template <class Number>
bool parse_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return is_number(text) && error == std::errc() && end == text.data() + text.size();
}

StoreFault parse_user(std::string_view text, const char* environment_password, Url& url) {
  const size_t colon = text.find(':');
  if (!decode(text.substr(0, colon), url.user)) return wrong("the user in the URL is not percent-encoded correctly");
  if (colon != text.npos && !decode(text.substr(colon + 1), url.password)) {
    return wrong("the password in the URL is not percent-encoded correctly");
  }
  if (url.password.empty() && environment_password != nullptr) url.password = environment_password;
  if (!url.user.empty() && url.password.empty()) {
    return wrong("the URL has a user and no password; REDISCLI_AUTH may have it");
  }
  return {};
}

StoreFault parse_address(std::string_view text, Address& address) {
  std::string_view host = text, port;
  bool has_port = false;
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == text.npos) return wrong("the URL has no ']' after its IPv6 address");
    host = text.substr(1, end - 1);
    const std::string_view rest = text.substr(end + 1);
    if (!rest.empty() && rest[0] != ':') return wrong("the URL has something between its IPv6 address and the port");
    has_port = !rest.empty();
    if (has_port) port = rest.substr(1);
  } else if (const size_t colon = text.rfind(':'); colon != text.npos) {
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
    has_port = true;
    if (host.find(':') != host.npos) return wrong("an IPv6 address in a URL needs brackets");
  }
  if (!is_host(host)) return wrong("the URL has no valid host");
  if (has_port && !parse_port(port, address.port)) return wrong("the URL's port must be a number from 1 to 65535");
  address.host = host;
  return {};
}

}  // namespace

std::string text_of(const Address& address) {
  const bool is_v6 = address.host.find(':') != std::string::npos;
  return (is_v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

bool is_host(std::string_view host) {
  return !host.empty() && host.size() <= 255 && std::all_of(host.begin(), host.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_' || c == ':';
  });
}

bool parse_port(std::string_view text, uint16_t& port) { return parse_number(text, port) && port != 0; }

std::string Url::name() const {
  const std::string place = database == 0 ? "" : std::to_string(database) + "/";
  return (is_secure ? "rediss://" : "redis://") + text_of(address) + "/" + place + prefix;
}

StoreFault parse_url(std::string_view text, const char* environment_password, Url& url) {
  url = {};
  if (text.size() > kMaxUrl) return wrong("the URL is too long");
  const size_t scheme = text.find("://");
  if (text.substr(0, scheme) == "rediss") {
    url.is_secure = true;
  } else if (text.substr(0, scheme) != "redis") {
    return wrong("the URL does not begin with redis:// or rediss://");
  }
  text.remove_prefix(scheme + 3);
  const size_t slash = text.find('/');
  std::string_view authority = text.substr(0, slash), path = slash == text.npos ? "" : text.substr(slash + 1);
  if (path.find_first_of("?#") != path.npos) return wrong("a Redis URL has no '?' and no '#'; write %3F and %23");

  const size_t at = authority.rfind('@');
  const std::string_view user = at == authority.npos ? "" : authority.substr(0, at);
  if (StoreFault fault = parse_user(user, environment_password, url)) return fault;
  if (at != authority.npos) authority.remove_prefix(at + 1);
  if (StoreFault fault = parse_address(authority, url.address)) return fault;

  while (path.ends_with('/')) path.remove_suffix(1);
  if (const size_t end = path.find('/'); end != path.npos && is_number(path.substr(0, end))) {
    if (!parse_number(path.substr(0, end), url.database)) return wrong("the URL's database number is too large");
    path.remove_prefix(end + 1);
  }
  if (!decode(path, url.prefix)) return wrong("the URL's path is not percent-encoded correctly");
  if (url.prefix.empty()) return wrong("the URL names no data set: redis://HOST/NAME");
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 32 || c == 127; };
  if (std::any_of(url.prefix.begin(), url.prefix.end(), is_control)) {
    return wrong("the name of the data set in the URL has control characters");
  }
  return {};
}

}  // namespace loader::redis
