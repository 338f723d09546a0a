// The keys that sign requests: given ones, or those of a container or an EC2 machine, which change from time to time.
#pragma once

#include <ctime>
#include <string>

#include "aws_sign.h"
#include "loader/store.h"

namespace loader::net {

// One thread uses it.
class AwsKeySource {
 public:
  // Without given keys it asks the container or the machine, if has_remote_keys().
  AwsKeySource(AwsKeys given, std::string profile) : keys_(std::move(given)), profile_(std::move(profile)) {
    is_fixed_ = static_cast<bool>(keys_);
  }
  // May wait for some seconds, seldom: when keys are missing or expire soon.
  StoreFault get(AwsKeys& keys);

 private:
  bool renew();

  AwsKeys keys_;
  std::string profile_;
  bool is_fixed_ = false;
  time_t expires_ = 0, tried_ = 0;
};

// Whether the environment leaves it open that a container or a machine has keys.
bool has_remote_keys();
StoreFault no_keys(const std::string& profile);

// Reads an answer of such a service. Returns false unless it has keys.
bool parse_remote_keys(std::string_view json, AwsKeys& keys, time_t& expires);

}  // namespace loader::net
