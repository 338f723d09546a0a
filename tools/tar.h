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
  // Regular files, in the tar's order, and links to them: a link has the bytes of the member that it leads to.
  std::vector<TarMember> members;
  std::vector<std::string> skipped;   // devices and pipes
  std::vector<Failure> broken_links;  // symbolic links that lead to no member
};

// The contents, or why the file is no tar that can be trusted: names that lead out of a folder, damaged headers,
// members that reach past the end, members of a type that is not known. Tars that were written one behind the other
// into one file are read to the last.
Outcome<TarContents> list_tar(const std::string& path);

}  // namespace tools
