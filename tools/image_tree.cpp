#include "image_tree.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

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

}  // namespace

bool has_extension_of(Kind kind, const std::string& path) {
  if (kind == Kind::l3) return lower_extension(path) == ".l3";
  // .pnm says that it is one of three formats, so that it names none to write, but it can be read.
  return formats::format_of(fs::path(path).extension().string()).has_value() || lower_extension(path) == ".pnm";
}

bool is_folder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

Outcome<Tree> list_tree(const std::string& folder, Kind kind) {
  Tree tree;
  std::error_code error;
  for (auto entry = fs::recursive_directory_iterator(folder, error);
       !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    std::error_code unknown;  // a link that leads nowhere is listed, and fails when it is opened
    if (entry->is_directory(unknown)) continue;
    if (has_extension_of(kind, entry->path().string())) {
      tree.files.push_back(entry->path().lexically_relative(folder).string());
    } else {
      ++tree.others;
    }
  }
  if (error) return Failure{folder, std::nullopt, "cannot read this folder: " + error.message()};
  std::sort(tree.files.begin(), tree.files.end());
  return tree;
}

uint64_t listed_size(const std::string& path) {
  std::error_code error;
  const uint64_t size = fs::file_size(path, error);
  return error ? 0 : size;
}

std::string l3_name(const std::string& path) { return fs::path(path).replace_extension(".l3").string(); }

std::string join(const std::string& folder, const std::string& path) { return (fs::path(folder) / path).string(); }

}  // namespace tools
