// Recognises the formats whose readers a program can leave out.
#include <algorithm>
#include <string_view>

#include "adapters.h"

namespace formats {
namespace {

bool has(std::span<const uint8_t> file, std::string_view bytes, size_t at = 0) {
  return file.size() >= at + bytes.size() &&
         std::equal(bytes.begin(), bytes.end(), file.begin() + static_cast<std::ptrdiff_t>(at),
                    [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; });
}

}  // namespace

bool is_jpeg(std::span<const uint8_t> file) { return has(file, "\xFF\xD8\xFF"); }

bool is_webp(std::span<const uint8_t> file) { return has(file, "RIFF") && has(file, "WEBP", 8); }

// A bare codestream, or a codestream in boxes.
bool is_jxl(std::span<const uint8_t> file) {
  constexpr std::string_view kBare("\xFF\x0A", 2), kBoxes("\0\0\0\x0CJXL \r\n\x87\n", 12);
  return has(file, kBare) || has(file, kBoxes);
}

}  // namespace formats
