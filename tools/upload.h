// l3 upload, for its subcommand and for l3 convert.
#pragma once

#include <cstdint>
#include <string>

#include "conversion.h"

namespace tools {

struct UploadOptions {
  std::string set, url;
  uint32_t jobs = 4;
  bool verify = false;
  bool force = false;
  bool quiet = false;
  bool json = false;  // print the result as a line of JSON
};

// Returns the exit status.
int upload_set(const UploadOptions& options, Context& context);

}  // namespace tools
