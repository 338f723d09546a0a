#include "sources.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/utf8.h"
#include "file_io.h"
#include "formats/formats.h"
#include "image_tree.h"
#include "loader/data_set_index.h"
#include "loader/names.h"
#include "tar.h"

namespace tools {
namespace {

constexpr std::string_view kHole = "{}";                     // in a pattern
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // of UTF-8

int64_t time_of(const struct stat& status) {
  return int64_t{status.st_mtim.tv_sec} * 1000000000 + status.st_mtim.tv_nsec;
}

struct Pair {
  std::string role, before, after;

  size_t size() const { return before.size() + after.size(); }

  // The part of the name at the hole of the pattern.
  std::optional<std::string> match(const std::string& name) const {
    if (name.size() <= before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after)) {
      return std::nullopt;
    }
    return name.substr(before.size(), name.size() - before.size() - after.size());
  }
};

Pair parse_pair(const std::string& text) {
  const size_t equals = text.find('='), hole = text.find(kHole, equals);
  return {text.substr(0, equals), text.substr(equals + 1, hole - equals - 1), text.substr(hole + kHole.size())};
}

// The name up to the first dot after the last slash, and the rest after that dot.
std::pair<std::string, std::string> stem_and_rest(const std::string& name) {
  const size_t slash = name.rfind('/');
  const size_t dot = name.find('.', slash == name.npos ? 1 : slash + 2);  // a dot at the beginning marks a hidden file
  if (dot == name.npos) return {name, ""};
  return {name.substr(0, dot), name.substr(dot + 1)};
}

// A line of a list.
struct Line {
  std::string name, label;
};

Line parse_line(std::string_view line) {
  const size_t tab = line.find('\t');
  return {std::string(line.substr(0, tab)), std::string(tab == line.npos ? "" : line.substr(tab + 1))};
}

class Lister {
 public:
  explicit Lister(const SourceOptions& options) : options_(options) {}

  Sources list() {
    sources_.folder = options_.source;
    collect();
    if (sources_.refused.empty()) refuse_twins();
    if (sources_.refused.empty()) group();
    if (sources_.refused.empty()) label();
    if (!sources_.refused.empty()) return std::move(sources_);
    if (auto failure = sources_.ignored.failure(options_.source); failure && !options_.ignore_unsupported) {
      sources_.left_out.push_back(*std::move(failure));
    }
    if (sources_.groups.empty()) {
      const bool is_listed = !options_.list.empty();
      refuse(is_listed ? options_.list : options_.source,
             (is_listed ? "names no images" : "has no images") + sources_.ignored.summary());
    }
    return std::move(sources_);
  }

  Sources list_all() {
    sources_.folder = options_.source;
    collect();
    if (sources_.refused.empty()) refuse_twins();
    for (SourceItem& item : found_) item.use = use_of(item);
    sources_.items = std::move(found_);
    sources_.classes = std::move(tar_classes_);
    return std::move(sources_);
  }

 private:
  void refuse(const std::string& file, const std::string& reason) {
    sources_.refused.push_back({file, std::nullopt, reason});
  }

  bool is_list() const { return !options_.list.empty(); }

  static Use use_of(const SourceItem& item) {
    return has_extension_of(Kind::foreign, item.name) ? Use::image : Use::bytes;
  }

  // ---- files

  void collect() {
    if (is_list()) {
      collect_list();
    } else if (is_folder(options_.source)) {
      collect_folder();
    } else {
      if (auto failure = add_tar(options_.source, "")) sources_.refused.push_back(*std::move(failure));
    }
  }

  void collect_folder() {
    Tree tree = list_tree(options_.source, Kind::any);
    sources_.skipped = std::move(tree.skipped);
    sources_.left_out = std::move(tree.failures);
    sources_.ignored = std::move(tree.ignored);
    found_.reserve(tree.files.size());
    for (std::string& name : tree.files) {
      if (is_tar(name)) {
        auto failure = add_tar(join(options_.source, name), name.substr(0, name.size() - 4) + "/");
        if (failure) sources_.left_out.push_back(*std::move(failure));
      } else {
        // If this fails, reading the file fails later and reports it.
        struct stat status {};
        if (stat(join(options_.source, name).c_str(), &status) != 0) status = {};
        add_file(std::move(name), status);
      }
    }
  }

