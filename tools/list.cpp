// l3 ls: lists the samples of a data set.
#include <array>
#include <memory>
#include <string>

#include "base/hex.h"
#include "base/json_writer.h"
#include "data_sets.h"
#include "model_files.h"
#include "options.h"

namespace tools {
namespace {

struct ListOptions {
  std::string set;
  bool wide = false;
  bool json = false;
};

std::string shape_text(const l3::Sample& sample) {
  if (!sample.is_image()) return "-";
  constexpr std::array kColours = {"gray", "gray_alpha", "rgb", "rgb_alpha", "palette"};
  return std::to_string(sample.width) + "x" + std::to_string(sample.height) + " " + kColours[sample.colour] + " " +
         std::to_string(sample.bits);
}

std::string as_json(const l3::DataSet& set, const l3::Sample& sample) {
  base::Json json;
  json.open_object().member("name", sample.name_text()).member("role", sample.role_text());
  json.member("kind", sample.is_image() ? "image" : "bytes").member("size", sample.size);
  if (sample.is_image()) {
    json.member("width", sample.width).member("height", sample.height).member("channels", sample.channels);
    json.member("bits", sample.bits);
  }
  json.member("group", sample.group);
  if (sample.label != L3_NO_LABEL) json.member("label", sample.label);
  if (const char* name = l3_data_class(set.get(), sample.label); name != nullptr) json.member("class", name);
  if (sample.metadata_size > 0) json.member("metadata", sample.metadata_text());
  json.member("shard", sample.shard).member("offset", sample.offset);
  return json.member("digest", base::hexadecimal(sample.digest)).close_object().line();
}

// The columns name, size, shape, role and label, separated by tabs.
std::string as_columns(const l3::DataSet& set, const l3::Sample& sample) {
  const std::string label = label_text(set, sample);
  return one_line(sample.name_text()) + "\t" + std::to_string(sample.size) + "\t" + shape_text(sample) + "\t" +
         one_line(sample.role_text()) + "\t" + (label.empty() ? "-" : one_line(label));
}

int list(const ListOptions& options, Context& context) {
  const Outcome<l3::DataSet> set = open_data_set(options.set);
  if (!set) {
    context.console.fail(set.failure());
    return kExitFailed;
  }
  const uint64_t count = set->count();
  for (uint64_t i = 0; i < count && context.console.can_print(); ++i) {
    const l3::Sample sample = set->sample(i);
    context.console.print(options.json   ? as_json(*set, sample)
                          : options.wide ? as_columns(*set, sample)
                                         : one_line(sample.name_text()));
  }
  return kExitDone;
}

}  // namespace

void add_list(CommandLine& line) {
  Subcommand sub = line.command("ls", "List the samples of a data set");
  auto options = std::make_shared<ListOptions>();
  sub.option("SET", options->set, "A data set, or a shard").required().type("");
  const Option wide =
      sub.flag("-l,--long", options->wide, "Print name, bytes, shape, role and label, separated by tabs");
  sub.flag("--json", options->json, "Print a line of JSON for each sample, with everything in the index")
      .excludes(wide);
  sub.examples(
      "  l3 ls set/ | wc -l                                       count the samples\n"
      "  l3 ls -l set/ | grep -v image                            list the samples of other roles\n"
      "  l3 ls --json set/ | jq -r 'select(.label == 3).name'     list the samples of one class\n");
  sub.footer(
      "Samples are listed in the order of the data set. Only the index is read. A control character in a name is\n"
      "printed as \\x and two hexadecimal digits.\n");
  sub.run([options](Context& context) { return list(*options, context); });
}

}  // namespace tools
