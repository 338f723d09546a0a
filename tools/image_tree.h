// Folders of image files, and folders of L3 files with the same structure: SRC/a/b.png and DST/a/b.l3.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "failure.h"

namespace tools {

// Converts the capital letters of ASCII to small letters.
std::string lower(std::string text);

enum class Kind : uint8_t { foreign, l3, any };

// Whether a path has an extension of this kind, in capital or small letters. Those of `foreign` are the ones that
// formats::is_readable_name() knows. Every path is of the kind `any`.
bool has_extension_of(Kind kind, const std::string& path);

bool is_folder(const std::string& path);

bool is_tar(const std::string& path);

// The command that unpacks an archive that l3 cannot read, such as "tar -xf". It depends on the extension. Empty for
// other files.
std::string_view unpacker_of(const std::string& path);

// Counts ignored files by type.
struct Ignored {
  // The number of files of each type. Types have the names that messages use: ".txt", "without extension".
  using Types = std::map<std::string, uint64_t>;

  Types others;              // files that are not images
  Types unread;              // images and archives of unsupported types
  std::string first_unread;  // the name of the first one

  void add(const std::string& name);
  // "12 .txt, 3 .json"
  static std::string text(const Types& types);
  static uint64_t count_of(const Types& types);
  // "; 3 other files ignored: 2 .json, 1 .txt", and the same for unsupported images. Empty if there are none.
  std::string summary() const;
  // The failure to report if there are unsupported images and the user has not asked to ignore them.
  std::optional<Failure> failure(const std::string& source) const;
};

struct Tree {
  std::vector<std::string> files;    // of the wanted kind; relative to the folder, sorted by their bytes
  Ignored ignored;                   // other files
  std::vector<std::string> skipped;  // not regular files, although the name fits; links in circles
  std::vector<Failure> failures;     // folders that cannot be read
};

inline constexpr const char* kSkipped = "skipped: not a regular file, or a link to one of its own parent folders";

// Lists all files in a folder and in the folders below it. Links are followed, but not into a folder that contains
// them. The extra files of macOS (is_apple_double) are ignored for every kind.
Tree list_tree(const std::string& folder, Kind kind);

// Whether a file is one of those in which macOS stores what other file systems have no place for. It is named ._x.png
// for a file x.png, so it has the extension of an image but is not one. The bytes from `offset` of `path` are read only
// if the name fits.
bool is_apple_double(const std::string& name, const std::string& path, uint64_t offset = 0);

// Turns a/b.png into a/b.l3. Two names with the same result stand for the same image.
std::string l3_name(const std::string& path);

// The size of a file in bytes, or 0 if it cannot be found.
uint64_t listed_size(const std::string& path);

std::string join(const std::string& folder, const std::string& path);

}  // namespace tools
