// Folders of image files, and folders of L3 files that mirror them: SRC/a/b.png and DST/a/b.l3.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "failure.h"

namespace tools {

enum class Kind : uint8_t { foreign, l3, any };

// What the extension of a path says: one that formats::is_readable_name() knows, or .l3, in either case; or whatever it
// is.
bool has_extension_of(Kind kind, const std::string& path);

bool is_folder(const std::string& path);

struct Tree {
  std::vector<std::string> files;    // of the kind that was asked for; relative to the folder, in byte order
  uint64_t others = 0;               // files that are not
  std::vector<std::string> skipped;  // with such a name, but neither files nor links to them; also links in circles
  std::vector<Failure> failures;     // folders that could not be read
};

inline constexpr const char* kSkipped = "skipped: no file, or a link to a folder that it is in";

// All files in a folder and in the folders below it. Links are followed, but not into a folder that they are in.
Tree list_tree(const std::string& folder, Kind kind);

// a/b.png -> a/b.l3; also what two names have in common that stand for one image.
std::string l3_name(const std::string& path);

// In bytes; 0 if it cannot be told.
uint64_t listed_size(const std::string& path);

std::string join(const std::string& folder, const std::string& path);

}  // namespace tools
