#include "image_tree.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "file_io.h"
#include "formats/formats.h"

namespace tools {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kAppleDouble = "._ files of macOS";

std::string lower_extension(const std::string& path) { return lower(fs::path(path).extension().string()); }

struct Archive {
  std::string_view extension, unpacker;
};
constexpr std::array<Archive, 15> kArchives = {{{".tar.gz", "tar -xf"},
                                                {".tgz", "tar -xf"},
                                                {".tar.bz2", "tar -xf"},
                                                {".tbz", "tar -xf"},
                                                {".tbz2", "tar -xf"},
                                                {".tar.xz", "tar -xf"},
                                                {".txz", "tar -xf"},
                                                {".tar.zst", "tar -xf"},
                                                {".tzst", "tar -xf"},
                                                {".tar.lz4", "tar -I lz4 -xf"},
                                                {".zip", "unzip"},
                                                {".7z", "7z x"},
                                                {".rar", "unrar x"},
                                                {".gz", "gunzip"},
                                                {".xz", "unxz"}}};
const Archive* archive_of(const std::string& path) {
  const std::string name = lower(path);
  const auto found = std::find_if(kArchives.begin(), kArchives.end(),
                                  [&](const Archive& archive) { return name.ends_with(archive.extension); });
  return found == kArchives.end() ? nullptr : &*found;
}

// The type of a file as messages name it.
std::string type_of(const std::string& name) {
  const std::string file = fs::path(name).filename().string();
  if (file.starts_with("._")) return std::string(kAppleDouble);
  const std::string extension = lower_extension(file);
  if (!extension.empty()) return extension;
  return file.starts_with('.') ? file : "without extension";
}

using FolderId = std::pair<dev_t, ino_t>;

struct Listing {
  Kind kind;
  Tree tree;
  std::vector<FolderId> above;  // the folders on the way here

  // `relative` is the path below the folder that is listed. It is empty for the folder itself.
  void list(const std::string& folder, const std::string& relative) {
    // Reads the whole folder first, because a tree can be deeper than the number of files that a process may open.
    std::vector<std::string> names;
    std::error_code error;
    for (auto entry = fs::directory_iterator(folder, error); !error && entry != fs::directory_iterator();
         entry.increment(error)) {
      names.push_back(entry->path().filename().string());
    }
    if (error) tree.failures.push_back({folder, std::nullopt, "cannot read this folder: " + error.message()});
    std::sort(names.begin(), names.end());
    for (const std::string& name : names)
      take(name, join(folder, name), relative.empty() ? name : join(relative, name));
  }

  void take(const std::string& name, const std::string& path, const std::string& relative) {
    struct stat status {};
    // A broken link is listed. It fails when it is opened.
    const bool known = stat(path.c_str(), &status) == 0;
    if (const int error = errno; !known && error != ENOENT && error != ELOOP) {
      tree.failures.push_back({path, std::nullopt, std::string("cannot access: ") + std::strerror(error)});
    } else if (known && S_ISDIR(status.st_mode)) {
      const FolderId id(status.st_dev, status.st_ino);
      if (std::find(above.begin(), above.end(), id) != above.end()) {
        tree.skipped.push_back(path);
        return;
      }
      above.push_back(id);
      list(path, relative);
      above.pop_back();
    } else if (!has_extension_of(kind, path) || (known && S_ISREG(status.st_mode) && is_apple_double(name, path))) {
      tree.ignored.add(relative);
    } else if (known && !S_ISREG(status.st_mode)) {
      tree.skipped.push_back(path);
    } else {
      tree.files.push_back(relative);
    }
  }
};

}  // namespace

std::string lower(std::string text) {
  for (char& letter : text) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return text;
}

bool has_extension_of(Kind kind, const std::string& path) {
  if (kind == Kind::any) return true;
  if (kind == Kind::l3) return lower_extension(path) == ".l3";
  return formats::is_readable_name(fs::path(path).extension().string());
}

void Ignored::add(const std::string& name) {
  const std::string type = type_of(name);
  std::string_view is_unread;
  if (type != kAppleDouble) {
    is_unread = formats::unread_extension(name);
    const Archive* archive = archive_of(name);
    // Tars are supported, so a compressed tar counts as images, too. A .zip may contain anything.
    if (is_tar(name) || (archive != nullptr && archive->unpacker.starts_with("tar"))) {
      is_unread = archive != nullptr ? archive->extension : ".tar";
    }
  }
  if (is_unread.empty()) {
    ++others[type];
    return;
  }
  if (unread.empty()) first_unread = name;
  ++unread[std::string(is_unread)];
}

std::string Ignored::text(const Types& types) {
  constexpr size_t kMaxNamed = 8;
  std::vector<std::pair<std::string, uint64_t>> sorted(types.begin(), types.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  uint64_t more = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (i >= kMaxNamed) {
      more += sorted[i].second;
    } else {
      text += (i > 0 ? ", " : "") + std::to_string(sorted[i].second) + " " + one_line(sorted[i].first);
    }
  }
  return more > 0 ? text + ", " + std::to_string(more) + " of other types" : text;
}

uint64_t Ignored::count_of(const Types& types) {
  uint64_t count = 0;
  for (const auto& [type, number] : types) count += number;
  return count;
}

std::string Ignored::summary() const {
  const auto part = [](const Types& types, const char* one, const char* many) {
    const uint64_t count = count_of(types);
    if (count == 0) return std::string();
    return "; " + std::to_string(count) + " " + (count == 1 ? one : many) + " ignored: " + text(types);
  };
  return part(unread, "file of an unsupported type", "files of unsupported types") +
         part(others, "other file", "other files");
}

std::optional<Failure> Ignored::failure(const std::string& source) const {
  if (unread.empty()) return std::nullopt;
  const uint64_t count = count_of(unread);
  return Failure{source, std::nullopt,
                 (count == 1 ? "1 image or archive of an unsupported type: "
                             : std::to_string(count) + " images or archives of unsupported types: ") +
                     text(unread) + ", such as " + first_unread + " (to leave them out, use --ignore-unsupported)"};
}

bool is_tar(const std::string& path) { return path.size() > 4 && lower(path).ends_with(".tar"); }

std::string_view unpacker_of(const std::string& path) {
  const Archive* archive = archive_of(path);
  return archive == nullptr ? std::string_view() : archive->unpacker;
}

bool is_apple_double(const std::string& name, const std::string& path, uint64_t offset) {
  constexpr std::array<uint8_t, 4> kMagic = {0x00, 0x05, 0x16, 0x07};
  const size_t slash = name.rfind('/');
  if (name.compare(slash == name.npos ? 0 : slash + 1, 2, "._") != 0) return false;
  const Outcome<bridge::Buffer> begin = read_part(path, offset, kMagic.size());
  return begin && std::equal(kMagic.begin(), kMagic.end(), begin->bytes().begin());
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
