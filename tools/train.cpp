// l3 train: one model for many images.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bridge/image_bridge.h"
#include "command_tree.h"
#include "file_io.h"
#include "image_tree.h"
#include "model_files.h"
#include "options.h"
#include "parallel.h"
#include "progress.h"

namespace tools {
namespace {

struct TrainOptions {
  std::string folder, out;
  uint32_t effort = 0;
  uint32_t tile = 0;
  uint64_t max_images = 1000;
  std::string colour;
  uint32_t bits = 0;
  bool complete = false;
  l3_limits limits{};
  uint32_t threads = 0;
  bool quiet = false;
};

struct CloseTraining {
  void operator()(l3_training* training) const { l3_close_training(training); }
};

constexpr std::array kColourNames = {"gray", "gray and alpha", "RGB", "RGBA", "palette"};

const std::vector<std::string> kColourOptions = {"gray", "gray_alpha", "rgb", "rgb_alpha", "palette"};

size_t number_of(const std::string& colour) {
  return static_cast<size_t>(std::find(kColourOptions.begin(), kColourOptions.end(), colour) - kColourOptions.begin());
}

// Images of one colour and so many bits, and what was learnt of them.
struct Layout {
  size_t colour;
  uint32_t bits;
  std::unique_ptr<l3_training, CloseTraining> training;
  uint64_t images = 0;

  std::string name() const { return std::string(kColourNames[colour]) + " of " + bits_text(bits); }
  static std::string bits_text(uint32_t bits) { return std::to_string(bits) + (bits == 1 ? " bit" : " bits"); }
};

// Learns from each image by its layout, since which one is the most frequent shows at the end.
class Lessons {
 public:
  explicit Lessons(const l3_train_options& options) : options_(options) {}

  // Why an image cannot be learnt from.
  std::optional<std::string> add(const formats::Image& image) {
    Layout& layout = layout_of(static_cast<size_t>(image.colour), image.bits);
    l3_error error{};
    if (layout.training == nullptr) {
      l3_training* training = nullptr;
      if (l3_start_training(&options_, &training, &error) != L3_OK) return error.reason;
      layout.training.reset(training);
    }
    const bridge::L3Image source(image);
    if (l3_add_to_training(layout.training.get(), &source.get(), &error) != L3_OK) return error.reason;
    ++layout.images;
    return std::nullopt;
  }

  // That of most images, of those of a colour and bits where such are wanted; null where there are none.
  const Layout* most_frequent(const std::optional<size_t>& colour, uint32_t bits) const {
    const Layout* maximum = nullptr;
    for (const Layout& layout : layouts_) {
      if (layout.images == 0 || layout.colour != colour.value_or(layout.colour)) continue;
      if (bits != 0 && layout.bits != bits) continue;
      if (maximum == nullptr || layout.images > maximum->images) maximum = &layout;
    }
    return maximum;
  }

  // "2 gray of 8 bits, 1 RGB of 16 bits": all but those of a layout; empty where that is all.
  std::string left_out(const Layout& taken) const {
    std::string text;
    for (const Layout& layout : layouts_) {
      if (&layout == &taken || layout.images == 0) continue;
      text += (text.empty() ? "" : ", ") + std::to_string(layout.images) + " " + layout.name();
    }
    return text;
  }

 private:
  // In order of colours and bits.
  Layout& layout_of(size_t colour, uint32_t bits) {
    const auto at = std::find_if(layouts_.begin(), layouts_.end(), [&](const Layout& layout) {
      return layout.colour > colour || (layout.colour == colour && layout.bits >= bits);
    });
    if (at != layouts_.end() && at->colour == colour && at->bits == bits) return *at;
    return *layouts_.insert(at, Layout{colour, bits, nullptr, 0});
  }

