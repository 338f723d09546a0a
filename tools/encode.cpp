// l3 encode: one image to one L3 file.
#include <memory>
#include <string>
#include <vector>

#include "conversion.h"
#include "file_io.h"
#include "image_tree.h"
#include "model_files.h"
#include "options.h"
#include "parallel.h"
#include "progress.h"

namespace tools {
namespace {

struct EncodeOptions {
  std::string in, out;
  MethodOptions method;
  std::vector<std::string> models;
  l3_limits limits{};
  uint32_t threads = 0;
  bool no_verify = false;
  bool quiet = false;
};

int encode(const EncodeOptions& options, Context& context) {
  Console& console = context.console;
  console.set_quiet(options.quiet);
  if (options.out == "-" && console.stdout_is_terminal()) {
    return wrong_usage(context, "encode: OUT is -, but stdout is a terminal");
  }
  if (options.in != "-" && options.out != "-" && is_same_file(options.in, options.out)) {
    return wrong_usage(context, "encode: IN and OUT are the same file");
  }

  ModelFiles models;
  if (const auto failure = models.open_for_encoding(options.models)) {
    console.fail(*failure);
    return kExitFailed;
  }
  Parallel parallel(options.threads);
  ConversionSettings settings;
  settings.encode = encode_options(options.method);
  settings.encode.parallel = parallel.for_l3();
  settings.models = models.all();
  settings.limits = options.limits;
  settings.verify = !options.no_verify;
  settings.flush = Flush::to_disk;
  const Outcome<Converted> converted = convert_file(options.in, options.out, settings, context);
  if (!converted) {
    console.fail(converted.failure());
    return kExitFailed;
  }
  if (console.stderr_is_terminal()) {
    const double ratio = static_cast<double>(converted->bytes_out) / static_cast<double>(converted->bytes_in);
    console.inform(format_bytes(converted->bytes_in) + " -> " + format_bytes(converted->bytes_out) + ", ratio " +
                   format_number(ratio, 3));
  }
  return kExitDone;
}

}  // namespace

void add_encode(CommandLine& line) {
  Subcommand sub = line.command("encode", "Encode one image file to L3");
  auto options = std::make_shared<EncodeOptions>();
  sub.option("IN", options->in, "An image file, told by its contents: " + formats::readable_formats() + "; - is stdin")
      .required()
      .type("");
  sub.option("OUT", options->out, "The L3 file to write; replaced only when it is whole; - is stdout")
      .required()
      .type("");
  add_method(sub, options->method);
  add_models(
      sub, options->models,
      "A model of l3 train, for images of its channels and bits. The result is smaller, and cannot be decoded without "
      "the model. Can be given once for each kind of images");
  add_threads(sub, options->threads, "-j,--threads", "Threads to encode with");
  sub.flag("--no-verify", options->no_verify, "Skip the proof: do not decode the result and compare it with IN");
  add_quiet(sub, options->quiet);
  add_limits(sub, options->limits, true);
  sub.footer(
      "Kept: every sample, bit depth, palette, transparency and ancillary chunk.\n"
      "Not kept: how IN was compressed, filtered or interlaced, and where the chunks\n"
      "cICP, gAMA, sRGB, cHRM, iCCP and eXIf stood among the others: they come first.\n\n"
      "Examples:\n"
      "  l3 encode photo.png photo.l3\n"
      "  l3 encode --tile 64 map.png map.l3       small tiles, for reading small regions\n"
      "  render | l3 encode - - > frame.l3        in a pipe\n");
  sub.run([options](Context& context) { return encode(*options, context); });
}

}  // namespace tools
