// Where a bucket is, and as whom to ask for it: from the URL, the environment and the files of the AWS command line.
#pragma once

#include <string>

#include "aws_sign.h"
#include "http_url.h"
#include "loader/store.h"

namespace loader::net {

struct S3Config {
  std::string bucket, prefix;  // the prefix without slashes at its ends
  Target base;                 // of the bucket; the path ends with a slash
  std::string region, profile, certificates;
  bool is_anonymous = false;
  AwsKeys keys;  // empty if neither the environment nor the files have any
};

// Takes "s3://BUCKET/PREFIX?NAME=VALUE&..." with endpoint_url, region, profile, addressing_style and anonymous.
StoreFault configure_s3(const std::string& url, const StoreOptions& options, S3Config& config);

// An environment variable; empty if it is not set.
std::string variable(const char* name);

}  // namespace loader::net
