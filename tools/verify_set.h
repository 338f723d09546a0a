// l3 verify of a data set.
#pragma once

#include <string>

#include "conversion.h"
#include "options.h"
#include "parallel.h"

namespace tools {

struct SetVerification {
  std::string set;
  std::string against;  // a folder or a tar; empty: compare with nothing
  bool subset = false;  // the source may have images that the data set has not
  bool ignore_unsupported = false;
  bool say_result = false;
  l3_limits limits{};
};

// Says what is wrong; gives how many failures there were.
uint64_t verify_data_set(const SetVerification& verification, Parallel& parallel, Context& context);

}  // namespace tools
