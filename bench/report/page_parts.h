// page.css and page.js, as CMake puts them into the program.
#pragma once

namespace bench {

extern const char* const kPageStyle;
extern const char* const kPageScript;

}  // namespace bench
