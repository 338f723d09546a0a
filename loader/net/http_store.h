// Objects on a web server: URL/KEY.
#pragma once

#include <memory>
#include <string>

#include "loader/store.h"

namespace loader::net {

std::unique_ptr<Store> open_http(const std::string& url, const StoreOptions& options, StoreFault& fault);

// The file with certificates of authorities: that of the options, else of the environment variables AWS_CA_BUNDLE (for
// S3), SSL_CERT_FILE and CURL_CA_BUNDLE; else empty, for those of the system.
std::string certificates(const StoreOptions& options, bool is_s3);

}  // namespace loader::net
