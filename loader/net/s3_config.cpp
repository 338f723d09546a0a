#include "s3_config.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <vector>

#include "aws_profile.h"
#include "base/files.h"
#include "http_store.h"

namespace loader::net {
namespace {

StoreFault wrong(std::string reason) { return make_fault(L3_ERROR_ARGUMENT, EINVAL, std::move(reason)); }

std::string first_of(std::initializer_list<std::string> texts) {
  for (const std::string& text : texts) {
    if (!text.empty()) return text;
  }
  return {};
}

bool consists_of(std::string_view text, std::string_view others) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') ||
           others.find(letter) != std::string_view::npos;
  });
}

constexpr std::string_view kCapitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

// The settings of the profile, and of the services that it names.
class ProfileSettings {
 public:
  StoreFault load(const std::string& wanted) {
    const std::string home = variable("HOME");
    StoreFault fault = load_file(first_of({variable("AWS_CONFIG_FILE"), home + "/.aws/config"}), false);
    if (!fault)
      fault = load_file(first_of({variable("AWS_SHARED_CREDENTIALS_FILE"), home + "/.aws/credentials"}), true);
    if (fault) return fault;
    profile_ = first_of({wanted, variable("AWS_PROFILE"), "default"});
    const bool was_named = !wanted.empty() || !variable("AWS_PROFILE").empty();
    if (was_named && !sections_.contains(profile_)) {
      return wrong("the files of the AWS command line have no profile '" + printable(profile_, 60) + "'");
    }
    return {};
  }
  const std::string& profile() const { return profile_; }

  std::string get(const std::string& name) const { return find(profile_, name); }
  // From the section of services that the profile refers to.
  std::string get_of_services(const std::string& name) const { return find("services " + get("services"), name); }

 private:
  std::string find(const std::string& section, const std::string& name) const {
    const auto at = sections_.find(section);
    if (at == sections_.end()) return {};
    const auto setting = at->second.find(name);
    return setting == at->second.end() ? std::string() : setting->second;
  }

  StoreFault load_file(const std::string& path, bool is_credentials) {
    std::vector<uint8_t> bytes;
    const int error = base::read_file(path, bytes);
    if (error == ENOENT || error == ENOTDIR) return {};
    if (error != 0) return make_fault(L3_ERROR_FILE, error, printable(path) + " cannot be read");
    parse_aws_file({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, is_credentials, sections_);
    return {};
  }

  AwsSections sections_;
  std::string profile_;
};

StoreFault parse_parameters(std::string_view query, std::map<std::string, std::string>& parameters) {
  for (const char* const name : {"endpoint_url", "region", "profile", "addressing_style", "anonymous"})
    parameters[name];
  while (!query.empty()) {
    std::string_view value = take_until(query, '&');
    const std::string name(take_until(value, '='));
    const auto at = parameters.find(name);
    if (at == parameters.end()) return wrong("the URL has an unknown parameter: " + printable(name, 40));
    if (!decode(value, at->second)) return wrong("the URL has a malformed parameter: " + name);
  }
  return {};
}

// The address of the bucket.
StoreFault find_base(const std::string& endpoint, const std::string& style, S3Config& config) {
  if (style != "auto" && style != "path" && style != "virtual") {
    return wrong("addressing_style must be auto, path or virtual");
  }
  WebUrl parsed;
  std::string reason;
  const std::string suffix = config.region.starts_with("cn-") ? ".amazonaws.com.cn" : ".amazonaws.com";
  if (!parse_url(endpoint.empty() ? "https://s3." + config.region + suffix : endpoint, parsed, reason)) {
    return wrong("endpoint_url: " + reason);
  }
  if (!parsed.user.empty() || !parsed.password.empty() || !parsed.target.query.empty()) {
    return wrong("endpoint_url must have neither a user nor a query");
  }
  config.base = parsed.target;
  if (!config.base.path.ends_with('/')) config.base.path += '/';
  // With dots the certificates of AWS do not fit, and host names have no capitals.
  const bool fits_host = consists_of(config.bucket, "-");
  if (style == "virtual" && !consists_of(config.bucket, "-.")) {
    return wrong("this bucket's name cannot be part of a host name: use addressing_style=path");
  }
  if (style == "virtual" || (style == "auto" && endpoint.empty() && fits_host)) {
    config.base.origin.insert(config.base.origin.find("://") + 3, config.bucket + ".");
  } else {
    config.base.path += config.bucket + "/";
  }
  return {};
}

StoreFault find_keys(const ProfileSettings& settings, bool profile_was_asked_for, S3Config& config) {
  if (!profile_was_asked_for) {
    config.keys = {variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY"), variable("AWS_SESSION_TOKEN")};
    if (config.keys) return {};
    if (!config.keys.id.empty()) return wrong("AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is not");
  }
  config.keys = {settings.get("aws_access_key_id"), settings.get("aws_secret_access_key"),
                 settings.get("aws_session_token")};
  if (config.keys) return {};
  for (const char* const name : {"role_arn", "sso_session", "sso_start_url", "credential_process", "login_session"}) {
    if (!settings.get(name).empty()) {
      return make_fault(L3_ERROR_UNSUPPORTED, EACCES,
                        "the profile '" + printable(settings.profile(), 60) + "' uses " + name +
                            ", which is not supported: put what `aws configure export-credentials --format env` prints "
                            "into the environment");
    }
  }
  config.keys = {};
  return {};
}

}  // namespace

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

StoreFault configure_s3(const std::string& url, const StoreOptions& options, S3Config& config) {
  std::string_view query = std::string_view(url).substr(std::string_view("s3://").size());
  std::string_view place = take_until(query, '?');
  config.bucket = take_until(place, '/');
  while (place.ends_with('/')) place.remove_suffix(1);
  config.prefix = place;
  if (config.bucket.size() > 255 || !consists_of(config.bucket, std::string(kCapitals) + "-._") ||
      config.bucket.front() == '.') {
    return wrong("the URL names no bucket: s3://BUCKET/PREFIX");
  }
  std::map<std::string, std::string> parameters;
  if (StoreFault fault = parse_parameters(query, parameters)) return fault;
  const std::string& anonymous = parameters["anonymous"];
  if (!anonymous.empty() && anonymous != "true" && anonymous != "false")
    return wrong("anonymous must be true or false");
  config.is_anonymous = anonymous == "true";

  ProfileSettings settings;
  if (StoreFault fault = settings.load(parameters["profile"])) return fault;
  config.profile = settings.profile();
  config.region = first_of({parameters["region"], variable("AWS_REGION"), variable("AWS_DEFAULT_REGION"),
                            settings.get("region"), "us-east-1"});
  if (config.region.size() > 40 || !consists_of(config.region, "-")) return wrong("the region is malformed");
  const std::string endpoint = first_of({parameters["endpoint_url"], variable("AWS_ENDPOINT_URL_S3"),
                                         variable("AWS_ENDPOINT_URL"), settings.get_of_services("s3.endpoint_url"),
                                         settings.get("s3.endpoint_url"), settings.get("endpoint_url")});
  const std::string style = first_of({parameters["addressing_style"], settings.get("s3.addressing_style"), "auto"});
  if (StoreFault fault = find_base(endpoint, style, config)) return fault;
  config.certificates = certificates(options, true);
  if (config.certificates.empty()) config.certificates = settings.get("ca_bundle");
  return config.is_anonymous ? StoreFault{} : find_keys(settings, !parameters["profile"].empty(), config);
}

}  // namespace loader::net
