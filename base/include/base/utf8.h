// Whether bytes are UTF-8 (RFC 3629).
#pragma once

#include <cstddef>
#include <string_view>

namespace base {

// Returns the size of the UTF-8 character at the beginning of `text`, which must not be empty; 0 if there is none.
size_t utf8_size(std::string_view text);

bool is_utf8(std::string_view text);

}  // namespace base
