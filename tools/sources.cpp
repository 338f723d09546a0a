#include "sources.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "file_io.h"
#include "image_tree.h"
#include "loader/data_set_index.h"
#include "loader/names.h"
#include "tar.h"

namespace tools {
namespace {

constexpr std::string_view kHole = "{}";  // of a pattern

std::string lower(std::string text) {
  for (char& letter : text) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return text;
}

// A file that may become an item, before it is known what it is to be.
struct Candidate {
  SourceItem item;
  std::string label;  // that a list gives
};

struct Pair {
  std::string role, before, after;

  // What stands where the pattern has its hole.
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

// Name up to the first dot behind the last slash, and what follows that dot.
std::pair<std::string, std::string> stem_and_rest(const std::string& name) {
  const size_t slash = name.rfind('/');
  const size_t dot = name.find('.', slash == name.npos ? 1 : slash + 2);  // a dot at the beginning hides a file
  if (dot == name.npos) return {name, ""};
  return {name.substr(0, dot), name.substr(dot + 1)};
}

class Lister {
 public:
  explicit Lister(const SourceOptions& options) : options_(options) {}

  Sources list() {
    collect();
    if (sources_.refused.empty()) group();
    if (sources_.refused.empty()) label();
    if (sources_.refused.empty() && sources_.groups.empty() && sources_.left_out.empty()) {
      refuse(options_.source, "no images here");
    }
    return std::move(sources_);
  }

 private:
  void refuse(const std::string& file, const std::string& reason) {
    sources_.refused.push_back({file, std::nullopt, reason});
  }

  // ---- files

  void collect() {
    if (!options_.list.empty()) {
      collect_list();
    } else if (is_folder(options_.source)) {
      collect_folder();
    } else {
      add_tar(options_.source, "");
    }
  }

