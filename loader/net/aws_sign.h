// AWS Signature Version 4, in headers.
#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "http_job.h"

namespace loader::net {

struct AwsKeys {
  std::string id, secret, token;  // the token may be empty

  explicit operator bool() const { return !id.empty() && !secret.empty(); }
};

// SHA-256 of bytes that come in pieces. Throws std::bad_alloc.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void add(std::span<const uint8_t> bytes);
  std::string hexadecimal();  // once

 private:
  void* context_;
};
std::string sha256(std::string_view text);

// Signs the method, the target, the host, all headers of the request, and Request::body_hash. Adds the headers
// Authorization, x-amz-date, x-amz-content-sha256 and x-amz-security-token.
void sign(Request& request, const AwsKeys& keys, const std::string& region, time_t now);

}  // namespace loader::net
