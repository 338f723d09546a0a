// l3 cat: one sample of a data set, as a file of its own.
#include <memory>
#include <string>
#include <utility>

#include "data_sets.h"
#include "file_io.h"
#include "formats/formats.h"
#include "options.h"

namespace tools {
namespace {

struct CatOptions {
  std::string set, name, out = "-";
};

// An L3 file that names its model gets it: nobody else has it.
Outcome<bridge::Buffer> with_its_model(bridge::Buffer file, const l3::Sample& sample, const std::string& name) {
  if (!sample.is_image() || sample.model_bytes == nullptr) return file;
  if (sample.model == nullptr) return Failure{name, std::nullopt, "its model is not valid"};
  l3_error error{};
  size_t size = 0;
  bridge::Buffer standalone;
  l3_status status = l3_embed_model(file.bytes().data(), file.size(), sample.model, nullptr, 0, &size, &error);
  if (status == L3_ERROR_BUFFER) {
    uint8_t* const to = standalone.reset(size);
    status = l3_embed_model(file.bytes().data(), file.size(), sample.model, to, size, &size, &error);
  }
  if (status != L3_OK) return Failure{name, error.offset, error.reason};
  return standalone;
}

int cat(const CatOptions& options, Context& context) {
  Console& console = context.console;
  if (options.out == "-" && console.stdout_is_terminal()) {
    return wrong_usage(context, "cat: OUT is -, but stdout is a terminal");
  }
  const Outcome<l3::DataSet> set = open_data_set(options.set);
  if (!set) {
    console.fail(set.failure());
    return kExitFailed;
  }
  const std::optional<uint64_t> index = set->find(options.name);
  if (!index) {
    console.fail({options.set, std::nullopt, "no sample of the name " + options.name + " (l3 ls prints the names)"});
    return kExitFailed;
  }
  const l3::Sample sample = set->sample(*index);
  if (sample.is_image() && formats::is_readable_name(options.out)) {
    return wrong_usage(context, "cat: OUT is " + options.out +
                                    ", but an image comes as an L3 file: write .l3, or pipe "
                                    "it: l3 cat SET NAME | l3 decode - OUT");
  }
  Outcome<bridge::Buffer> file = read_sample(*set, *index);
  if (file) file = with_its_model(std::move(*file), sample, display_name(*set, sample));
  if (!file) {
    console.fail(file.failure());
    return kExitFailed;
  }
  if (const auto failure = write_file(options.out, file->bytes(), Flush::to_disk, context.unfinished)) {
    console.fail(*failure);
    return kExitFailed;
  }
  return kExitDone;
}

}  // namespace

void add_cat(CommandLine& line) {
  Subcommand sub = line.command("cat", "Take one sample out of a data set");
  auto options = std::make_shared<CatOptions>();
  sub.option("SET", options->set, "The folder of a data set, or a shard").required().type("");
  sub.option("NAME", options->name, "The sample's name, as l3 ls prints it").required().type("");
  sub.option("OUT", options->out, "The file to write; replaced only when it is whole (default: stdout)").type("");
  sub.footer(
      "An image becomes an L3 file that needs nothing else: it gets a copy of the model that it shares with others.\n"
      "Anything else comes as it is.\n\n"
      "Examples:\n"
      "  l3 cat set/ n01440764/7.png 7.l3\n"
      "  l3 cat set/ 000017.txt\n"
      "  l3 cat set/ a.png | l3 decode - a.png            the image as a PNG\n"
      "  l3 cat set/ a.png | l3 decode - - | viewer\n");
  sub.run([options](Context& context) { return cat(*options, context); });
}

}  // namespace tools
