#include "image_tree.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "formats/formats.h"

namespace tools {
namespace {

namespace fs = std::filesystem;

std::string lower_extension(const std::string& path) {
  std::string extension = fs::path(path).extension().string();
  for (char& letter : extension) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return extension;
}

using FolderId = std::pair<dev_t, ino_t>;

struct Listing {
  Kind kind;
  Tree tree;
  std::vector<FolderId> above;  // the folders on the way here

  // `relative` is empty for the folder that is listed.
  void list(const std::string& folder, const std::string& relative) {
    // All of a folder first: a tree may be deeper than a process may have folders open.
    std::vector<std::string> names;
    std::error_code error;
    for (auto entry = fs::directory_iterator(folder, error); !error && entry != fs::directory_iterator();
         entry.increment(error)) {
      names.push_back(entry->path().filename().string());
    }
    if (error) tree.failures.push_back({folder, std::nullopt, "cannot read this folder: " + error.message()});
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) take(join(folder, name), relative.empty() ? name : join(relative, name));
  }

  void take(const std::string& path, const std::string& relative) {
    struct stat status {};
    // A link that leads nowhere is listed, and fails when it is opened.
    const bool known = stat(path.c_str(), &status) == 0;
    if (const int error = errno; !known && error != ENOENT && error != ELOOP) {
      tree.failures.push_back({path, std::nullopt, std::string("cannot look at it: ") + std::strerror(error)});
    } else if (known && S_ISDIR(status.st_mode)) {
      const FolderId id(status.st_dev, status.st_ino);
      if (std::find(above.begin(), above.end(), id) != above.end()) {
        tree.skipped.push_back(path);
        return;
      }
      above.push_back(id);
      list(path, relative);
      above.pop_back();
    } else if (!has_extension_of(kind, path)) {
      ++tree.others;
    } else if (known && !S_ISREG(status.st_mode)) {
      tree.skipped.push_back(path);
    } else {
      tree.files.push_back(relative);
    }
  }
};

}  // namespace

bool has_extension_of(Kind kind, const std::string& path) {
  if (kind == Kind::any) return true;
  if (kind == Kind::l3) return lower_extension(path) == ".l3";
  return formats::is_readable_name(fs::path(path).extension().string());
}

bool is_folder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

Tree list_tree(const std::string& folder, Kind kind) {
  Listing listing{kind, {}, {}};
  struct stat status {};
  if (stat(folder.c_str(), &status) == 0) listing.above.emplace_back(status.st_dev, status.st_ino);
  listing.list(folder, "");
  std::sort(listing.tree.files.begin(), listing.tree.files.end());
  return std::move(listing.tree);
}

uint64_t listed_size(const std::string& path) {
  std::error_code error;
  const uint64_t size = fs::file_size(path, error);
  return error ? 0 : size;
}

std::string l3_name(const std::string& path) { return fs::path(path).replace_extension(".l3").string(); }

std::string join(const std::string& folder, const std::string& path) { return (fs::path(folder) / path).string(); }

}  // namespace tools
