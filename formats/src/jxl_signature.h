// The signatures of JPEG XL files: a bare codestream, or a codestream in boxes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

namespace formats {

inline bool has_jxl_signature(std::span<const uint8_t> file) {
  constexpr std::string_view kBare("\xFF\x0A", 2), kBoxes("\0\0\0\x0CJXL \r\n\x87\n", 12);
  const auto begins = [&](std::string_view head) {
    return file.size() >= head.size() && std::equal(head.begin(), head.end(), file.begin(),
                                                    [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; });
  };
  return begins(kBare) || begins(kBoxes);
}

}  // namespace formats
