// l3 convert: images to a data set, or to files that mirror them.
#include "convert.h"

#include <memory>
#include <set>

#include "command_tree.h"
#include "image_tree.h"
#include "model_files.h"

namespace tools {
namespace {

constexpr uint32_t kMostParts = 1000000;

// Of "2/8".
std::string check_part(const std::string& text) {
  const std::string problem = text + " is not I/N, part I of N, from 1/N to N/N";
  const size_t slash = text.find('/');
  if (slash == text.npos || text.find_first_not_of("0123456789/") != text.npos || text.size() > 15) return problem;
  const auto part = whole_number(text.substr(0, slash)), parts = whole_number(text.substr(slash + 1));
  return part && parts && *part >= 1 && *part <= *parts && *parts <= kMostParts ? "" : problem;
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

int convert(const ConvertOptions& options, Context& context) {
  Console& console = context.console;
  console.set_quiet(options.quiet);
  console.set_prompt(options.json);
  const std::string& source = options.source.source;
  if (source == "-" || options.destination == "-") {
    return wrong_usage(context, "convert: works on files, not on stdin or stdout: l3 encode does");
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
  if (!options.source.list.empty() && !is_folder(source)) {
    return wrong_usage(context, "convert: --list names files below a folder, and SRC is none");
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
             "Take the files of this list, in its order, a path below SRC in each line, if wanted with a tab and "
             "the name of a class behind it; - is stdin")
      .type(kPathType)
      .group("Data sets");
  sub.option("--pair", options.source.pairs,
             "Files that belong together, a role and a pattern for each, in which {} stands for what their names "
             "have in common: --pair image=images/{}.jpg --pair mask=masks/{}_gt.png")
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
             "Shards become at most so large, but for single samples (default: 256MB)")
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
             "it; of files that have its name alone, none can be decoded without it. Again for images of others");
  add_threads(sub, options->jobs, "-j,--jobs,--threads", "Files to work on side by side");
  sub.option("--on-error", options->on_error,
             "What to do about a file that fails (default: fail, stop there; skip: name it and go on)")
      .one_of({"fail", "skip"});
  sub.option("--report", options->report,
             "Write what failed to this file, with tabs between file, offset and reason (default: errors.tsv in "
             "a data set where something failed)")
      .type("FILE");
  const Option resume =
      sub.flag("--resume", options->resume,
               "Go on with what was interrupted, with the same options: nothing that is finished is done again. "
               "With --files: keep outputs that are newer than their source; other options are not noticed");
  sub.flag("--force", options->force, "Begin anew, whatever is there").excludes(resume);
  sub.flag("--no-verify", options->no_verify,
           "Do not decode each result and compare it with its source before it counts");
  add_quiet(sub, options->quiet);
  sub.flag("--json", options->json, "Events on stdout, a line of JSON each: begin, progress, failure, end");
  add_set_options(sub, *options);
  add_limits(sub, options->limits, true);
  sub.footer(
      "A data set is a folder of shards with an index.json: l3 info, ls, cat, verify and export read it. It is the\n"
      "same bytes whatever the number of jobs and of interruptions. A run that was ended in any way, also by a full\n"
      "disk, goes on with --resume; the work so far is in DST/.l3-convert. Lossy sources are kept at their decoded\n"
      "pixels, with a note. GeoTIFF's and other tags of a TIFF are kept as EXIF, which l3 export writes into a PNG's\n"
      "eXIf chunk. Other files than images are counted and ignored, but for those that belong to a group.\n\n"
      "With --files, outputs that exist already stop the run before it begins, unless --resume or --force says what\n"
      "to do; so do two sources for one output, such as a.png and a.pgm. Outputs are not flushed to disk one by one:\n"
      "after a power cut run l3 verify.\n\n"
      "Examples:\n"
      "  l3 convert pngs/ set/                                 folders become classes, where there are some\n"
      "  l3 convert --on-error skip --resume pngs/ set/        go on after an interruption, past broken files\n"
      "  l3 convert train-000.tar set/                         images with .json and .cls beside them\n"
      "  l3 convert --pair 'image=leftImg8bit/{}_leftImg8bit.png' \\\n"
      "             --pair 'labels=gtFine/{}_gtFine_labelIds.png' cityscapes/ set/\n"
      "  l3 convert --part 3/8 pngs/ set/                      one of eight machines; then l3 merge set/\n"
      "  l3 convert --files pngs/ l3s/                         a file for each image\n"
      "  l3 verify --against pngs/ set/                        prove the conversion\n");
  sub.run([options](Context& context) { return convert(*options, context); });
}

}  // namespace tools