  void collect_folder() {
    Tree tree = list_tree(options_.source, Kind::any);
    sources_.skipped = std::move(tree.skipped);
    sources_.left_out = std::move(tree.failures);
    for (const std::string& name : tree.files) {
      const std::string path = join(options_.source, name);
      if (is_tar(name)) {
        add_tar(path, name.substr(0, name.size() - 4) + "/");
      } else {
        add_file(name, path, "");
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
    for (uint64_t number = 1; !text.empty(); ++number) {
      const size_t end = text.find('\n');
      std::string_view line = text.substr(0, end);
      text.remove_prefix(end == text.npos ? text.size() : end + 1);
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.empty()) continue;
      const size_t tab = line.find('\t');
      const std::string name(line.substr(0, tab));
      if (!loader::is_name(name)) {
        refuse(shown(options_.list, "stdin"),
               "line " + std::to_string(number) + ": no path below " + options_.source + ": " + name);
        continue;
      }
      add_file(name, join(options_.source, name), tab == line.npos ? "" : std::string(line.substr(tab + 1)));
    }
  }

  void add_file(const std::string& name, const std::string& path, const std::string& label) {
    Candidate candidate;
    candidate.item.name = name;
    candidate.item.path = path;
    candidate.label = label;
    // What cannot be looked at fails when it is read.
    candidate.item.size = listed_size(path);
    candidate.item.modified = modified(path);
    add(std::move(candidate));
  }

  void add_tar(const std::string& path, const std::string& prefix) {
    Outcome<TarContents> contents = list_tar(path);
    if (!contents) {
      sources_.refused.push_back(contents.failure());
      return;
    }
    sources_.skipped.insert(sources_.skipped.end(), contents->skipped.begin(), contents->skipped.end());
    const int64_t of_tar = modified(path);
    has_tars_ = true;
    for (TarMember& member : contents->members) {
      Candidate candidate;
      candidate.item.name = prefix + member.name;
      candidate.item.path = path;
      candidate.item.offset = member.offset;
      candidate.item.size = member.size;
      candidate.item.modified = of_tar;
      candidate.item.in_tar = true;
      add(std::move(candidate));
    }
  }

  void add(Candidate candidate) {
    if (!names_.insert(candidate.item.name).second) {
      refuse(candidate.item.shown(), "is there twice");
      return;
    }
    candidates_.push_back(std::move(candidate));
  }

  // ---- groups

  void group() {
    if (!options_.pairs.empty()) return group_pairs();
    const bool by_stem = options_.group == "stem" || (options_.group.empty() && has_tars_);
    return by_stem ? group_stems() : group_none();
  }

  void add_group(std::vector<Candidate*> members) {
    SourceGroup group{sources_.items.size(), members.size(), L3_NO_LABEL};
    std::string label;
    for (Candidate* member : members) {
      if (!member->label.empty()) label = member->label;
      sources_.bytes += member->item.size;
      sources_.items.push_back(std::move(member->item));
    }
    labels_.push_back(std::move(label));
    sources_.groups.push_back(group);
  }

  void group_none() {
    for (Candidate& candidate : candidates_) {
      if (!has_extension_of(Kind::foreign, candidate.item.name)) {
        ++sources_.ignored;
        continue;
      }
      candidate.item.role = "image";
      add_group({&candidate});
    }
  }

  void group_stems() {
    std::unordered_map<std::string, size_t> number_of;
    std::vector<std::vector<Candidate*>> groups;
    for (Candidate& candidate : candidates_) {
      auto [stem, rest] = stem_and_rest(candidate.item.name);
      const auto [at, is_new] = number_of.emplace(stem, groups.size());
      if (is_new) groups.emplace_back();
      candidate.item.role = rest.empty() ? "file" : rest;
      groups[at->second].push_back(&candidate);
    }
    for (std::vector<Candidate*>& members : groups) take_stem(members);
  }

  // Members of one stem: images, and what goes with them.
  void take_stem(std::vector<Candidate*>& members) {
    bool has_metadata = false, has_label = false, has_image = false;
    for (Candidate* member : members) {
      SourceItem& item = member->item;
      const std::string role = lower(item.role);
      if (has_extension_of(Kind::foreign, item.name)) {
        item.use = Use::image;
        has_image = true;
      } else if (role == "json" && !std::exchange(has_metadata, true)) {
        item.use = Use::metadata;
      } else if (role == "cls" && !std::exchange(has_label, true)) {
        item.use = Use::label;
      } else {
        item.use = Use::bytes;
      }
    }
    if (!has_image) {
      sources_.ignored += members.size();
      return;
    }
    std::stable_partition(members.begin(), members.end(),
                          [](const Candidate* member) { return member->item.use == Use::image; });
    add_group(members);
  }

  void group_pairs() {
    std::vector<Pair> pairs;
    for (const std::string& text : options_.pairs) pairs.push_back(parse_pair(text));
    std::vector<std::string> keys;  // in the order of their first file
    std::unordered_map<std::string, std::vector<Candidate*>> members_of;
    for (Candidate& candidate : candidates_) {
      bool taken = false;
      for (size_t role = 0; role < pairs.size() && !taken; ++role) {
        const auto key = pairs[role].match(candidate.item.name);
        if (!key) continue;
        const auto [at, is_new] = members_of.try_emplace(*key, pairs.size());
        if (is_new) keys.push_back(*key);
        // Behind a hole that takes slashes too, two files may fit one pattern and key only if they are one file.
        at->second[role] = &candidate;
        candidate.item.role = pairs[role].role;
        candidate.item.use = has_extension_of(Kind::foreign, candidate.item.name) ? Use::image : Use::bytes;
        taken = true;
      }
      if (!taken) ++sources_.ignored;
    }
    for (const std::string& key : keys) {
      std::vector<Candidate*>& members = members_of[key];
      const auto missing = std::find(members.begin(), members.end(), nullptr);
      if (missing == members.end()) {
        add_group(members);
        continue;
      }
      const Candidate* there =
          *std::find_if(members.begin(), members.end(), [](auto* member) { return member != nullptr; });
      const Pair& pair = pairs[static_cast<size_t>(missing - members.begin())];
      sources_.left_out.push_back({there->item.shown(), std::nullopt,
                                   "has no " + pair.role + ": " + pair.before + key + pair.after + " is missing"});
    }
    if (sources_.groups.empty() && sources_.left_out.empty())
      refuse(options_.source, "no file fits a pattern of --pair");
  }

  // ---- labels

  void label() {
    const bool from_list = std::any_of(labels_.begin(), labels_.end(), [](const auto& text) { return !text.empty(); });
    if (!from_list) {
      if (options_.labels == "none") return;
      if (options_.labels.empty() && (!options_.pairs.empty() || has_tars_)) return;
      label_by_folder();
    }
    std::set<std::string> classes(labels_.begin(), labels_.end());
    classes.erase("");
    // A single folder tells nothing apart.
    if (!from_list && options_.labels.empty() && classes.size() < 2) return;
    for (const std::string& name : classes) {
      if (!loader::is_utf8(name))
        return refuse(name, "the name of a class must be UTF-8; --labels none leaves them out");
    }
    sources_.classes.assign(classes.begin(), classes.end());
    for (size_t i = 0; i < labels_.size(); ++i) {
      if (labels_[i].empty()) continue;
      const auto at = std::lower_bound(sources_.classes.begin(), sources_.classes.end(), labels_[i]);
      sources_.groups[i].label = static_cast<uint32_t>(at - sources_.classes.begin());
    }
  }

  void label_by_folder() {
    for (size_t i = 0; i < labels_.size(); ++i) {
      const std::string& name = sources_.begin_of(sources_.groups[i])->name;
      if (const size_t slash = name.find('/'); slash != name.npos) labels_[i] = name.substr(0, slash);
    }
  }

  const SourceOptions& options_;
  Sources sources_;
  std::vector<Candidate> candidates_;
  std::unordered_set<std::string> names_;
  std::vector<std::string> labels_;  // of each group, in words
  bool has_tars_ = false;
};

}  // namespace

uint64_t Sources::bytes_of(const SourceGroup& group) const {
  uint64_t sum = 0;
  for (auto item = begin_of(group); item != begin_of(group) + static_cast<std::ptrdiff_t>(group.count); ++item) {
    sum += item->size;
  }
  return sum;
}

Sources list_sources(const SourceOptions& options) { return Lister(options).list(); }

void keep_part(Sources& sources, uint32_t part, uint32_t parts) {
  std::vector<SourceGroup> kept;
  uint64_t before = 0, bytes = 0;
  for (const SourceGroup& group : sources.groups) {
    // Where the middle of a group lies says whose it is; a byte for each, so that empty files are spread too.
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
  if (hole == text.npos || text.find(kHole, hole + 1) != text.npos) return "the pattern of " + text + " needs one {}";
  return "";
}

int64_t modified(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return 0;
  return int64_t{status.st_mtim.tv_sec} * 1000000000 + status.st_mtim.tv_nsec;
}

bool is_tar(const std::string& path) { return path.size() > 4 && lower(path.substr(path.size() - 4)) == ".tar"; }

}  // namespace tools
