// Data sets in Redis or Valkey: one server, or a cluster.
#pragma once

#include <memory>
#include <string>

#include "loader/store.h"

namespace loader {

// Makes no request. `url` is redis://[user[:password]@]host[:port]/[db/]NAME, or rediss:// for TLS. If the URL has no
// password, that of the environment variable REDISCLI_AUTH is used.
std::unique_ptr<Store> open_redis(const std::string& url, const StoreOptions& options, StoreFault& fault);

}  // namespace loader
