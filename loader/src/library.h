// Loads the parts of libl3_data that are libraries of their own, because they need what not every system has.
#pragma once

#include <string>

namespace loader {

// Returns the function `entry` of a library that is in the folder of this code or where the system looks for libraries.
// If there is no such library, returns null and sets `why`, which begins with `absent`: "this build has no CUDA part".
// `file` is the file at fault, if there is one. A library is never unloaded: it owns texts and threads that may still
// be in use.
void* find_in_library(const char* library, const char* entry, const char* absent, std::string& file, std::string& why);

}  // namespace loader
