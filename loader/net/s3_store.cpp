#include "s3_store.h"

#include <cerrno>
#include <ctime>

#include "aws_credentials.h"
#include "s3_config.h"
#include "s3_upload.h"
#include "secrets.h"
#include "web_store.h"

namespace loader::net {
namespace {

class S3Site final : public Site {
 public:
  explicit S3Site(const S3Config& config)
      : region_(config.region), is_anonymous_(config.is_anonymous), source_(config.keys, config.profile) {}

  StoreFault authorize(Request& request) override {
    if (is_anonymous_) return {};
    if (StoreFault fault = source_.get(keys_)) return fault;
    sign(request, keys_, region_, time(nullptr));
    return {};
  }
  const std::string& user() const override { return nobody_; }
  const std::string& password() const override { return nobody_; }
  bool uses_netrc() const override { return false; }
  bool follows_redirects() const override { return false; }
  bool is_s3() const override { return true; }
  void redact(std::string& text) const override {
    Secrets secrets;
    secrets.add(keys_.secret);
    secrets.add(keys_.token);
    secrets.remove_from(text);
  }

  void explain(const Answer& answer, StoreFault& fault) const override {
    if (answer.status == 301 || answer.status == 307 || answer.code == "AuthorizationHeaderMalformed") {
      fault.system_error = EACCES;
      fault.reason += answer.region.empty() || answer.region == region_
                          ? ": the bucket is in another region than " + region_
                          : ": the bucket is in the region " + answer.region + ", not in " + region_ +
                                "; add region=" + answer.region + " to the URL";
    } else if (answer.code == "RequestTimeTooSkewed") {
      fault.reason += ": the clock of this machine differs too much from that of the server";
    } else if (answer.code == "ExpiredToken") {
      fault.system_error = EACCES;
      fault.reason += ": the credentials have expired";
    } else if (answer.status == 403 && is_anonymous_) {
      fault.reason += "; the request was anonymous";
    }
  }

 private:
  std::string region_, nobody_;
  bool is_anonymous_;
  AwsKeySource source_;
  AwsKeys keys_;
};

class S3Store final : public WebStore {
 public:
  S3Store(S3Config config, const StoreOptions& options)
      : WebStore(name_of(config, {}), options), config_(std::move(config)) {}

  std::unique_ptr<Object> open(std::string_view key) const override {
    Target target = config_.base;
    if (!config_.prefix.empty()) target.path += encode(config_.prefix, true) + "/";
    target.path += encode(key, true);
    return std::make_unique<WebObject>(name_of(config_, key), std::move(target));
  }

 private:
  static std::string name_of(const S3Config& config, std::string_view key) {
    std::string name = "s3://" + config.bucket;
    for (const std::string_view part : {std::string_view(config.prefix), key}) {
      if (!part.empty()) name.append("/").append(printable(part, 4096));
    }
    return name;
  }

  std::unique_ptr<Site> make_site() const override { return std::make_unique<S3Site>(config_); }

  StoreFault put_object(const Object& object, const Upload& upload) override {
    return S3Upload(engine(), static_cast<const WebObject&>(object).target(), upload).run();
  }

  S3Config config_;
};

}  // namespace

std::unique_ptr<Store> open_s3(const std::string& url, const StoreOptions& options, StoreFault& fault) {
  S3Config config;
  fault = configure_s3(url, options, config);
  if (!fault && !config.is_anonymous && !config.keys && !has_remote_keys()) fault = no_keys(config.profile);
  if (fault) return nullptr;
  StoreOptions complete = options;
  complete.certificates = config.certificates;
  return std::make_unique<S3Store>(std::move(config), complete);
}

}  // namespace loader::net
