// l3 export --tar: writes a data set as a tar. Members of a group have the same name up to the first dot, so that
// WebDataset and l3 convert make a sample of them.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "base/parallel.h"
#include "data_sets.h"
#include "export.h"
#include "file_io.h"
#include "image_tree.h"
#include "model_files.h"
#include "options.h"
#include "progress.h"
#include "tar.h"
#include "tar_writer.h"

namespace tools {
namespace {

namespace fs = std::filesystem;

struct Member {
  std::string name;
  std::vector<uint8_t> bytes;
};

struct Packed {
  std::vector<Member> members;
  Totals totals;
};

struct Group {
  uint64_t first = 0, count = 0;
  uint64_t bytes = 0;
  std::string key;
};

// Gives each group a key of its own.
class Keys {
 public:
  std::string key_for(std::string name) {
    const size_t base = name.rfind('/') + 1;  // 0 if there is no slash
    if (const size_t dot = name.rfind('.'); dot != name.npos && dot > base) name.resize(dot);
    std::replace(name.begin() + static_cast<std::ptrdiff_t>(base), name.end(), '.', '_');
    if (name.starts_with("__")) name.erase(0, 1);  // WebDataset leaves out what begins with __X__
    std::string key = name;
    for (uint64_t number = 2; !taken_.insert(key).second; ++number) key = name + "_" + std::to_string(number);
    return key;
  }

 private:
  std::unordered_set<std::string> taken_;
};

// What comes after the key and its dot. Within a group each is used once, also for readers that make capitals small.
class Suffixes {
 public:
  std::string suffix_for(const std::string& suffix) {
    std::string tried = suffix;
    for (uint64_t number = 2; !taken_.insert(lower(tried)).second; ++number) {
      tried = std::to_string(number) + "." + suffix;
    }
    return tried;
  }

 private:
  std::set<std::string> taken_;
};

// The role without the extension of an image: "seg" of "seg.png", nothing of "jpg".
std::string role_in_tar(std::string role) {
  std::replace(role.begin(), role.end(), '/', '_');
  const size_t dot = role.rfind('.');
  if (dot == role.npos) return formats::is_readable_name("x." + role) ? "" : role;
  return formats::is_readable_name(role) ? role.substr(0, dot) : role;
}

class Packer {
 public:
  Packer(const ExportOptions& options, const l3::DataSet& set, const ModelFiles& models, Console& console)
      : options_(options), set_(set), models_(models.all().begin(), models.all().end()), console_(console) {
    size_t count = 0;
    const l3_model* const* of_set = l3_data_models(set.get(), &count);
    models_.insert(models_.end(), of_set, of_set + count);
  }

  Outcome<Packed> pack(const Group& group) const try {
    Packed packed;
    Suffixes suffixes;
    const l3::Sample first = set_.sample(group.first);
    const std::string label = first.label == L3_NO_LABEL ? "" : suffixes.suffix_for("cls");
    std::vector<Member> metadata;
    for (uint64_t i = group.first; i < group.first + group.count; ++i) {
      const l3::Sample sample = set_.sample(i);
      const std::string role = group.count == 1 ? "" : role_in_tar(std::string(sample.role_text()));
      const std::string before = role.empty() ? "" : role + ".";
      // The first metadata is that of the group, for l3 convert.
      if (sample.metadata_size > 0) {
        const std::string suffix = suffixes.suffix_for(i == group.first ? "json" : before + "json");
        metadata.push_back({group.key + "." + suffix, {sample.metadata, sample.metadata + sample.metadata_size}});
      }
      Outcome<Member> member =
          sample.is_image() ? image(i, sample, before, packed.totals) : other(i, sample, packed.totals);
      if (!member) return member.failure();
      member->name = group.key + "." + suffixes.suffix_for(member->name);
      packed.members.push_back(std::move(*member));
    }
    if (!label.empty()) {
      const std::string text = std::to_string(first.label);
      packed.members.push_back({group.key + "." + label, {text.begin(), text.end()}});
    }
    for (Member& member : metadata) packed.members.push_back(std::move(member));
    packed.totals.files = group.count;
    return packed;
  } catch (...) {
    return caught(display_name(set_, set_.sample(group.first)));
  }

 private:
  // Members get names without their keys.
  Outcome<Member> image(uint64_t index, const l3::Sample& sample, const std::string& before, Totals& totals) const {
    if (options_.as == "l3") {
      const Outcome<bridge::Buffer> file = read_with_model(set_, index);
      if (!file) return file.failure();
      totals.bytes_in += sample.size;
      return Member{before + "l3", {file->bytes().begin(), file->bytes().end()}};
    }
    const Outcome<bridge::Buffer> file = read_sample(set_, index);
    if (!file) return file.failure();
    const std::string extension = exported_extension(sample.colour, sample.bits).substr(1);
    const formats::Format format = formats::format_of("x." + extension).value_or(formats::Format::png);
    uint64_t pixels = 0;
    Outcome<std::vector<uint8_t>> written =
        exported_image(display_name(set_, sample), file->bytes(), format, decode_options(options_.limits, models_, {}),
                       console_, pixels);
    if (!written) return written.failure();
    totals.pixels += pixels;
    totals.bytes_in += file->size();
    return Member{before + extension, std::move(*written)};
  }

  Outcome<Member> other(uint64_t index, const l3::Sample& sample, Totals& totals) const {
    const Outcome<bridge::Buffer> file = read_sample(set_, index);
    if (!file) return file.failure();
    totals.bytes_in += file->size();
    std::string role(sample.role_text());
    std::replace(role.begin(), role.end(), '/', '_');
    const std::string extension = fs::path(std::string(sample.name_text())).extension().string();
    if (!extension.empty() && "." + lower(role) != lower(extension) && !lower(role).ends_with(lower(extension))) {
      role += extension;
    }
    return Member{role.empty() ? "file" : role, {file->bytes().begin(), file->bytes().end()}};
  }

