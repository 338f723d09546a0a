// Folders of image files, and folders of L3 files that mirror them: SRC/a/b.png and DST/a/b.l3.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "failure.h"

namespace tools {

// With ASCII's capital letters as small ones.
std::string lower(std::string text);

enum class Kind : uint8_t { foreign, l3, any };

// Whether a path has an extension of the kind, in either case: one that formats::is_readable_name() knows, or .l3.
// Every path is of the kind `any`.
bool has_extension_of(Kind kind, const std::string& path);

bool is_folder(const std::string& path);

bool is_tar(const std::string& path);

// How to unpack an archive that is not read, by its extension: "tar -xf"; empty for other files.
std::string_view unpacker_of(const std::string& path);

// Files that nothing is made of, by type.
struct Ignored {
  // How many of each type, as messages call it: ".txt", "without extension".
  using Types = std::map<std::string, uint64_t>;

  Types others;              // no images
  Types unread;              // images and archives of types that are not read
  std::string first_unread;  // the name of one

  void add(const std::string& name);
  // "12 .txt, 3 .json"
  static std::string text(const Types& types);
  static uint64_t count_of(const Types& types);
  // "; 3 other files ignored: 2 .json, 1 .txt", and the same of unread images: empty where there are none.
  std::string summary() const;
  // What to say of unread images where nobody asked to ignore them.
  std::optional<Failure> failure(const std::string& source) const;
};

struct Tree {
  std::vector<std::string> files;    // of the kind that was asked for; relative to the folder, in byte order
  Ignored ignored;                   // files that are not
  std::vector<std::string> skipped;  // with such a name, but neither files nor links to them; also links in circles
  std::vector<Failure> failures;     // folders that could not be read
};

inline constexpr const char* kSkipped = "skipped: no file, or a link to a folder that it is in";

// All files in a folder and in the folders below it. Links are followed, but not into a folder that they are in. What
// macOS keeps beside files (is_apple_double) is ignored, whatever the kind.
Tree list_tree(const std::string& folder, Kind kind);

// Whether a file holds what macOS knows of another one and the file system has no place for: ._x.png beside x.png,
// which has the extension of an image and is none. Only if the name begins so, looks at the bytes, from `offset` of
// `path` on.
bool is_apple_double(const std::string& name, const std::string& path, uint64_t offset = 0);

// a/b.png -> a/b.l3; also what two names have in common that stand for one image.
std::string l3_name(const std::string& path);

// In bytes; 0 if it cannot be told.
uint64_t listed_size(const std::string& path);

std::string join(const std::string& folder, const std::string& path);

}  // namespace tools
