// What a tar file holds, without unpacking it: POSIX ustar and pax, and GNU's long names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "failure.h"

namespace tools {

struct TarMember {
  std::string name;  // as the tar has it, without ./ before it
  uint64_t offset;   // of its bytes in the tar
  uint64_t size;
};

struct TarContents {
  std::vector<TarMember> members;    // regular files, in the tar's order
  std::vector<std::string> skipped;  // links and devices
};

// The contents, or why the file is no tar that can be trusted: names that lead out of a folder, damaged headers,
// members that reach past the end.
Outcome<TarContents> list_tar(const std::string& path);

}  // namespace tools