  const ExportOptions& options_;
  const l3::DataSet& set_;
  std::vector<const l3_model*> models_;
  Console& console_;
};

std::vector<Group> groups_of(const l3::DataSet& set, uint64_t& bytes) {
  std::vector<Group> groups(set.info().groups);
  Keys keys;
  for (uint64_t i = 0; i < groups.size(); ++i) {
    Group& group = groups[i];
    (void)!l3_data_group(set.get(), i, &group.first, &group.count);
    group.key = keys.key_for(std::string(set.sample(group.first).name_text()));
    for (uint64_t k = group.first; k < group.first + group.count; ++k) group.bytes += set.sample(k).size;
    bytes += group.bytes;
  }
  return groups;
}

std::optional<Failure> append(OutputFile& out, const Member& member, uint64_t& size) {
  const std::vector<uint8_t> header = tar_header(member.name, member.bytes.size());
  const std::vector<uint8_t> padding(tar_padding(member.bytes.size()));
  for (const std::vector<uint8_t>* part : {&header, &member.bytes, &padding}) {
    if (auto failure = out.write(*part)) return failure;
    size += part->size();
  }
  return std::nullopt;
}

Member names_of_classes(const l3::DataSet& set) {
  base::Json json;
  json.open_array();
  for (uint32_t label = 0; label < set.info().classes; ++label) json.text(l3_data_class(set.get(), label));
  const std::string text = json.close_array().line() + "\n";
  return {kClassesMember, {text.begin(), text.end()}};
}

// Packs some groups at the same time, and writes them in order. Returns a failure of the tar itself.
std::optional<Failure> write_groups(const ExportOptions& options, const std::vector<Group>& groups,
                                    const Packer& packer, OutputFile& out, Progress& progress, uint64_t& size) {
  base::Parallel parallel(reading_threads(options.source, options.jobs));
  const uint64_t together = parallel.threads();
  for (uint64_t begin = 0; begin < groups.size(); begin += together) {
    std::vector<std::optional<Outcome<Packed>>> packed(std::min<uint64_t>(together, groups.size() - begin));
    parallel.for_each(packed.size(), [&](uint64_t i) { packed[i].emplace(packer.pack(groups[begin + i])); });
    for (uint64_t i = 0; i < packed.size(); ++i) {
      const Group& group = groups[begin + i];
      Outcome<Packed>& done = *packed[i];
      if (!done) {
        progress.fail(done.failure(), group.bytes);
        if (options.on_error == "fail") return std::nullopt;
        continue;
      }
      for (const Member& member : done->members) {
        if (auto failure = append(out, member, size)) return failure;
        done->totals.bytes_out += member.bytes.size();
      }
      progress.add(done->totals, group.bytes);
    }
  }
  return std::nullopt;
}

}  // namespace

int export_tar(const ExportOptions& options, Context& context) {
  Console& console = context.console;
  console.set_quiet(options.quiet);
  const bool to_stdout = options.destination == "-";
  if (to_stdout && console.stdout_is_terminal()) {
    return wrong_usage(context, "export: the tar would go to the terminal; name DST, or redirect stdout");
  }
  const auto fail = [&](const Failure& failure) {
    console.fail(failure);
    return kExitFailed;
  };
  if (!is_data_set(options.source)) return fail({options.source, std::nullopt, "not a data set; --tar needs one"});
  if (!to_stdout && is_data_set(options.destination)) {
    return fail({options.destination, std::nullopt, "is a data set; export to another file"});
  }
  std::error_code error;
  const fs::file_status existing = fs::status(options.destination, error);
  if (!to_stdout && !options.force && fs::is_regular_file(existing)) {
    return fail({options.destination, std::nullopt, "exists already; --force replaces it"});
  }
  ModelFiles models;
  if (const auto failure = models.open(options.models)) return fail(*failure);
  const Outcome<l3::DataSet> set = open_data_set(options.source);
  if (!set) return fail(set.failure());
  if (!to_stdout) {
    if (const auto failure = make_folder_of(options.destination)) return fail(*failure);
    remove_abandoned_of({options.destination});
  }

  uint64_t bytes = 0, size = 0;
  const std::vector<Group> groups = groups_of(*set, bytes);
  const Packer packer(options, *set, models, console);
  Progress progress(console, set->count(), bytes);
  OutputFile out(options.destination, context.unfinished);
  if (const auto failure = out.open()) return fail(*failure);
  std::optional<Failure> failure;
  if (set->info().classes > 0) failure = append(out, names_of_classes(*set), size);
  if (!failure) failure = write_groups(options, groups, packer, out, progress, size);
  const bool whole = progress.totals().failed == 0 || options.on_error == "skip";
  if (!failure && whole) {
    failure = out.write(tar_end(size));
    if (!failure) failure = out.finish(Flush::to_disk);
  }
  console.clear_status();
  if (failure) return fail(*failure);
  const Totals totals = progress.totals();
  std::string line = std::to_string(totals.files) + (totals.files == 1 ? " file" : " files") +
                     " exported: " + format_bytes(totals.bytes_in) + " -> " + format_bytes(totals.bytes_out);
  if (totals.failed > 0) {
    line += "; " + std::to_string(totals.failed) + (totals.failed == 1 ? " group" : " groups") + " failed";
    if (!whole) line += "; no complete tar was written";
  }
  if (!options.quiet) to_stdout ? console.inform("l3: " + line) : console.print(line);
  return totals.failed == 0 ? kExitDone : kExitFailed;
}

}  // namespace tools
