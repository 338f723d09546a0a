// l3 encode: converts one image to one L3 file.
#include <memory>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "conversion.h"
#include "effort_figures.h"
#include "file_io.h"
#include "image_tree.h"
#include "model_files.h"
#include "options.h"
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
    return wrong_usage(context, "encode: OUT is -, but stdout is a terminal; redirect it to a file or a pipe");
  }
  if (options.in != "-" && options.out != "-" && is_same_file(options.in, options.out)) {
    return wrong_usage(context, "encode: IN and OUT are the same file");
  }
  if (has_extension_of(Kind::foreign, options.out)) {
    return wrong_usage(context,
                       "encode: OUT is " + options.out + ", the name of another format; an L3 file ends in .l3");
  }
  if (options.in != "-" && is_folder(options.in)) {
    return wrong_usage(context, "encode: " + options.in + " is a folder; l3 convert makes a data set of a folder");
  }

  ModelFiles models;
  if (const auto failure = models.open_for_encoding(options.models)) {
    console.fail(*failure);
    return kExitFailed;
  }
  base::Parallel parallel(options.threads);
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
  Subcommand sub = line.command("encode", "Encode one image as an L3 file, without loss");
  auto options = std::make_shared<EncodeOptions>();
  sub.option("IN", options->in, "The image to read, or - for stdin: " + formats::readable_formats())
      .required()
      .type("")
      .local();
  sub.option("OUT", options->out, "The L3 file to write, or - for stdout").required().type("").local();
  add_method(sub, options->method);
  add_models(sub, options->models, "A model from l3 train: the file gets smaller, but needs the model to be decoded")
      .details(
          "The model is used if it is for images with as many channels and bits. Give the option again for a model of "
          "another kind of image");
  add_threads(sub, options->threads, "-j,--threads", "Number of threads");
  sub.flag("--no-verify", options->no_verify, "Do not decode the result to compare it with IN");
  add_quiet(sub, options->quiet);
  add_limits(sub, options->limits, true);
  sub.examples(
      "  l3 encode photo.png photo.l3\n"
      "  l3 encode -9 photo.png photo.l3          the smallest file, slow to encode\n"
      "  l3 encode --method fast photo.png p.l3   the fastest way, a larger file\n"
      "  l3 encode --tile 64 map.png map.l3       small tiles, for reading small regions\n"
      "  render | l3 encode - - > frame.l3        in a pipe\n");
  sub.footer(
      "The L3 file keeps every sample, the bit depth, the palette, the transparency and all ancillary PNG chunks.\n"
      "If the image has something else that an L3 file cannot hold, such as XMP in a JPEG, a note names it.\n"
      "OUT is written only if decoding it gives the same image again (see --no-verify).\n\n" +
      std::string(kEffortFigures));
  sub.manual(
      "The contents of IN tell its format; its name does not matter.\n\n"
      "An L3 file does not keep how IN was compressed, filtered or interlaced. It keeps the order of chunks, except\n"
      "that cICP, gAMA, sRGB, cHRM, iCCP and eXIf come back before all others.\n");
  sub.run([options](Context& context) { return encode(*options, context); });
}

}  // namespace tools
