// URLs of data sets in Redis.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "loader/store.h"

namespace loader::redis {

struct Address {
  std::string host;  // an IPv6 address has no brackets
  uint16_t port = 6379;
  bool operator==(const Address&) const = default;
};

// "host:port", with brackets around an IPv6 address.
std::string text_of(const Address& address);
// True for names and addresses: letters, digits, '.', '-', '_' and ':'; at most 255.
bool is_host(std::string_view host);
// False if it is no number from 1 to 65535.
bool parse_port(std::string_view text, uint16_t& port);

struct Url {
  bool is_secure = false;  // TLS
  Address address;
  std::string user, password;
  uint32_t database = 0;
  std::string prefix;  // NAME: all keys begin with it and a slash

  // For messages: without user and password.
  std::string name() const;
};

// `environment_password` is used if the URL has no password; it may be null.
StoreFault parse_url(std::string_view text, const char* environment_password, Url& url);

}  // namespace loader::redis
