// Text in HTML and XML.
#pragma once

#include <string>
#include <string_view>

namespace base {

// Escapes text for HTML and XML, both for content and for attributes. Control characters and bytes that are not valid
// UTF-8 become question marks.
std::string escaped(std::string_view text);

}  // namespace base