  void collect_list() {
    const Outcome<bridge::Buffer> file = read_file(options_.list);
    if (!file) {
      sources_.refused.push_back(file.failure());
      return;
    }
    std::string_view text(reinterpret_cast<const char*>(file->bytes().data()), file->size());
    if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
      return refuse(display_name(options_.list, "stdin"), "is in UTF-16; save it as UTF-8");
    }
    if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    for (uint64_t number = 1; !text.empty(); ++number) {
      const size_t end = text.find('\n');
      std::string_view line = text.substr(0, end);
      text.remove_prefix(end == text.npos ? text.size() : end + 1);
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!line.empty()) take_line(line, number);
    }
  }

  void take_line(std::string_view text, uint64_t number) {
    Line line = parse_line(text);
    const std::string problem = name_problem(line.name);
    if (!problem.empty()) {
      return refuse(display_name(options_.list, "stdin"), "line " + std::to_string(number) + ": not a path below " +
                                                              options_.source + ", because it " + problem + ": " +
                                                              line.name);
    }
    const std::string path = join(options_.source, line.name);
    struct stat status {};
    if (stat(path.c_str(), &status) != 0) {
      const std::string reason = std::strerror(errno);
      return skip_file(path, "cannot open: " + reason + hint(line));
    }
    if (S_ISDIR(status.st_mode)) return skip_file(path, "is a folder, but the list must name files");
    listed_labels_.resize(found_.size());
    listed_labels_.push_back(std::move(line.label));
    add_file(std::move(line.name), status);
  }

  void skip_file(const std::string& path, const std::string& reason) {
    sources_.left_out.push_back({path, std::nullopt, reason});
  }

  // A hint for a missing file, if the part of its name before the last space is an existing file.
  std::string hint(const Line& line) const {
    const size_t space = line.name.rfind(' ');
    struct stat status {};
    if (space == line.name.npos || stat(join(options_.source, line.name.substr(0, space)).c_str(), &status) != 0) {
      return "";
    }
    return "; " + line.name.substr(0, space) + " exists: write a tab, not a space, before the name of the class";
  }

  void add_file(std::string name, const struct stat& status) {
    SourceItem& item = found_.emplace_back();
    item.name = std::move(name);
    item.size = static_cast<uint64_t>(std::max<off_t>(status.st_size, 0));
    item.modified = time_of(status);
  }

  std::optional<Failure> add_tar(const std::string& path, const std::string& prefix) {
    Outcome<TarContents> contents = list_tar(path);
    if (!contents) return contents.failure();
    sources_.skipped.insert(sources_.skipped.end(), contents->skipped.begin(), contents->skipped.end());
    for (Failure& broken : contents->broken_links) {
      // As in a folder, a broken link is a failure only if it has the name of an image.
      if (has_extension_of(Kind::foreign, broken.file)) {
        sources_.left_out.push_back(std::move(broken));
      } else {
        sources_.skipped.push_back(std::move(broken.file));
      }
    }
    std::vector<std::string> classes;
    for (const TarMember& member : contents->members) {
      if (member.name != kClassesMember || options_.labels == "none") continue;
      Outcome<std::vector<std::string>> names = classes_in(path, member);
      if (!names) return names.failure();
      if (!classes.empty() && *names != classes) {
        return Failure{path, member.offset, "has two lists of names of classes that differ"};
      }
      classes = std::move(*names);
    }
    if (sources_.tars.empty()) {
      tar_classes_ = std::move(classes);
    } else if (classes != tar_classes_ && other_classes_.empty()) {
      other_classes_ = path;
    }
    const int64_t of_tar = modified(path);
    sources_.tars.push_back(path);
    for (TarMember& member : contents->members) {
      if (member.name == kClassesMember) continue;
      if (is_apple_double(member.name, path, member.offset)) {
        sources_.ignored.add(member.name);
        continue;
      }
      SourceItem& item = found_.emplace_back();
      item.name = prefix + member.name;
      item.offset = member.offset;
      item.size = member.size;
      item.modified = of_tar;
      item.tar = static_cast<uint32_t>(sources_.tars.size());
    }
    return std::nullopt;
  }

  // Refuses equal names. A folder cannot have them, but a list, a tar, or a tar next to a folder can.
  void refuse_twins() {
    if (sources_.tars.empty() && !is_list()) return;
    std::vector<uint64_t> order(found_.size());
    std::iota(order.begin(), order.end(), uint64_t{0});
    std::sort(order.begin(), order.end(), [&](uint64_t a, uint64_t b) { return found_[a].name < found_[b].name; });
    constexpr size_t kMaxToName = 10;
    for (size_t i = 1; i < order.size() && sources_.refused.size() < kMaxToName; ++i) {
      const SourceItem& item = found_[order[i]];
      if (item.name == found_[order[i - 1]].name) refuse(sources_.display_name(item), "occurs twice");
    }
  }

  // ---- groups

  void group() {
    if (!options_.pairs.empty()) return group_pairs();
    is_by_stem_ = options_.group == "stem" || (options_.group.empty() && !sources_.tars.empty());
    return is_by_stem_ ? group_stems() : group_none();
  }

  uint32_t number_of_role(const std::string& role) {
    const auto [at, is_new] = role_numbers_.emplace(role, static_cast<uint32_t>(sources_.roles.size()));
    if (is_new) sources_.roles.push_back(role);
    return at->second;
  }

  // Makes a group of the files at these places.
  void add_group(const std::vector<uint64_t>& members) {
    std::string label;
    for (const uint64_t member : members) {
      if (member < listed_labels_.size() && !listed_labels_[member].empty()) label = listed_labels_[member];
      sources_.bytes += found_[member].size;
      sources_.items.push_back(std::move(found_[member]));
    }
    sources_.groups.push_back({sources_.items.size() - members.size(), members.size(), number_of_class(label)});
  }

  void group_none() {
    const uint32_t role = number_of_role("image");
    for (uint64_t i = 0; i < found_.size(); ++i) {
      // Each file of a list counts as an image, whatever its name is. Its contents tell the format.
      if (!is_list() && use_of(found_[i]) != Use::image) {
        sources_.ignored.add(found_[i].name);
        continue;
      }
      found_[i].role = role;
      if (options_.pages && is_tiff_name(found_[i].name)) {
        add_pages(i);
      } else {
        add_group({i});
      }
    }
    if (options_.pages) refuse_page_twins();
  }

  static bool is_tiff_name(const std::string& name) {
    const std::string path = lower(name);
    return path.ends_with(".tif") || path.ends_with(".tiff");
  }

  // Makes a group of each page of a file. A file with one page, or one that cannot be read, is a single group.
  void add_pages(uint64_t at) {
    const Outcome<uint32_t> pages = count_pages(sources_, found_[at]);
    if (!pages || *pages == 1) return add_group({at});
    const SourceItem file = found_[at];
    for (uint32_t page = 1; page <= *pages; ++page) {
      found_[at] = file;
      found_[at].name = page_name(file.name, page);
      found_[at].page = page;
      add_group({at});
    }
  }

  // Refuses files that have the same name as a page.
  void refuse_page_twins() {
    std::set<std::string_view> names;
    for (const SourceItem& item : sources_.items) {
      if (!names.insert(item.name).second)
        refuse(sources_.display_name(item), "has the same name as a page of another file");
    }
  }

  void group_stems() {
    std::unordered_map<std::string, size_t> number_of;
    std::vector<std::vector<uint64_t>> groups;
    for (uint64_t i = 0; i < found_.size(); ++i) {
      auto [stem, rest] = stem_and_rest(found_[i].name);
      const auto [at, is_new] = number_of.emplace(std::move(stem), groups.size());
      if (is_new) groups.emplace_back();
      found_[i].role = number_of_role(rest.empty() ? "file" : rest);
      groups[at->second].push_back(i);
    }
    for (std::vector<uint64_t>& members : groups) take_stem(members);
  }

  // Finds the use of each file of one stem: images, metadata, the label, and others.
  void take_stem(std::vector<uint64_t>& members) {
    bool has_metadata = false, has_label = false, has_image = false;
    for (const uint64_t member : members) {
      SourceItem& item = found_[member];
      const std::string role = lower(sources_.role_of(item));
      if (use_of(item) == Use::image) {
        item.use = Use::image;
        has_image = true;
      } else if (role == "json" && !std::exchange(has_metadata, true)) {
        item.use = Use::metadata;
      } else if (role == "cls" && !std::exchange(has_label, true)) {
        item.use = Use::label;
        has_label_files_ = true;
      } else {
        item.use = Use::bytes;
      }
    }
    if (!has_image && !is_list()) {
      for (const uint64_t member : members) sources_.ignored.add(found_[member].name);
      return;
    }
    // Files of a list are never ignored. So one of these must be an image, and fails if it is not.
    if (!has_image) {
      const auto bytes = std::find_if(members.begin(), members.end(),
                                      [&](uint64_t member) { return found_[member].use == Use::bytes; });
      found_[bytes == members.end() ? members.front() : *bytes].use = Use::image;
    }
    std::stable_partition(members.begin(), members.end(),
                          [&](uint64_t member) { return found_[member].use == Use::image; });
    add_group(members);
  }

  void group_pairs() {
    constexpr uint64_t kMissing = UINT64_MAX;
    std::vector<Pair> pairs;
    for (const std::string& text : options_.pairs) pairs.push_back(parse_pair(text));
    std::vector<std::string> keys;  // in the order of their first files
    std::unordered_map<std::string, std::vector<uint64_t>> members_of;
    for (uint64_t i = 0; i < found_.size(); ++i) {
      SourceItem& item = found_[i];
      // Takes the pattern that fixes most of the name: {}_mask.png rather than {}.png.
      const Pair* best = nullptr;
      for (const Pair& pair : pairs) {
        if (pair.match(item.name) && (best == nullptr || pair.size() > best->size())) best = &pair;
      }
      if (best == nullptr) {
        if (is_list()) {
          skip_file(sources_.display_name(item), "matches no pattern of --pair");
        } else {
          ++sources_.ignored.others["that match no pattern"];
        }
        continue;
      }
      const std::string key = *best->match(item.name);
      const auto [at, is_new] = members_of.try_emplace(key, pairs.size(), kMissing);
      if (is_new) keys.push_back(key);
      // A pattern and a key make exactly one name, so this place is free.
      at->second[static_cast<size_t>(best - pairs.data())] = i;
      item.role = number_of_role(best->role);
      item.use = use_of(item);
    }
    for (const std::string& key : keys) {
      const std::vector<uint64_t>& members = members_of[key];
      const auto missing = std::find(members.begin(), members.end(), kMissing);
      if (missing == members.end()) {
        add_group(members);
        continue;
      }
      const auto there = std::find_if(members.begin(), members.end(), [](uint64_t i) { return i != kMissing; });
      const Pair& pair = pairs[static_cast<size_t>(missing - members.begin())];
      sources_.left_out.push_back({sources_.display_name(found_[*there]), std::nullopt,
                                   "has no " + pair.role + ": " + pair.before + key + pair.after + " is missing"});
    }
    if (sources_.groups.empty() && sources_.left_out.empty()) {
      refuse(options_.source, "no file matches a pattern of --pair");
    }
  }

  // ---- labels

  // Classes get numbers as they come. They are sorted at the end.
  uint32_t number_of_class(const std::string& name) {
    if (name.empty()) return L3_NO_LABEL;
    return class_numbers_.emplace(name, static_cast<uint32_t>(class_numbers_.size())).first->second;
  }

  // The labels in .cls files have the names that the tars give them.
  void name_classes() {
    if (!other_classes_.empty()) {
      return refuse(other_classes_, "has other names of classes than " + sources_.tars.front() +
                                        " (--labels none converts without names)");
    }
    sources_.classes = std::move(tar_classes_);
  }

  void label() {
    const bool from_list = !class_numbers_.empty();
    // Labels of a list or of folders take precedence. In this case .cls files are kept as they are.
    if (from_list || options_.labels == "folder") {
      for (SourceItem& item : sources_.items) {
        if (item.use == Use::label) item.use = Use::bytes;
      }
    }
    if (!from_list) {
      if (is_by_stem_ && options_.labels.empty()) name_classes();
      if (options_.labels == "none" || (has_label_files_ && options_.labels.empty())) return;
      if (options_.labels.empty() && (!options_.pairs.empty() || !sources_.tars.empty())) return;
      for (SourceGroup& group : sources_.groups) {
        const std::string& name = sources_.begin_of(group)->name;
        const size_t slash = name.find('/');
        group.label = number_of_class(slash == name.npos ? "" : name.substr(0, slash));
      }
    }
    // A single folder is not a class.
    const bool useful = from_list || !options_.labels.empty() || class_numbers_.size() >= 2;
    std::vector<uint32_t> sorted(class_numbers_.size());
    for (const auto& [name, number] : class_numbers_) {  // by name
      if (!useful) break;
      if (!base::is_utf8(name))
        return refuse(name, "the name of a class must be UTF-8 (--labels none converts without classes)");
      sorted[number] = static_cast<uint32_t>(sources_.classes.size());
      sources_.classes.push_back(name);
    }
    for (SourceGroup& group : sources_.groups) {
      if (group.label != L3_NO_LABEL) group.label = useful ? sorted[group.label] : L3_NO_LABEL;
    }
  }

  const SourceOptions& options_;
  Sources sources_;
  std::vector<SourceItem> found_;
  std::vector<std::string> listed_labels_;  // of the files of a list
  std::unordered_map<std::string, uint32_t> role_numbers_;
  std::map<std::string, uint32_t> class_numbers_;
  std::vector<std::string> tar_classes_;  // of the first tar
  std::string other_classes_;             // the first tar whose classes differ from these
  bool is_by_stem_ = false;
  bool has_label_files_ = false;
};

}  // namespace

