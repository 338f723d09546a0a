#include "http_store.h"

#include <cerrno>
#include <cstdlib>

#include "secrets.h"
#include "web_store.h"

namespace loader::net {
namespace {

class HttpSite final : public Site {
 public:
  explicit HttpSite(const WebUrl& url) : user_(url.user), password_(url.password) {
    secrets_.add(url.password);
    secrets_.add(url.target.query);
  }
  const std::string& user() const override { return user_; }
  const std::string& password() const override { return password_; }
  bool uses_netrc() const override { return true; }
  bool follows_redirects() const override { return true; }
  bool is_s3() const override { return false; }
  void redact(std::string& text) const override { secrets_.remove_from(text); }

 private:
  std::string user_, password_;
  Secrets secrets_;
};

class HttpStore final : public WebStore {
 public:
  HttpStore(WebUrl url, const StoreOptions& options)
      : WebStore(printable(url.target.origin + url.target.path, 4096), options), url_(std::move(url)) {}

  std::unique_ptr<Object> open(std::string_view key) const override {
    Target target = url_.target;
    if (!target.path.ends_with('/')) target.path += '/';
    target.path += encode(key, true);
    return std::make_unique<WebObject>(target.origin + target.path, std::move(target));
  }

 private:
  StoreFault put_object(const Object& object, const Upload& upload) override {
    Body body{upload.size, upload.read, upload.sent};
    Call call;
    call.request.method = "PUT";
    call.request.target = static_cast<const WebObject&>(object).target();
    call.request.body = &body;
    engine().run_call(call);
    return call.fault;
  }

  std::unique_ptr<Site> make_site() const override { return std::make_unique<HttpSite>(url_); }

  WebUrl url_;
};

}  // namespace

std::string certificates(const StoreOptions& options, bool is_s3) {
  if (!options.certificates.empty()) return options.certificates;
  for (const char* const name : {"AWS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE"}) {
    const char* const value = (is_s3 || name[0] != 'A') ? std::getenv(name) : nullptr;
    if (value != nullptr && *value != 0) return value;
  }
  return {};
}

std::unique_ptr<Store> open_http(const std::string& url, const StoreOptions& options, StoreFault& fault) {
  WebUrl parsed;
  std::string reason;
  if (!parse_url(url, parsed, reason)) return fault = make_fault(L3_ERROR_ARGUMENT, EINVAL, reason), nullptr;
  StoreOptions complete = options;
  complete.certificates = certificates(options, false);
  return std::make_unique<HttpStore>(std::move(parsed), complete);
}

}  // namespace loader::net
