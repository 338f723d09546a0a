#include "library.h"

#include <dlfcn.h>
#include <unistd.h>

namespace loader {
namespace {

// The folder of the library or program that contains this code, with a slash at the end; empty if unknown.
std::string own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&find_in_library), &info) == 0 || info.dli_fname == nullptr) return {};
  const std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/') + 1);  // npos + 1 is 0
}

}  // namespace

void* find_in_library(const char* library, const char* entry, const char* absent, std::string& file, std::string& why) {
  const std::string folder = own_folder(), beside = folder + library;
  const bool is_beside = !folder.empty() && access(beside.c_str(), F_OK) == 0;
  file = is_beside ? beside : "";
  void* handle = dlopen(is_beside ? beside.c_str() : library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const text = dlerror();
    why = text == nullptr ? "cannot be loaded" : text;
    // For a missing file the system's message says only that.
    const bool is_missing = !is_beside && why.find("No such file") != std::string::npos;
    const std::string where = folder.empty() ? "installed" : "next to this library in " + folder;
    if (is_missing) why = std::string(absent) + ": " + library + " is not " + where;
    return nullptr;
  }
  void* const found = dlsym(handle, entry);
  if (found == nullptr) {
    file = is_beside ? beside : library;
    why = std::string("this library does not export ") + entry;
  }
  return found;
}

}  // namespace loader
