// Objects on a web server: URL/KEY.
#pragma once

#include <memory>
#include <string>

#include "loader/store.h"

namespace loader::net {

std::unique_ptr<Store> open_http(const std::string& url, const StoreOptions& options, StoreFault& fault);

// The file with certificates of authorities: the option, else the first of these environment variables that is set,
// else empty for the system's.
std::string certificates(const StoreOptions& options, bool is_s3);

}  // namespace loader::net
