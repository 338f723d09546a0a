// Reads whole files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace base {

// Returns 0 or an errno. After a failure `bytes` is empty.
int read_file(const std::string& path, std::vector<uint8_t>& bytes);

}  // namespace base