std::string Sources::path_of(const SourceItem& item) const {
  if (item.tar != 0) return tars[item.tar - 1];
  return join(folder, item.page == 0 ? item.name : page_of_name(item.name)->first);
}

std::string Sources::display_name(const SourceItem& item) const {
  return item.tar != 0 ? path_of(item) + ": " + item.name : join(folder, item.name);
}

Outcome<bridge::Buffer> Sources::read(const SourceItem& item) const {
  return read_part(path_of(item), item.offset, item.size);
}

uint64_t Sources::bytes_of(const SourceGroup& group) const {
  uint64_t sum = 0;
  for (auto item = begin_of(group); item != begin_of(group) + static_cast<std::ptrdiff_t>(group.count); ++item) {
    sum += item->size;
  }
  return sum;
}

Sources list_sources(const SourceOptions& options) { return Lister(options).list(); }

Sources list_files(const std::string& source) {
  SourceOptions options;
  options.source = source;
  return Lister(options).list_all();
}

std::string name_problem(const std::string& name) {
  if (loader::is_name(name)) return "";
  if (name.size() > loader::kMaxNameBytes) {
    return "is longer than " + std::to_string(loader::kMaxNameBytes) + " bytes";
  }
  if (name.find('\0') != name.npos) return "contains a zero byte";
  return "has a part that is empty, . or ..";
}

