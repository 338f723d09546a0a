#include "http_url.h"

#include <curl/curl.h>

#include <charconv>
#include <memory>

namespace loader::net {
namespace {

struct FreeUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
using Url = std::unique_ptr<CURLU, FreeUrl>;

std::string part_of(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return {};
  std::string copy = text;
  curl_free(text);
  return copy;
}

// Encodes what no URL may contain, such as spaces and accents, and leaves the rest as it is.
std::string tidy(std::string_view url) {
  std::string clean;
  for (const char letter : url) {
    const bool fits =
        letter > 0x20 && letter < 0x7F && std::string_view("\"<>\\^`{|}").find(letter) == std::string::npos;
    clean += fits ? std::string(1, letter) : encode(std::string_view(&letter, 1), false);
  }
  return clean;
}

bool split(CURLU* url, Target& target, std::string& reason) {
  const std::string scheme = lower(part_of(url, CURLUPART_SCHEME)), host = lower(part_of(url, CURLUPART_HOST));
  if (scheme != "http" && scheme != "https") return reason = "the scheme must be http or https", false;
  if (host.empty()) return reason = "the URL names no host", false;
  if (!part_of(url, CURLUPART_FRAGMENT).empty()) return reason = "the URL has a fragment (#)", false;
  const std::string port = part_of(url, CURLUPART_PORT);
  target.origin = scheme + "://" + host;
  if (!port.empty() && port != (scheme == "http" ? "80" : "443")) target.origin += ":" + port;
  target.path = part_of(url, CURLUPART_PATH);
  target.query = part_of(url, CURLUPART_QUERY);
  return true;
}

}  // namespace

bool parse_url(const std::string& url, WebUrl& parsed, std::string& reason) {
  const Url handle(curl_url());
  if (handle == nullptr) return reason = "out of memory", false;
  const unsigned flags = CURLU_PATH_AS_IS | CURLU_NON_SUPPORT_SCHEME;
  if (curl_url_set(handle.get(), CURLUPART_URL, tidy(url).c_str(), flags) != CURLUE_OK) {
    return reason = "the URL is malformed", false;
  }
  parsed.user = part_of(handle.get(), CURLUPART_USER, CURLU_URLDECODE);
  parsed.password = part_of(handle.get(), CURLUPART_PASSWORD, CURLU_URLDECODE);
  return split(handle.get(), parsed.target, reason);
}

bool follow(const Target& from, const std::string& location, Target& to, std::string& reason) {
  const Url handle(curl_url());
  if (handle == nullptr) return reason = "out of memory", false;
  const unsigned flags = CURLU_PATH_AS_IS | CURLU_NON_SUPPORT_SCHEME;
  if (curl_url_set(handle.get(), CURLUPART_URL, from.url().c_str(), flags) != CURLUE_OK ||
      curl_url_set(handle.get(), CURLUPART_URL, tidy(location).c_str(), flags) != CURLUE_OK) {
    return reason = "the server redirects to a malformed address", false;
  }
  (void)curl_url_set(handle.get(), CURLUPART_FRAGMENT, nullptr, 0);
  std::string unused;
  const bool is_web = split(handle.get(), to, unused);
  const bool becomes_safe =
      is_web && from.scheme() == "http" && to.scheme() == "https" && from.host() == to.host() &&
      from.host().find(':', from.host().find(']') == std::string::npos ? 0 : from.host().find(']')) ==
          std::string::npos;
  if (is_web && (to.origin == from.origin || becomes_safe)) return true;
  reason = "the server redirects to " +
           printable(is_web ? to.origin : part_of(handle.get(), CURLUPART_SCHEME) + ":", 100) +
           ", which is not followed";
  return false;
}

std::string encode(std::string_view text, bool is_path) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char letter : text) {
    const bool unreserved = (letter >= 'A' && letter <= 'Z') || (letter >= 'a' && letter <= 'z') ||
                            (letter >= '0' && letter <= '9') || letter == '-' || letter == '.' || letter == '_' ||
                            letter == '~';
    if (unreserved || (is_path && letter == '/')) {
      encoded += letter;
    } else {
      const auto byte = static_cast<uint8_t>(letter);
      encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return encoded;
}

bool decode(std::string_view text, std::string& decoded) {
  decoded.clear();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    uint8_t byte = 0;
    const char* const digits = text.data() + i + 1;
    if (text.size() - i < 3 || std::from_chars(digits, digits + 2, byte, 16).ptr != digits + 2) return false;
    decoded += static_cast<char>(byte);
    i += 2;
  }
  return true;
}

std::string_view take_until(std::string_view& rest, char separator) {
  const size_t at = rest.find(separator);
  const std::string_view taken = rest.substr(0, at);
  rest = at == std::string_view::npos ? std::string_view() : rest.substr(at + 1);
  return taken;
}

std::string printable(std::string_view text, size_t limit) {
  std::string clean(text.substr(0, limit));
  for (char& letter : clean) {
    if (letter < 0x20 || letter > 0x7E) letter = letter == '\n' || letter == '\t' ? ' ' : '?';
  }
  if (text.size() > limit) clean += "...";
  return clean;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& letter : result) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return result;
}

bool to_number(std::string_view text, uint64_t& number) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end;
}

}  // namespace loader::net
