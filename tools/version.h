// What `l3 --version` prints.
#pragma once

#include <string>

namespace tools {

std::string version_text();

}  // namespace tools
