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
  bool force = false;    // also upload shards that are there already
  bool replace = false;  // another data set
  bool quiet = false;
  bool json = false;  // print the result as a line of JSON
  std::string how_to_go_on = "repeat the command";
};

// Returns the exit status.
int upload_set(const UploadOptions& options, Context& context);

}  // namespace tools
