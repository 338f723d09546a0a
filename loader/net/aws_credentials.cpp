#include "aws_credentials.h"

#include <curl/curl.h>

#include <cerrno>
#include <memory>
#include <new>
#include <vector>

#include "base/files.h"
#include "base/json_reader.h"
#include "http_url.h"
#include "s3_config.h"

namespace loader::net {
namespace {

constexpr size_t kAnswerLimit = 64 << 10;
constexpr time_t kRenewBefore = 300, kRetryAfter = 30;  // seconds

struct FreeEasy {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

size_t keep(char* data, size_t size, size_t count, void* to) {
  std::string& body = *static_cast<std::string*>(to);
  if (body.size() + size * count > kAnswerLimit) return 0;
  try {
    body.append(data, size * count);
  } catch (const std::bad_alloc&) {
    return 0;
  }
  return size * count;
}

// A request to a service of this machine; returns false unless it answers 200 within a second.
bool ask(const char* method, const std::string& url, const std::string& header, std::string& body) {
  const std::unique_ptr<CURL, FreeEasy> easy(curl_easy_init());
  const std::unique_ptr<curl_slist, FreeList> headers(header.empty() ? nullptr
                                                                     : curl_slist_append(nullptr, header.c_str()));
  if (easy == nullptr) return false;
  body.clear();
  curl_easy_setopt(easy.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy.get(), CURLOPT_CUSTOMREQUEST, method);
  curl_easy_setopt(easy.get(), CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(easy.get(), CURLOPT_NOPROXY, "*");
  curl_easy_setopt(easy.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy.get(), CURLOPT_TIMEOUT_MS, 1000L);
  curl_easy_setopt(easy.get(), CURLOPT_WRITEFUNCTION, &keep);
  curl_easy_setopt(easy.get(), CURLOPT_WRITEDATA, &body);
  long status = 0;
  return curl_easy_perform(easy.get()) == CURLE_OK &&
         curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status) == CURLE_OK && status == 200;
}

std::string first_line(std::string_view text) {
  std::string_view line = take_until(text, '\n');
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
  return std::string(line);
}

// Containers tell by environment variables where to ask. The token goes to no other machine in plain text.
bool ask_container(std::string& answer) {
  std::string url = variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  const std::string relative = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  if (!relative.empty()) url = "http://169.254.170.2" + relative;
  if (url.empty()) return false;
  WebUrl parsed;
  std::string unused;
  if (!parse_url(url, parsed, unused)) return false;
  const std::string_view whole = parsed.target.host();
  const std::string_view host =
      whole.starts_with('[') ? whole.substr(0, whole.find(']') + 1) : whole.substr(0, whole.find(':'));
  bool is_near = parsed.target.scheme() == "https";
  for (const char* const name :
       {"127.0.0.1", "localhost", "[::1]", "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"}) {
    is_near = is_near || host == name;
  }
  if (!is_near) return false;
  std::string token = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  const std::string file = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
  std::vector<uint8_t> bytes;
  if (!file.empty() && base::read_file(file, bytes) == 0) token.assign(bytes.begin(), bytes.end());
  token = first_line(token);
  return ask("GET", url, token.empty() ? "" : "Authorization: " + token, answer);
}

bool ask_machine(std::string& answer) {
  if (lower(variable("AWS_EC2_METADATA_DISABLED")) == "true") return false;
  std::string service = variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  if (service.empty()) service = "http://169.254.169.254";
  if (service.ends_with('/')) service.pop_back();
  std::string token, role;
  if (!ask("PUT", service + "/latest/api/token", "X-aws-ec2-metadata-token-ttl-seconds: 21600", token)) return false;
  const std::string header = "X-aws-ec2-metadata-token: " + first_line(token);
  const std::string roles = service + "/latest/meta-data/iam/security-credentials/";
  return ask("GET", roles, header, role) && ask("GET", roles + encode(first_line(role), false), header, answer);
}

}  // namespace

bool parse_remote_keys(std::string_view json, AwsKeys& keys, time_t& expires) {
  AwsKeys found;
  std::string expiration, name;
  base::JsonReader reader(json);
  if (!reader.open_object()) return false;
  while (reader.next_member(name)) {
    std::string* const value = name == "AccessKeyId"       ? &found.id
                               : name == "SecretAccessKey" ? &found.secret
                               : name == "Token"           ? &found.token
                               : name == "Expiration"      ? &expiration
                                                           : nullptr;
    if (!(value == nullptr ? reader.skip() : reader.text(*value))) return false;
  }
  std::tm time{};
  if (reader.failed() || !found || strptime(expiration.c_str(), "%Y-%m-%dT%H:%M:%S", &time) == nullptr) return false;
  keys = std::move(found);
  expires = timegm(&time);
  return true;
}

bool has_remote_keys() {
  return lower(variable("AWS_EC2_METADATA_DISABLED")) != "true" ||
         !variable("AWS_CONTAINER_CREDENTIALS_FULL_URI").empty() ||
         !variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI").empty();
}

StoreFault no_keys(const std::string& profile) {
  return make_fault(
      L3_ERROR_FILE, EACCES,
      "no credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set, the files of the AWS "
      "command line have none for the profile '" +
          printable(profile, 60) +
          "', and no container or EC2 machine gave any. For a public bucket add anonymous=true to the URL");
}

bool AwsKeySource::renew() {
  std::string answer;
  return (ask_container(answer) || ask_machine(answer)) && parse_remote_keys(answer, keys_, expires_);
}

StoreFault AwsKeySource::get(AwsKeys& keys) {
  if (!is_fixed_) {
    const time_t now = time(nullptr);
    if (now > expires_ - kRenewBefore && now >= tried_ + kRetryAfter) {
      tried_ = now;
      (void)renew();
    }
    if (now >= expires_) return no_keys(profile_);
  }
  keys = keys_;
  return {};
}

}  // namespace loader::net