  l3_train_options options_;
  std::vector<Layout> layouts_;
};

// At most so many, evenly from all.
std::vector<std::string> chosen_of(const std::vector<std::string>& files, uint64_t maximum) {
  if (files.size() <= maximum) return files;
  std::vector<std::string> chosen;
  for (uint64_t i = 0; i < maximum; ++i) chosen.push_back(files[i * files.size() / maximum]);
  return chosen;
}

std::optional<Failure> learn(const std::string& path, const TrainOptions& options, Lessons& lessons, Totals& done) try {
  const Outcome<bridge::Buffer> file = read_file(path);
  if (!file) return file.failure();
  const formats::Result<formats::Image> image = formats::read(file->bytes(), read_options(options.limits));
  if (!image) return failure_in(path, image.error());
  if (const auto reason = lessons.add(*image)) return Failure{path, std::nullopt, *reason};
  done = {1, 0, uint64_t{image->width} * image->height, file->size(), 0};
  return std::nullopt;
} catch (...) {
  return caught(path);
}

// Gives how many images failed; nothing where memory ran out, since a model of the others would be another one.
std::optional<uint64_t> learn_all(const std::vector<std::string>& files, const TrainOptions& options, Lessons& lessons,
                                  Console& console) {
  uint64_t bytes = 0;
  for (const std::string& file : files) bytes += listed_size(join(options.folder, file));
  Progress progress(console, files.size(), bytes);
  for (const std::string& file : files) {
    const std::string path = join(options.folder, file);
    Totals done;
    if (const auto failure = learn(path, options, lessons, done)) {
      done.failed = 1;
      console.fail(*failure);
      if (is_out_of_memory(*failure)) return std::nullopt;
    }
    progress.add(done, listed_size(path));
  }
  console.clear_status();
  return progress.totals().failed;
}

void print_summary(const l3_model_info& model, const Lessons& lessons, const Layout& layout, uint64_t not_looked_at,
                   Console& console) {
  std::string line = "model " + name_text(model.name) + ", " + std::to_string(model.size) + " bytes, for " +
                     layout.name() + ", of " + std::to_string(layout.images) +
                     (layout.images == 1 ? " image" : " images");
  if (const std::string others = lessons.left_out(layout); !others.empty()) line += "; left out: " + others;
  if (not_looked_at > 0) line += "; not looked at: " + std::to_string(not_looked_at);
  console.print(line);
}

int train(const TrainOptions& options, Context& context) {
  Console& console = context.console;
  console.set_quiet(options.quiet);
  if (!is_folder(options.folder))
    return wrong_usage(context, "train: " + one_line(options.folder) + " is not a folder");
  const Tree tree = list_tree(options.folder, Kind::foreign);
  for (const std::string& skipped : tree.skipped) console.note(skipped, kSkipped);
  for (const Failure& failure : tree.failures) console.fail(failure);
  if (tree.files.empty()) {
    console.fail({options.folder, std::nullopt, "no images in this folder"});
    return kExitFailed;
  }
  const std::vector<std::string> files = chosen_of(tree.files, options.max_images);
  Parallel parallel(options.threads);
  l3_train_options train = l3_train_options_init();
  train.effort = options.effort;
  train.tile_width = train.tile_height = options.tile;
  train.parallel = parallel.for_l3();
  train.complete = options.complete ? 1 : 0;
  Lessons lessons(train);
  const std::optional<uint64_t> failed = learn_all(files, options, lessons, console);
  if (!failed) return kExitFailed;

  std::optional<size_t> colour;
  if (!options.colour.empty()) colour = number_of(options.colour);
  const Layout* layout = lessons.most_frequent(colour, options.bits);
  if (layout == nullptr) {
    const std::string of_bits = options.bits != 0 ? " of " + Layout::bits_text(options.bits) : "";
    const std::string of_colour = colour ? std::string(" ") + kColourNames[*colour] : "";
    console.fail({options.folder, std::nullopt, "no" + of_colour + " image" + of_bits + " to learn from"});
    return kExitFailed;
  }
  if (console.stderr_is_terminal()) console.status("fitting the model");
  l3_model* opened = nullptr;
  l3_error error{};
  const l3_status status = l3_finish_training(layout->training.get(), &opened, &error);
  console.clear_status();
  if (status != L3_OK) {
    console.fail({options.folder, std::nullopt, error.reason});
    return kExitFailed;
  }
  const Model model(opened);
  const l3_model_info info = describe(model.get());
  if (auto failure = write_file(options.out, {info.bytes, info.size}, Flush::to_disk, context.unfinished)) {
    console.fail(*failure);
    return kExitFailed;
  }
  if (!options.quiet && options.out != "-") {
    print_summary(info, lessons, *layout, tree.files.size() - files.size(), console);
  }
  return *failed == 0 && tree.failures.empty() ? kExitDone : kExitFailed;
}

}  // namespace

void add_train(CommandLine& line) {
  Subcommand sub = line.command("train", "Make one model of many images, for files that share it");
  auto options = std::make_shared<TrainOptions>();
  sub.option("DIR", options->folder, "A folder of images, with all folders below it").required().type("");
  sub.option("MODEL", options->out, "The model file to write; replaced only when it is whole; - is stdout")
      .required()
      .type("");
  sub.option(kEffort, options->effort,
             "Time to spend, 1 (least) to 9 (fewest bytes; default: 5), or -1 to -9 for short")
      .type("N")
      .whole_between(1, 9);
  sub.option("--max-images", options->max_images,
             "Learn from at most so many images, spread evenly over all (default: 1000)")
      .type("N")
      .whole_between(1, UINT64_MAX);
  sub.option("--colour", options->colour, "Learn from images of this colour (default: the colour of most)")
      .one_of(kColourOptions);
  sub.option("--bits", options->bits, "Learn from images of so many bits a sample (default: the bits of most)")
      .type("N")
      .whole_between(1, 16);
  sub.flag("--complete", options->complete,
           "Give every value a code, so that the model also suits images quite unlike these; costs some percent");
  sub.option("--tile", options->tile, "Edge of the tiles that the images will be encoded with (default: 128)")
      .type("PIXELS")
      .check(check_tile);
  add_threads(sub, options->threads, "-j,--threads", "Threads to work with");
  add_quiet(sub, options->quiet);
  add_limits(sub, options->limits, true);
  sub.footer(
      "Small images that are alike become smaller when they share a model: no file has to hold one of its own. A file\n"
      "that is encoded with --model MODEL holds only the name of the model. It cannot be decoded without the model, "
      "so\n"
      "keep that.\n\n"
      "A model is for one colour (gray, gray and alpha, RGB, RGBA, palette) and one number of bits a sample: those of\n"
      "most images in DIR, or those that --colour and --bits name. Other images are left out, and a line says so.\n"
      "Label maps, masks and screens get another kind of model than photographs; train finds out which one suits.\n\n"
      "Examples:\n"
      "  l3 train icons/ icons.l3model\n"
      "  l3 convert --model icons.l3model icons/ l3s/\n"
      "  l3 verify --model icons.l3model --against icons/ l3s/\n");
  sub.run([options](Context& context) { return train(*options, context); });
}

}  // namespace tools
