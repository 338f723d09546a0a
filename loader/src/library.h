// Loads the parts of libl3_data that are libraries of their own, because they need what not every system has.
#pragma once

#include <string>

namespace loader {

// Returns the function `entry` of a library that is in the folder of this code or where the system looks for libraries.
// `part` names it in messages: "CUDA". Returns null if there is no such library; `why` then has the reason, and `file`
// the file at fault, if any. A library is never unloaded: it owns texts and threads that may still be in use.
void* find_in_library(const char* library, const char* entry, const char* part, std::string& file, std::string& why);

}  // namespace loader
