// The entry of libl3_data_net.so.
#include <curl/curl.h>

#include <cerrno>
#include <mutex>
#include <new>
#include <stdexcept>

#include "http_answer.h"
#include "http_store.h"
#include "redis_store.h"
#include "s3_store.h"

namespace loader::net {
namespace {

bool start_curl() {
  static const bool started = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  return started;
}

std::unique_ptr<Store> open(const std::string& url, const StoreOptions& options, StoreFault& fault) {
  const auto is = [&](std::string_view scheme) { return url.starts_with(scheme); };
  if (!start_curl()) return fault = make_fault(L3_ERROR_FILE, 0, "libcurl cannot be started"), nullptr;
  if (is("redis://") || is("rediss://")) return open_redis(url, options, fault);
  if (is("http://") || is("https://")) return open_http(url, options, fault);
  if (is("s3://")) return open_s3(url, options, fault);
  return fault = make_fault(L3_ERROR_UNSUPPORTED, EPROTONOSUPPORT, "no store has this scheme"), nullptr;
}

}  // namespace
}  // namespace loader::net

extern "C" __attribute__((visibility("default"))) loader::Store* l3_data_open_net_store(
    uint32_t version, const char* url, const loader::StoreOptions& options, loader::StoreFault& fault) {
  using namespace loader::net;
  if (version != loader::kNetVersion) {
    fault = make_fault(L3_ERROR_UNSUPPORTED, 0, "libl3_data_net.so has another version");
    return nullptr;
  }
  try {
    return open(url, options, fault).release();
  } catch (const std::bad_alloc&) {
    fault = make_fault(L3_ERROR_MEMORY, ENOMEM, "out of memory");
    return nullptr;
  }
}
