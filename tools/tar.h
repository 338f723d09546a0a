// Lists the contents of a tar file without unpacking it: POSIX ustar and pax, and the long names of GNU tar.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "failure.h"

namespace tools {

struct TarMember {
  std::string name;  // as in the tar, but without ./ at its beginning
  uint64_t offset;   // of its bytes in the tar
  uint64_t size;
};

struct TarContents {
  // Regular files and links to them, in the order of the tar. A link has the bytes of the member that it leads to.
  std::vector<TarMember> members;
  std::vector<std::string> skipped;   // devices and pipes
  std::vector<Failure> broken_links;  // symbolic links that lead to no member
};

// Returns the contents, or why the tar cannot be used: names that lead out of the folder, damaged headers, members that
// extend beyond the end of the file, members of unknown types. A file may consist of several tars.
Outcome<TarContents> list_tar(const std::string& path);

// The member with the names of classes, a JSON list of texts: the first is that of label 0. Readers that group members
// by what comes before the first dot leave it out, because it has no dot.
inline constexpr const char* kClassesMember = "__classes__";

// The names in such a member.
Outcome<std::vector<std::string>> classes_in(const std::string& path, const TarMember& member);

}  // namespace tools
