// l3 convert: converts images to a data set, or to L3 files.
#include "convert.h"

#include <filesystem>
#include <memory>
#include <set>
#include <string_view>
#include <system_error>

#include "command_tree.h"
#include "file_io.h"
#include "image_tree.h"
#include "loader/store.h"
#include "model_files.h"

namespace tools {
namespace {

constexpr uint32_t kMaxParts = 1000000;

// Checks a part such as "2/8".
std::string check_part(const std::string& text) {
  const std::string problem = text + " is not I/N (part I of N, from 1/N to N/N)";
  const size_t slash = text.find('/');
  if (slash == text.npos || text.find_first_not_of("0123456789/") != text.npos || text.size() > 15) return problem;
  const auto part = parse_integer(text.substr(0, slash)), parts = parse_integer(text.substr(slash + 1));
  return part && parts && *part >= 1 && *part <= *parts && *parts <= kMaxParts ? "" : problem;
}

// The option in use that only makes sense for data sets. Empty if there is none.
std::string set_option_in_use(const ConvertOptions& options) {
  if (!options.source.list.empty()) return "--list";
  if (!options.source.pairs.empty()) return "--pair";
  if (!options.source.group.empty()) return "--group";
  if (!options.source.labels.empty()) return "--labels";
  if (options.source.pages) return "--pages";
  for (const std::string& word : options.interpolations) {
    if (word.find('=') != word.npos) return "--interpolation ROLE=";
  }
  if (!options.part.empty()) return "--part";
  if (!options.shared_model.empty()) return "--shared-model";
  if (options.shard_bytes != 0) return "--shard-size";
  return "";
}

// Tells how to unpack an archive that convert cannot read. Empty for other sources.
std::string unpacking(const std::string& source) {
  const std::string_view unpacker = unpacker_of(source);
  std::error_code error;
  if (unpacker.empty() || !std::filesystem::is_regular_file(source, error)) return "";
  if (!formats::unread_extension(source).empty()) return "";  // .nii.gz
  return "cannot read this kind of archive: unpack it into a new folder (" + std::string(unpacker) + " " + source +
         ") and convert that folder";
}

int convert(const ConvertOptions& options, Context& context) {
  Console& console = context.console;
  console.set_quiet(options.quiet);
  console.set_prompt(options.json);
  const std::string& source = options.source.source;
  if (source == "-" || options.destination == "-") {
    return wrong_usage(context, "convert: cannot read stdin or write stdout; use l3 encode");
  }
  if (const std::string hint = unpacking(source); !hint.empty()) {
    console.fail({source, std::nullopt, hint});
    return kExitFailed;
  }
  const bool is_single = !is_folder(source) && !is_tar(source);
  const bool to_far = loader::is_url(options.destination);
  if (to_far && (options.files || is_single || !options.part.empty())) {
    return wrong_usage(context, std::string("convert: a URL as DST works only for a whole data set, not with ") +
                                    (options.files ? "--files"
                                     : is_single   ? "a single image"
                                                   : "--part"));
  }
  if (!to_far && !options.spool.empty()) return wrong_usage(context, "convert: --spool needs a URL as DST");
  if (options.files || is_single) {
    if (const std::string option = set_option_in_use(options); !option.empty()) {
      return wrong_usage(context, "convert: " + option + " works only for data sets, not with " +
                                      (options.files ? "--files" : "a single image"));
    }
    if (options.files && is_tar(source))
      return wrong_usage(context, "convert: --files works on a folder, not on a tar; unpack the tar first");
    return convert_to_files(options, context);
  }
  std::error_code error;
  if (std::filesystem::exists(options.destination, error) && !is_folder(options.destination)) {
    console.fail({options.destination, std::nullopt, "is not a folder; DST must be the folder for the data set"});
    return kExitFailed;
  }
  if (is_same_file(source, options.destination)) {
    console.fail({options.destination, std::nullopt,
                  "is both SRC and DST; use another folder for the data set (only --files can write into SRC)"});
    return kExitFailed;
  }
  if (!options.source.list.empty() && !is_folder(source)) {
    return wrong_usage(context, "convert: --list needs a folder as SRC, because its paths are below that folder");
  }
  if (options.shared_model == "on" && options.method.method == "fast") {
    return wrong_usage(context, "convert: --shared-model on is not for --method fast, which uses no models");
  }
  if (!options.source.pairs.empty() && options.source.group == "stem") {
    return wrong_usage(context, "convert: use either --pair or --group stem, not both");
  }
  if (options.source.pages && (!options.source.pairs.empty() || options.source.group == "stem" ||
                               (is_tar(source) && options.source.group.empty()))) {
    return wrong_usage(context,
                       "convert: --pages makes a sample of each page and cannot group files; use --group none and "
                       "no --pair");
  }
  std::set<std::string> roles;
  for (const std::string& pair : options.source.pairs) {
    const std::string role = pair.substr(0, pair.find('='));
    if (!roles.insert(role).second)
      return wrong_usage(context, "convert: two --pair options have the role " + one_line(role));
  }
  if (to_far) return convert_to_far(options, context);
  bool is_complete = false;
  return convert_to_set(options, context, is_complete);
}

void add_set_options(Subcommand& sub, ConvertOptions& options) {
  sub.option("--list", options.source.list, "Convert the files of this list, in its order; - is stdin")
      .type(kPathType)
      .local()
      .group("Data sets")
      .details(
          "Each line is a path below SRC. A tab and the name of a class may follow it. Files of the list are never "
          "ignored, even if their names "
          "are not those of images");
  sub.option("--pair", options.source.pairs, "Files that belong together; {} is what their names have in common")
      .type("ROLE=PATTERN")
      .one_word()
      .check(check_pair)
      .group("Data sets")
      .details(
          "Give the option once for each role: --pair image=images/{}.jpg --pair mask=masks/{}_gt.png makes samples of "
          "an image and a mask");
  sub.option("--group", options.source.group,
             "stem: group files whose names are equal up to the first dot (default for tars)")
      .one_of({"none", "stem"})
      .group("Data sets")
      .details(
          "With stem, a .json file becomes the metadata of its group and a .cls file, a number in digits, its label. "
          "The member __classes__ of a tar, a JSON list, names the labels. Other files are kept as they are. The "
          "default for folders and lists is none");
  sub.option("--labels", options.source.labels,
             "folder: the first folder below SRC is the class (default if there are two or more)")
      .one_of({"folder", "none"})
      .group("Data sets")
      .details("The default is none with --pair, for tars, and if there are .cls files with --group stem");
  sub.flag("--pages", options.source.pages,
           "Make a sample of each page of a TIFF (default: several pages are an error)")
      .group("Data sets")
      .details("The pages of a.tif become the samples a#1.tif, a#2.tif and so on");
  sub.option("--shard-size", options.shard_bytes, "Largest size of a shard (default: 256MB)")
      .size(Option::Kilo::is_1000)
      .group("Data sets")
      .details("A shard exceeds this size only if a single group of files does");
  sub.option("--shared-model", options.shared_model,
             "Whether small images share a model (default: auto, if it saves over 1 percent)")
      .one_of({"auto", "on", "off"})
      .group("Data sets")
      .details(
          "The model is made from a sample of the images and stored in each shard that uses it. auto makes one only "
          "for small images");
  sub.option("--part", options.part, "Convert only part I of N, for example on one of N machines; then run l3 merge")
      .type("I/N")
      .check(check_part)
      .group("Data sets")
      .details("Use the same sources and options for all parts. l3 merge joins them to one data set");
  sub.option("--spool", options.spool, "If DST is a URL: where to convert to; room for all (default: in $TMPDIR)")
      .type(kFolderType)
      .local()
      .group("Data sets")
      .details(
          "The folder needs room for the whole data set. It is uploaded and then removed. The default is a folder in "
          "$TMPDIR or /tmp whose name depends on the URL, so that --resume finds it");
}

}  // namespace

void explain_interruption(bool quiet, bool force, Context& context) {
  if (quiet) return;
  context.unfinished.set_last_words(
      std::string("l3: Interrupted. All work so far is kept. To continue, repeat the command with ") +
      (force ? "--resume instead of --force" : "--resume"));
}

void add_convert(CommandLine& line) {
  Subcommand sub = line.command("convert", "Convert a folder or a tar of images to a data set, or to L3 files");
  auto options = std::make_shared<ConvertOptions>();
  sub.option("SRC", options->source.source, "A folder, with all folders and tars below it, a tar, or a single image")
      .required()
      .type("")
      .local();
  sub.option("DST", options->destination, "The folder or the URL for the data set, or the folder for L3 files")
      .details(
          "A folder is created if it does not exist. For a single image DST may also be a name that ends in .l3. A URL "
          "begins with http, https, s3, redis or rediss")
      .required()
      .type("");
  sub.flag("--files", options->files, "Write an L3 file for each image: SRC/a/b.png becomes DST/a/b.l3");
  add_threads(sub, options->jobs, "-j,--jobs,--threads", "Files to convert at the same time");
  add_method(sub, options->method);
  sub.option("--resize", options->resize,
             "Resize images: shorter=N, longest=N, max-pixels=N (only shrink) or exact=WxH")
      .type("RULE")
      .check(check_resize)
      .details(
          "For sets whose originals are larger than a training needs. shorter and longest are sides, and max-pixels is "
          "width times height: larger images become that small, and others stay as they are, bit for bit. exact gives "
          "every image this size. All pixels of the original count (antialiasing), as in torchvision and Pillow. An "
          "image that was resized says so: l3 info shows l3:resized-from");
  sub.option("--interpolation", options->interpolations,
             "How: bilinear (default), bicubic, area or nearest-exact, or ROLE=NAME for one role")
      .type("NAME")
      .one_word()
      .check(check_interpolation)
      .needs("--resize")
      .details(
          "NAME or ROLE=NAME, once for each role. With --pair the default is bilinear for the first role and "
          "nearest-exact "
          "for the others, which are masks and labels. If files form groups in another way, the roles of all images "
          "must be given. Palette images, and images with a transparent colour, are always resized with nearest-exact");
  sub.flag("--orient", options->orient, "Turn images upright, as their EXIF says; comes before --resize")
      .details(
          "No sample changes. The orientation in the EXIF becomes 1, and the image says what it was: l3 info shows "
          "l3:oriented");
  add_models(sub, options->models, "A model from l3 train, for smaller results")
      .details(
          "The model is used for images with as many channels and bits. A data set holds the model itself. With "
          "--files, "
          "the files hold only its name, so that decoding them needs the model. Give the option again for a model of "
          "another kind of image");
  sub.flag("--no-verify", options->no_verify, "Do not decode each result to compare it with its source");
  add_quiet(sub, options->quiet);
  sub.flag("--json", options->json, "Print events as lines of JSON: begin, progress, failure, end");
  constexpr const char* kFailures = "Interruptions and errors";
  const Option resume = sub.flag("--resume", options->resume, "Continue an interrupted run; repeat its other options")
                            .group(kFailures)
                            .details(
                                "Finished work is not done again. With --files, outputs that are newer than their "
                                "sources are kept, and the options may differ");
  sub.flag("--force", options->force, "Start over and replace an earlier result").group(kFailures).excludes(resume);
  sub.option("--on-error", options->on_error,
             "If a file fails: stop (fail, the default), or report it and continue (skip)")
      .one_of({"fail", "skip"})
      .group(kFailures);
  sub.flag("--ignore-unsupported", options->source.ignore_unsupported,
           "Leave out compressed tars and images of unsupported types, such as .dcm")
      .group(kFailures)
      .details("Without this option they are errors");
  sub.option("--report", options->report, "List the files that failed here (default: errors.tsv in the data set)")
      .type("FILE")
      .group(kFailures)
      .details("Each line has the file, the offset and the reason, separated by tabs");
  add_set_options(sub, *options);
  add_limits(sub, options->limits, true);
  sub.examples(
      "  l3 convert pngs/ set/                          a folder of images; subfolders become classes\n"
      "  l3 convert --files pngs/ l3s/                  one L3 file for each image instead of a data set\n"
      "  l3 convert pngs/ s3://bucket/set               to a store, by way of a local folder (--spool)\n"
      "  l3 convert train-000.tar set/                  a tar of images with .json and .cls files\n"
      "  l3 convert --pair 'image=img/{}.jpg' --pair 'mask=gt/{}.png' street/ set/\n"
      "  l3 verify --against pngs/ set/                 check the result\n");
  sub.footer("Reads " + formats::readable_formats() +
             ".\n"
             "Other files are ignored and counted. A run is safe to interrupt: continue it with --resume.\n");
  sub.manual(
      "A data set is a folder of shards with an index.json. The commands info, ls, cat, verify and export read it.\n"
      "Its bytes depend on the sources and the options, not on the number of jobs or on interruptions. Unfinished\n"
      "work is in DST/.l3-convert; --resume continues it, also after a full disk.\n\n"
      "The extension tells which files of a folder are images. Other files are ignored unless they belong to a group.\n"
      "Images of lossy formats keep their decoded pixels, and a note says so. Links in tars are followed. TIFF tags,\n"
      "such as those of GeoTIFF, are kept as EXIF, which l3 export writes to the eXIf chunk of a PNG.\n\n"
      "With --files, the run does not begin if an output exists already, unless --resume or --force is given. It does\n"
      "not begin either if two sources have the same output, such as a.png and a.pgm. Outputs are not flushed to disk\n"
      "one by one: after a power failure run l3 verify.\n\n"
      "The images and labels of Cityscapes:\n"
      "  l3 convert --pair 'image=leftImg8bit/{}_leftImg8bit.png' \\\n"
      "             --pair 'labels=gtFine/{}_gtFine_labelIds.png' cityscapes/ set/\n\n"
      "If DST is a URL, the data set is made in a local folder (--spool), which needs room for all of it, uploaded as\n"
      "l3 upload does, and removed from the folder. If anything fails, the folder stays, and --resume continues.\n\n"
      "The third of eight parts, on one of eight machines:\n"
      "  l3 convert --part 3/8 pngs/ set/\n");
  sub.run([options](Context& context) { return convert(*options, context); });
}

}  // namespace tools
