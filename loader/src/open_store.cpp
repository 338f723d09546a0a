// Opens far stores, which libl3_data_net.so implements, and completes their options.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <mutex>
#include <optional>

#include "library.h"
#include "loader/store.h"

namespace loader {
namespace {

constexpr std::array<std::string_view, 5> kSchemes = {"http", "https", "s3", "redis", "rediss"};

OpenNetStore net_entry(StoreFault& fault) {
  static std::mutex mutex;
  static OpenNetStore entry = nullptr;
  const std::lock_guard lock(mutex);
  if (entry != nullptr) return entry;
  std::string file, why;
  entry = reinterpret_cast<OpenNetStore>(
      find_in_library("libl3_data_net.so", kNetEntry, "this build has no network part", file, why));
  if (entry == nullptr) {
    fault = {L3_ERROR_UNSUPPORTED, 0, L3_DATA_NONE, file.empty() ? why : file + ": " + why};
  }
  return entry;
}

// A whole number from the environment, or nothing if it is not set or not a number below 2^32.
std::optional<uint32_t> number_from(const char* name) {
  const char* const text = std::getenv(name);
  if (text == nullptr || !std::isdigit(static_cast<unsigned char>(*text))) return std::nullopt;
  char* end = nullptr;
  const unsigned long long number = std::strtoull(text, &end, 10);
  if (*end != 0 || number > UINT32_MAX) return std::nullopt;
  return static_cast<uint32_t>(number);
}

}  // namespace

StoreOptions with_defaults(StoreOptions options) {
  if (options.timeout_ms == 0) options.timeout_ms = std::min(number_from("L3_TIMEOUT").value_or(30), 1u << 20) * 1000;
  if (options.attempts == 0) options.attempts = number_from("L3_ATTEMPTS").value_or(6);
  if (options.connections == 0) options.connections = number_from("L3_CONNECTIONS").value_or(256);
  if (!options.hedge) options.hedge = number_from("L3_HEDGE").value_or(0) != 0;
  if (options.certificates.empty()) {
    const char* const file = std::getenv("L3_CERTIFICATES");
    if (file != nullptr) options.certificates = file;
  }
  options.timeout_ms = std::max(options.timeout_ms, 1u);
  options.attempts = std::clamp(options.attempts, 1u, 100u);
  options.connections = std::clamp(options.connections, 1u, 4096u);
  return options;
}

bool is_url(std::string_view path) {
  const size_t colon = path.find("://");
  if (colon == path.npos || colon == 0 || std::isalpha(static_cast<unsigned char>(path[0])) == 0) return false;
  return std::all_of(path.begin(), path.begin() + static_cast<ptrdiff_t>(colon), [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '+' || letter == '-' || letter == '.';
  });
}

std::string url_without_secrets(std::string_view url) {
  const size_t begin = url.find("://");
  if (begin == url.npos) return std::string(url);
  url = url.substr(0, url.find_first_of("?#", begin + 3));
  // The last @ before the path ends the user and the password, which may themselves contain one.
  const size_t slash = std::min(url.find('/', begin + 3), url.size());
  const size_t at = url.substr(0, slash).rfind('@');
  const size_t host = at == url.npos || at < begin + 3 ? begin + 3 : at + 1;
  return std::string(url.substr(0, begin + 3)) + std::string(url.substr(host));
}

std::unique_ptr<Store> open_store(const std::string& root, const StoreOptions& options, StoreFault& fault) {
  fault = {};
  const std::string_view scheme = std::string_view(root).substr(0, root.find("://"));
  if (std::find(kSchemes.begin(), kSchemes.end(), scheme) == kSchemes.end()) {
    fault = {L3_ERROR_ARGUMENT, 0, L3_DATA_NONE,
             "unknown kind of store: the URL must begin with http, https, s3, redis or rediss"};
    return nullptr;
  }
  const OpenNetStore open = net_entry(fault);
  if (open == nullptr) return nullptr;
  return std::unique_ptr<Store>(open(kNetVersion, root.c_str(), with_defaults(options), fault));
}

}  // namespace loader
