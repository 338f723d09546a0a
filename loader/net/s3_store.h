// Objects in a bucket of S3 or of a server that speaks as S3 does.
#pragma once

#include <memory>
#include <string>

#include "loader/store.h"

namespace loader::net {

std::unique_ptr<Store> open_s3(const std::string& url, const StoreOptions& options, StoreFault& fault);

}  // namespace loader::net
