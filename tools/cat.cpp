// l3 cat: writes one sample of a data set as a file.
#include <memory>
#include <string>

#include "data_sets.h"
#include "file_io.h"
#include "formats/formats.h"
#include "options.h"

namespace tools {
namespace {

struct CatOptions {
  std::string set, name, out = "-";
};

int cat(const CatOptions& options, Context& context) {
  Console& console = context.console;
  if (options.out == "-" && console.stdout_is_terminal()) {
    return wrong_usage(context, "cat: the output would go to the terminal; name OUT, or redirect stdout");
  }
  const Outcome<l3::DataSet> set = open_data_set(options.set);
  if (!set) {
    console.fail(set.failure());
    return kExitFailed;
  }
  const Outcome<uint64_t> index = find_sample(*set, options.set, options.name);
  if (!index) {
    console.fail(index.failure());
    return kExitFailed;
  }
  const l3::Sample sample = set->sample(*index);
  if (sample.is_image() && formats::is_readable_name(options.out)) {
    return wrong_usage(context, "cat: OUT is " + options.out +
                                    ", but cat writes images as L3 files: write .l3, or use a pipe: l3 cat SET NAME | "
                                    "l3 decode - OUT");
  }
  const Outcome<bridge::Buffer> file = read_with_model(*set, *index);
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
  Subcommand sub = line.command("cat", "Write one sample of a data set to a file or to stdout");
  auto options = std::make_shared<CatOptions>();
  sub.option("SET", options->set, "A data set, or a shard").required().type("");
  sub.option("NAME", options->name, "The name of the sample, as l3 ls prints it").required().type("");
  sub.option("OUT", options->out, "The file to write (default: stdout)").type("").local();
  sub.examples(
      "  l3 cat set/ n01440764/7.png 7.l3                 an image as an L3 file\n"
      "  l3 cat set/ n01440764/7.png | l3 decode - 7.png  an image as a PNG\n"
      "  l3 cat set/ 000017.txt                           another file, as it is\n");
  sub.footer(
      "An image is written as an L3 file that needs nothing else: if it shares a model with other images, the file\n"
      "gets a copy of the model.\n");
  sub.run([options](Context& context) { return cat(*options, context); });
}

}  // namespace tools
