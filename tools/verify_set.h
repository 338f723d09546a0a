// l3 verify for data sets.
#pragma once

#include <string>

#include "base/parallel.h"
#include "conversion.h"
#include "options.h"

namespace tools {

struct SetVerification {
  std::string set;
  std::string against;  // a folder or a tar; empty: do not compare
  bool subset = false;  // the source may have images that the data set lacks
  bool ignore_unsupported = false;
  bool say_result = false;
  l3_limits limits{};
};

// Prints each failure and returns their number.
uint64_t verify_data_set(const SetVerification& verification, base::Parallel& parallel, Context& context);

}  // namespace tools
