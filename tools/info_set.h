// l3 info for data sets.
#pragma once

#include <string>

#include "options.h"

namespace tools {

int describe_data_set(const std::string& path, bool json, Context& context);

}  // namespace tools