void keep_part(Sources& sources, uint32_t part, uint32_t parts) {
  std::vector<SourceGroup> kept;
  uint64_t before = 0, bytes = 0;
  for (const SourceGroup& group : sources.groups) {
    // A group belongs to the part in which its middle lies. Each group counts one byte more, so that empty files are
    // spread over the parts, too.
    const uint64_t size = sources.bytes_of(group) + 1;
    const double middle = static_cast<double>(before) + static_cast<double>(size) / 2;
    const double whole = static_cast<double>(sources.bytes + sources.groups.size());
    const auto owner = static_cast<uint32_t>(middle / whole * parts);
    before += size;
    if (std::min(owner, parts - 1) != part - 1) continue;
    kept.push_back(group);
    bytes += size - 1;
  }
  sources.groups = std::move(kept);
  sources.bytes = bytes;
}

std::string check_pair(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == text.npos || !loader::is_role(text.substr(0, equals))) return text + " is not ROLE=PATTERN";
  const size_t hole = text.find(kHole, equals);
  if (hole == text.npos || text.find(kHole, hole + 1) != text.npos)
    return "the pattern of " + text + " must contain {} once";
  return "";
}

std::string page_name(const std::string& name, uint32_t page) {
  const size_t dot = name.rfind('.');
  return name.substr(0, dot) + "#" + std::to_string(page) + name.substr(dot);
}

