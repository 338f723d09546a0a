// What a data set is made from: files of a folder, of a list or of tars, in groups that belong together.
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
  std::string list;                // a file that names those to take; empty: all
  std::vector<std::string> pairs;  // ROLE=PATTERN
  std::string group;               // "none", "stem"; empty: what suits the source
  std::string labels;              // "folder", "none"; empty: what suits the source
  bool ignore_unsupported = false;
  bool pages = false;  // a sample for each page of a TIFF that has several; only where nothing is grouped
};

enum class Use : uint8_t {
  image,
  bytes,     // to be kept as they are
  metadata,  // of the group's first sample
  label,     // a number in digits
};

// There may be millions of them: what many have in common stands in Sources.
struct SourceItem {
  std::string name;     // in the data set, and below the folder or in the tar
  uint64_t offset = 0;  // in that file: 0 but in a tar
  uint64_t size = 0;
  int64_t modified = 0;  // of the file, in nanoseconds
  uint32_t tar = 0;      // 1 for the first of Sources::tars; 0: a file of its own
  uint32_t role = 0;     // of Sources::roles
  uint32_t page = 0;     // of its file, from 1; 0: the only one
  Use use = Use::image;
};

struct SourceGroup {
  uint64_t first, count;  // of the items
  uint32_t label = L3_NO_LABEL;
};

struct Sources {
  std::string folder;  // where files are
  std::vector<std::string> tars, roles;
  std::vector<SourceItem> items;
  std::vector<SourceGroup> groups;
  std::vector<std::string> classes;
  uint64_t bytes = 0;
  Ignored ignored;                   // files that nothing is made of
  std::vector<std::string> skipped;  // no files, or links in circles
  std::vector<Failure> left_out;     // what could not be read or is not there, groups that are not whole
  std::vector<Failure> refused;      // why nothing must begin

  std::vector<SourceItem>::const_iterator begin_of(const SourceGroup& group) const {
    return items.begin() + static_cast<std::ptrdiff_t>(group.first);
  }
  uint64_t bytes_of(const SourceGroup& group) const;
  const std::string& role_of(const SourceItem& item) const { return roles[item.role]; }
  // The file that has the item.
  std::string path_of(const SourceItem& item) const;
  // What messages call it.
  std::string display_name(const SourceItem& item) const;
  // Its bytes.
  Outcome<bridge::Buffer> read(const SourceItem& item) const;
};

Sources list_sources(const SourceOptions& options);

// All files of a folder or a tar, whether a data set would take them or not, without groups. Those whose name says that
// they are images are such; nothing is ignored.
Sources list_files(const std::string& source);

// What is wrong with the name of a sample: "is longer than 4096 bytes"; empty where nothing is.
std::string name_problem(const std::string& name);

// The part `part` (from 1) of `parts`: groups one after the other, about as many bytes as in the others.
void keep_part(Sources& sources, uint32_t part, uint32_t parts);

// What is wrong with ROLE=PATTERN; empty where nothing is.
std::string check_pair(const std::string& text);

// The sample of a page: a/b.tif becomes a/b#2.tif.
std::string page_name(const std::string& name, uint32_t page);

// What page_name() was given; nothing where `name` is no page's.
std::optional<std::pair<std::string, uint32_t>> page_of_name(const std::string& name);

// How many pages a source has; a failure where it cannot be read.
Outcome<uint32_t> count_pages(const Sources& sources, const SourceItem& item);

// The file of a sample's metadata: its name up to the first dot behind the last slash, and .json.
std::string metadata_name(const std::string& name);

// The file of a sample's label, as .cls, and the number that stands in it in digits.
std::string label_name(const std::string& name);
std::optional<uint32_t> label_in(std::span<const uint8_t> bytes);

// When a file was written to, in nanoseconds; 0 if it cannot be told.
int64_t modified(const std::string& path);

}  // namespace tools
