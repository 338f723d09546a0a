// The sources of a data set: files of a folder, of a list or of tars, in groups that belong together.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bridge/buffer.h"
#include "failure.h"
#include "image_tree.h"
#include "l3/l3_data.h"

namespace tools {

struct SourceOptions {
  std::string source;              // a folder, or a tar
  std::string list;                // a file with the names of the files to take; empty: all
  std::vector<std::string> pairs;  // ROLE=PATTERN
  std::string group;               // "none" or "stem"; empty: the default for the source
  std::string labels;              // "folder" or "none"; empty: the default for the source
  bool ignore_unsupported = false;
  bool pages = false;  // make a sample of each page of a TIFF; not with groups
};

enum class Use : uint8_t {
  image,
  bytes,     // kept as they are
  metadata,  // of the group's first sample
  label,     // a number in decimal digits
};

// There may be millions of items, so values that many of them share are in Sources.
struct SourceItem {
  std::string name;     // in the data set; also the path in the folder or in the tar
  uint64_t offset = 0;  // in the tar; 0 for other files
  uint64_t size = 0;
  int64_t modified = 0;  // of the file, in nanoseconds
  uint32_t tar = 0;      // 1 for the first of Sources::tars; 0: not in a tar
  uint32_t role = 0;     // index into Sources::roles
  uint32_t page = 0;     // number of the page in its file, from 1; 0: the whole file
  Use use = Use::image;
};

struct SourceGroup {
  uint64_t first, count;  // range in Sources::items
  uint32_t label = L3_NO_LABEL;
};

struct Sources {
  std::string folder;  // the folder of the files
  std::vector<std::string> tars, roles;
  std::vector<SourceItem> items;
  std::vector<SourceGroup> groups;
  std::vector<std::string> classes;
  uint64_t bytes = 0;
  Ignored ignored;                   // files that are not used
  std::vector<std::string> skipped;  // not regular files, or links in circles
  std::vector<Failure> left_out;     // files that are missing or cannot be read, incomplete groups
  std::vector<Failure> refused;      // reasons not to begin at all

  std::vector<SourceItem>::const_iterator begin_of(const SourceGroup& group) const {
    return items.begin() + static_cast<std::ptrdiff_t>(group.first);
  }
  uint64_t bytes_of(const SourceGroup& group) const;
  const std::string& role_of(const SourceItem& item) const { return roles[item.role]; }
  // The path of the file or tar that contains the item.
  std::string path_of(const SourceItem& item) const;
  // The name of the item in messages.
  std::string display_name(const SourceItem& item) const;
  // Reads its bytes.
  Outcome<bridge::Buffer> read(const SourceItem& item) const;
};

Sources list_sources(const SourceOptions& options);

// Lists all files of a folder or a tar without groups, even those that a data set would not use. Nothing is ignored.
// Files with the extension of an image have Use::image.
Sources list_files(const std::string& source);

// Returns what is wrong with the name of a sample, such as "is longer than 4096 bytes". Empty if nothing is wrong.
std::string name_problem(const std::string& name);

// Keeps only the groups of part `part`, counted from 1. Parts are consecutive groups with about as many bytes each.
void keep_part(Sources& sources, uint32_t part, uint32_t parts);

// Returns what is wrong with ROLE=PATTERN. Empty if nothing is wrong.
std::string check_pair(const std::string& text);

// The name of the sample of a page: a/b#2.tif for the second page of a/b.tif.
std::string page_name(const std::string& name, uint32_t page);

// The arguments of page_name() that give `name`. Nothing if there are none.
std::optional<std::pair<std::string, uint32_t>> page_of_name(const std::string& name);

// The number of pages of a source. A failure if it cannot be read.
Outcome<uint32_t> count_pages(const Sources& sources, const SourceItem& item);

// The name of the file with the metadata of a sample: its name up to the first dot after the last slash, and .json.
std::string metadata_name(const std::string& name);

// The name of the .cls file with the label of a sample, and the label in the contents of such a file.
std::string label_name(const std::string& name);
std::optional<uint32_t> label_in(std::span<const uint8_t> bytes);

// The time of the last change of a file in nanoseconds. 0 if it cannot be found.
int64_t modified(const std::string& path);

}  // namespace tools
