#include "info_set.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "data_sets.h"
#include "progress.h"

namespace tools {
namespace {

constexpr std::array kColours = {"gray", "gray_alpha", "rgb", "rgb_alpha", "palette"};

struct Count {
  uint64_t samples = 0, bytes = 0, pixels = 0, raw_bytes = 0;

  void add(const l3::Sample& sample) {
    ++samples;
    bytes += sample.size;
    if (!sample.is_image()) return;
    pixels += uint64_t{sample.width} * sample.height;
    raw_bytes += (uint64_t{sample.width} * sample.channels * sample.bits + 7) / 8 * sample.height;
  }
};

// The layout of a sample: "rgb 8", or "bytes" if it is not an image.
std::string layout_of(const l3::Sample& sample) {
  return sample.is_image() ? std::string(kColours[sample.colour]) + " " + std::to_string(sample.bits) : "bytes";
}

struct SetCounts {
  Count all;
  std::map<std::string, Count> layouts, roles;
  std::map<uint32_t, uint64_t> labels;  // the number of samples with each
  uint64_t with_metadata = 0, with_model = 0;
  uint32_t widest = 0, highest = 0;
};

SetCounts count(const l3::DataSet& set) {
  SetCounts counts;
  const uint64_t samples = set.count();
  for (uint64_t i = 0; i < samples; ++i) {
    const l3::Sample sample = set.sample(i);
    counts.all.add(sample);
    counts.layouts[layout_of(sample)].add(sample);
    counts.roles[std::string(sample.role_text())].add(sample);
    if (sample.label != L3_NO_LABEL) ++counts.labels[sample.label];
    counts.with_metadata += sample.metadata_size > 0 ? 1 : 0;
    counts.with_model += sample.model_bytes != nullptr ? 1 : 0;
    counts.widest = std::max(counts.widest, sample.width);
    counts.highest = std::max(counts.highest, sample.height);
  }
  return counts;
}

double ratio_of(const Count& count) {
  return count.raw_bytes > 0 ? static_cast<double>(count.bytes) / static_cast<double>(count.raw_bytes) : 0;
}

void add_counts(base::Json& json, const char* name, const std::map<std::string, Count>& counts) {
  json.key(name).open_object();
  for (const auto& [what, each] : counts) {
    json.key(what).open_object().member("samples", each.samples).member("bytes", each.bytes);
    json.member("pixels", each.pixels).member("raw_bytes", each.raw_bytes).close_object();
  }
  json.close_object();
}

std::string as_json(const std::string& path, const l3::DataSet& set, const SetCounts& counts) {
  const l3_data_info info = set.info();
  size_t models = 0;
  (void)l3_data_models(set.get(), &models);
  base::Json json;
  json.open_object().member("file", path_text(path)).member("format", "l3 data set");
  json.member("shards", info.shards).member("samples", info.samples).member("groups", info.groups);
  json.member("bytes", info.bytes).member("sample_bytes", info.sample_bytes).member("index_bytes", info.index_bytes);
  json.member("pixels", counts.all.pixels).member("raw_bytes", counts.all.raw_bytes);
  json.member("models", uint64_t{models}).member("samples_with_model", counts.with_model);
  json.member("samples_with_metadata", counts.with_metadata);
  add_counts(json, "layouts", counts.layouts);
  add_counts(json, "roles", counts.roles);
  json.key("classes").open_array();
  for (uint32_t label = 0; label < info.classes; ++label) json.text(l3_data_class(set.get(), label));
  return json.close_array().close_object().line();
}

void print_counts(const char* what, const std::map<std::string, Count>& counts, Console& console) {
  for (const auto& [name, each] : counts) {
    std::string line = std::string(what) + one_line(name) + ": " + std::to_string(each.samples) +
                       (each.samples == 1 ? " sample, " : " samples, ") + format_bytes(each.bytes);
    if (each.raw_bytes > 0) line += ", ratio " + format_number(ratio_of(each), 3);
    console.print(line);
    what = "            ";
  }
}

void print_text(const std::string& path, const l3::DataSet& set, const SetCounts& counts, Console& console) {
  const l3_data_info info = set.info();
  size_t models = 0;
  (void)l3_data_models(set.get(), &models);
  console.print("file        " + one_line(path_text(path)) + ": data set, " + format_bytes(info.bytes) + " in " +
                std::to_string(info.shards) + (info.shards == 1 ? " shard" : " shards") + ", indexes " +
                format_bytes(info.index_bytes));
  console.print("samples     " + std::to_string(info.samples) +
                (info.groups != info.samples ? " in " + std::to_string(info.groups) + " groups" : std::string()));
  if (counts.all.pixels > 0) {
    console.print("images      " + format_number(static_cast<double>(counts.all.pixels) / 1e6, 2) +
                  " megapixels, up to " + std::to_string(counts.widest) + " wide and " +
                  std::to_string(counts.highest) + " high; ratio " + format_number(ratio_of(counts.all), 3) +
                  " to raw samples");
  }
  print_counts("layouts     ", counts.layouts, console);
  if (counts.roles.size() > 1) print_counts("roles       ", counts.roles, console);
  if (models > 0) {
    console.print("models      " + std::to_string(models) + ", shared by " + std::to_string(counts.with_model) +
                  " samples");
  }
  if (!counts.labels.empty()) {
    uint64_t labelled = 0, minimum = UINT64_MAX, maximum = 0;
    for (const auto& [label, samples] : counts.labels) {
      labelled += samples;
      minimum = std::min(minimum, samples);
      maximum = std::max(maximum, samples);
    }
    console.print("labels      " + std::to_string(counts.labels.size()) + (info.classes > 0 ? " with names" : "") +
                  ", of " + std::to_string(labelled) + " samples: " + std::to_string(minimum) + " to " +
                  std::to_string(maximum) + " each");
  }
  if (counts.with_metadata > 0) console.print("metadata    of " + std::to_string(counts.with_metadata) + " samples");
}

}  // namespace

int describe_data_set(const std::string& path, bool json, Context& context) {
  const Outcome<l3::DataSet> set = open_data_set(path);
  if (!set) {
    context.console.fail(set.failure());
    return kExitFailed;
  }
  const SetCounts counts = count(*set);
  if (json) {
    context.console.print(as_json(path, *set, counts));
  } else {
    print_text(path, *set, counts, context.console);
  }
  return kExitDone;
}

}  // namespace tools
