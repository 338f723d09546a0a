// l3 convert: images to a data set, or to files that mirror them.
#include "convert.h"

#include <filesystem>
#include <memory>
#include <set>
#include <string_view>
#include <system_error>

#include "command_tree.h"
#include "file_io.h"
#include "image_tree.h"
#include "model_files.h"

namespace tools {
namespace {

constexpr uint32_t kMaxParts = 1000000;

// Of "2/8".
std::string check_part(const std::string& text) {
  const std::string problem = text + " is not I/N, part I of N, from 1/N to N/N";
  const size_t slash = text.find('/');
  if (slash == text.npos || text.find_first_not_of("0123456789/") != text.npos || text.size() > 15) return problem;
  const auto part = parse_integer(text.substr(0, slash)), parts = parse_integer(text.substr(slash + 1));
  return part && parts && *part >= 1 && *part <= *parts && *parts <= kMaxParts ? "" : problem;
}

// What only makes sense for data sets, where files are made.
std::string set_option_in_use(const ConvertOptions& options) {
  if (!options.source.list.empty()) return "--list";
  if (!options.source.pairs.empty()) return "--pair";
  if (!options.source.group.empty()) return "--group";
  if (!options.source.labels.empty()) return "--labels";
  if (options.source.pages) return "--pages";
  if (!options.part.empty()) return "--part";
  if (!options.shared_model.empty()) return "--shared-model";
  if (options.shard_bytes != 0) return "--shard-size";
  return "";
}

// How to come from an archive that is not read to a source that is; empty for other sources.
std::string unpacking(const std::string& source) {
  const std::string_view unpacker = unpacker_of(source);
  std::error_code error;
  if (unpacker.empty() || !std::filesystem::is_regular_file(source, error)) return "";
  if (!formats::unread_extension(source).empty()) return "";  // .nii.gz
  return "this archive is not read: unpack it first in a folder of its own (" + std::string(unpacker) + " " + source +
         "), then convert that folder";
}

int convert(const ConvertOptions& options, Context& context) {
  Console& console = context.console;
  console.set_quiet(options.quiet);
  console.set_prompt(options.json);
  const std::string& source = options.source.source;
  if (source == "-" || options.destination == "-") {
    return wrong_usage(context, "convert: works on files, not on stdin or stdout: l3 encode does");
  }
  if (const std::string hint = unpacking(source); !hint.empty()) {
    console.fail({source, std::nullopt, hint});
    return kExitFailed;
  }
  const bool is_single = !is_folder(source) && !is_tar(source);
  if (options.files || is_single) {
    if (const std::string option = set_option_in_use(options); !option.empty()) {
      return wrong_usage(context, "convert: " + option + " is for data sets, not for " +
                                      (options.files ? "--files" : "a single file"));
    }
    if (options.files && is_tar(source)) return wrong_usage(context, "convert: --files needs a folder, not a tar");
    return convert_to_files(options, context);
  }
  std::error_code error;
  if (std::filesystem::exists(options.destination, error) && !is_folder(options.destination)) {
    console.fail({options.destination, std::nullopt, "is no folder: DST is the folder of a data set"});
    return kExitFailed;
  }
  if (is_same_file(source, options.destination)) {
    console.fail({options.destination, std::nullopt,
                  "is SRC as well as DST: name another folder for the data set (--files can write beside the images)"});
    return kExitFailed;
  }
  if (!options.source.list.empty() && !is_folder(source)) {
    return wrong_usage(context, "convert: --list names files below a folder, and SRC is none");
  }
  if (options.shared_model == "on" && options.method.method == "fast") {
    return wrong_usage(context, "convert: --shared-model on is not for --method fast, which uses no model");
  }
  if (!options.source.pairs.empty() && options.source.group == "stem") {
    return wrong_usage(context, "convert: --pair and --group stem both say what belongs together");
  }
  if (options.source.pages && (!options.source.pairs.empty() || options.source.group == "stem" ||
                               (is_tar(source) && options.source.group.empty()))) {
    return wrong_usage(context,
                       "convert: --pages makes a sample of each page, so that nothing can be grouped: add "
                       "--group none, without --pair");
  }
  std::set<std::string> roles;
  for (const std::string& pair : options.source.pairs) {
    const std::string role = pair.substr(0, pair.find('='));
    if (!roles.insert(role).second) return wrong_usage(context, "convert: two --pair of the role " + one_line(role));
  }
  return convert_to_set(options, context);
}

void add_set_options(Subcommand& sub, ConvertOptions& options) {
  sub.option("--list", options.source.list,
             "Take the files of this list, in its order: each line is a path below SRC, which a tab and the name of "
             "a class may follow; - is stdin")
      .type(kPathType)
      .group("Data sets");
  sub.option("--pair", options.source.pairs,
             "Files that belong together, as a role and a pattern. {} stands for what their names have in common: "
             "--pair image=images/{}.jpg --pair mask=masks/{}_gt.png")
      .type("ROLE=PATTERN")
      .one_word()
      .check(check_pair)
      .group("Data sets");
  sub.option("--group", options.source.group,
             "stem: files with one name up to its first dot belong together, with .json for metadata, "
             ".cls for a label, others as they are (default: stem in tars, else none)")
      .one_of({"none", "stem"})
      .group("Data sets");
  sub.option("--labels", options.source.labels,
             "folder: the first folder below SRC is a file's class (default: folder where there are two "
             "or more, and neither pairs nor tars)")
      .one_of({"folder", "none"})
      .group("Data sets");
  sub.flag(
         "--pages", options.source.pages,
         "A sample for each page of a TIFF that has several, a.tif becoming a#1.tif, a#2.tif ... (default: such files "
         "fail). Each page is read for itself")
      .group("Data sets");
  sub.option("--shard-size", options.shard_bytes,
             "The most bytes of a shard; only a larger single sample exceeds it (default: 256MB)")
      .size(Option::Kilo::is_1000)
      .group("Data sets");
  sub.option("--shared-model", options.shared_model,
             "Whether small images share a model in each shard (default: auto, where a sample of them "
             "says that it saves more than one percent)")
      .one_of({"auto", "on", "off"})
      .group("Data sets");
  sub.option("--part", options.part,
             "Convert part I of N only, with the same options for each; l3 merge then makes one data set of them")
      .type("I/N")
      .check(check_part)
      .group("Data sets");
}

}  // namespace

void explain_interruption(const ConvertOptions& options, Context& context) {
  if (options.quiet) return;
  context.unfinished.set_last_words(
      std::string("l3: Interrupted. Everything that was converted is kept; continue with the same command and ") +
      (options.force ? "--resume instead of --force" : "--resume"));
}

void add_convert(CommandLine& line) {
  Subcommand sub = line.command("convert", "Convert images to a data set, or to L3 files that mirror them");
  auto options = std::make_shared<ConvertOptions>();
  sub.option("SRC", options->source.source,
             "A folder, with all folders and tars below it, a tar of images, or a single image")
      .required()
      .type("");
  sub.option("DST", options->destination,
             "The folder of the data set, made where it is missing. With --files the folder to mirror SRC in; "
             "for a single image also a name that ends in .l3")
      .required()
      .type("");
  sub.flag("--files", options->files, "A file for each image, SRC/a/b.png becoming DST/a/b.l3, instead of shards");
  add_method(sub, options->method);
  add_models(sub, options->models,
             "Use a model of l3 train for images of its channels and bits: the result is smaller. A data set holds "
             "the model; files hold only its name and cannot be decoded without it. May be given more than once");
  add_threads(sub, options->jobs, "-j,--jobs,--threads", "Files to work on side by side");
  sub.option("--on-error", options->on_error,
             "What to do about a file that fails: stop (fail, the default), or name it and continue (skip)")
      .one_of({"fail", "skip"});
  sub.flag("--ignore-unsupported", options->source.ignore_unsupported,
           "Leave out images of types that are not read, such as .dcm, and compressed tars; else they are a failure");
  sub.option("--report", options->report,
             "Write what failed to this file, with tabs between file, offset and reason (default: errors.tsv in "
             "a data set where something failed)")
      .type("FILE");
  const Option resume =
      sub.flag("--resume", options->resume,
               "Continue a run that was interrupted, with the same options: nothing that is finished is done again. "
               "With --files: keep outputs that are newer than their source, whatever the options");
  sub.flag("--force", options->force, "Start over, and replace an earlier result").excludes(resume);
  sub.flag("--no-verify", options->no_verify,
           "Do not decode each result and compare it with its source before it counts");
  add_quiet(sub, options->quiet);
  sub.flag("--json", options->json, "Events on stdout, a line of JSON each: begin, progress, failure, end");
  add_set_options(sub, *options);
  add_limits(sub, options->limits, true);
  sub.footer(
      "A data set is a folder of shards with an index.json: l3 info, ls, cat, verify and export read it. It is the\n"
      "same bytes whatever the number of jobs and of interruptions. A run is safe to interrupt: continue with "
      "--resume,\n"
      "also after a full disk. The work so far is in DST/.l3-convert. Lossy sources are kept at their decoded pixels,\n"
      "with a note. Files that are no images are counted and ignored, unless they belong to a group. Images of types\n"
      "that are not read, such as .dcm, are a failure, unless --ignore-unsupported is given. Files that --list names\n"
      "are never ignored, whatever their names. Links in tars are followed. GeoTIFF's and other tags of a TIFF are\n"
      "kept as EXIF, which l3 export writes into a PNG's eXIf chunk.\n\n"
      "With --files, outputs that exist already stop the run before it begins, unless --resume or --force says what\n"
      "to do; so do two sources for one output, such as a.png and a.pgm. Outputs are not flushed to disk one by one:\n"
      "after a power cut run l3 verify.\n\n"
      "Examples:\n"
      "  l3 convert pngs/ set/                                 folders become classes, where there are some\n"
      "  l3 convert --on-error skip --resume pngs/ set/        continue after an interruption, and leave out broken "
      "files\n"
      "  l3 convert train-000.tar set/                         images with .json and .cls beside them\n"
      "  l3 convert --pair 'image=leftImg8bit/{}_leftImg8bit.png' \\\n"
      "             --pair 'labels=gtFine/{}_gtFine_labelIds.png' cityscapes/ set/\n"
      "  l3 convert --part 3/8 pngs/ set/                      one of eight machines; then l3 merge set/\n"
      "  l3 convert --files pngs/ l3s/                         a file for each image\n"
      "  l3 verify --against pngs/ set/                        prove the conversion\n");
  sub.run([options](Context& context) { return convert(*options, context); });
}

}  // namespace tools
