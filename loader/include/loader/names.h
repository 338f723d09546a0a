// Names of samples and of roles (spec/shard.md, sections 1 and 3.3).
#pragma once

#include <cstddef>
#include <string_view>

namespace loader {

inline constexpr size_t kMaxNameBytes = 4096;
inline constexpr size_t kMaxRoleBytes = 255;

inline bool is_name(std::string_view text) {
  if (text.empty() || text.size() > kMaxNameBytes) return false;
  if (text.find('\0') != text.npos) return false;
  for (size_t begin = 0;;) {
    const size_t slash = text.find('/', begin);
    const std::string_view part = text.substr(begin, slash == text.npos ? text.npos : slash - begin);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == text.npos) return true;
    begin = slash + 1;
  }
}

inline bool is_role(std::string_view text) {
  return text.size() <= kMaxRoleBytes && is_name(text) && text.find('/') == text.npos;
}

}  // namespace loader