std::optional<std::pair<std::string, uint32_t>> page_of_name(const std::string& name) {
  const size_t dot = name.rfind('.'), mark = name.rfind('#', dot);
  if (dot == name.npos || mark == name.npos || dot - mark > 10) return std::nullopt;
  const std::string number = name.substr(mark + 1, dot - mark - 1);
  if (number.empty() || number[0] == '0' || number.find_first_not_of("0123456789") != number.npos) return std::nullopt;
  return std::pair(name.substr(0, mark) + name.substr(dot), static_cast<uint32_t>(std::stoul(number)));
}

Outcome<uint32_t> count_pages(const Sources& sources, const SourceItem& item) {
  const Outcome<bridge::Buffer> file = sources.read(item);
  if (!file) return file.failure();
  const formats::Result<uint32_t> pages = formats::count_pages(file->bytes());
  if (!pages) return failure_in(sources.display_name(item), pages.error());
  return *pages;
}

std::string metadata_name(const std::string& name) { return stem_and_rest(name).first + ".json"; }

std::string label_name(const std::string& name) { return stem_and_rest(name).first + ".cls"; }

std::optional<uint32_t> label_in(std::span<const uint8_t> bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.remove_suffix(1);
  if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != text.npos) return std::nullopt;
  return static_cast<uint32_t>(std::stoul(std::string(text)));
}

int64_t modified(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? time_of(status) : 0;
}

}  // namespace tools
