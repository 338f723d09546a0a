// l3 train: makes one model from many images.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/hex.h"
#include "base/parallel.h"
#include "bridge/image_bridge.h"
#include "command_tree.h"
#include "file_io.h"
#include "image_tree.h"
#include "model_files.h"
#include "options.h"
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

// The images with one colour and number of bits, and what was learnt from them.
struct Layout {
  size_t colour;
  uint32_t bits;
  std::unique_ptr<l3_training, CloseTraining> training;
  uint64_t images = 0;

  std::string name() const { return std::string(kColourNames[colour]) + " of " + bits_text(bits); }
  static std::string bits_text(uint32_t bits) { return std::to_string(bits) + (bits == 1 ? " bit" : " bits"); }
};

// Learns from the images of each layout, because only the end shows which layout is the most frequent.
class Lessons {
 public:
  explicit Lessons(const l3_train_options& options) : options_(options) {}

  // Learns from an image. Returns why it cannot.
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

  // The layout of most images, among those with the wanted colour and bits. Null if there are none.
  const Layout* most_frequent(const std::optional<size_t>& colour, uint32_t bits) const {
    const Layout* maximum = nullptr;
    for (const Layout& layout : layouts_) {
      if (layout.images == 0 || layout.colour != colour.value_or(layout.colour)) continue;
      if (bits != 0 && layout.bits != bits) continue;
      if (maximum == nullptr || layout.images > maximum->images) maximum = &layout;
    }
    return maximum;
  }

  // The images of all other layouts, such as "2 gray of 8 bits, 1 RGB of 16 bits". Empty if there are none.
  std::string left_out(const Layout& taken) const {
    std::string text;
    for (const Layout& layout : layouts_) {
      if (&layout == &taken || layout.images == 0) continue;
      text += (text.empty() ? "" : ", ") + std::to_string(layout.images) + " " + layout.name();
    }
    return text;
  }

 private:
  // Layouts are sorted by colour and bits.
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

// Chooses at most `most` files, spread evenly over all.
std::vector<std::string> chosen_of(const std::vector<std::string>& files, uint64_t maximum) {
  if (files.size() <= maximum) return files;
  std::vector<std::string> chosen;
  for (uint64_t i = 0; i < maximum; ++i) chosen.push_back(files[i * files.size() / maximum]);
  return chosen;
}

struct Lesson {
  formats::Image image;
  uint64_t bytes;
};

Outcome<Lesson> read_lesson(const std::string& path, const l3_limits& limits) try {
  const Outcome<bridge::Buffer> file = read_file(path);
  if (!file) return file.failure();
  formats::Result<formats::Image> image = formats::read(file->bytes(), read_options(limits));
  if (!image) return failure_in(path, image.error());
  return Lesson{std::move(*image), file->size()};
} catch (...) {
  return caught(path);
}

std::optional<Failure> learn(const std::string& path, const Outcome<Lesson>& lesson, Lessons& lessons,
                             Totals& done) try {
  if (!lesson) return lesson.failure();
  const formats::Image& image = lesson->image;
  if (const auto reason = lessons.add(image)) return Failure{path, std::nullopt, *reason};
  done = {1, 0, uint64_t{image.width} * image.height, lesson->bytes, 0};
  return std::nullopt;
} catch (...) {
  return caught(path);
}

// Reads on all threads and learns in order. Returns how many images failed. Returns nothing if memory ran out, because
// a model of the other images would be a different model.
std::optional<uint64_t> learn_all(const std::vector<std::string>& files, const TrainOptions& options, Lessons& lessons,
                                  base::Parallel& parallel, Console& console) {
  uint64_t bytes = 0;
  for (const std::string& file : files) bytes += listed_size(join(options.folder, file));
  Progress progress(console, files.size(), bytes);
  std::vector<Outcome<Lesson>> batch;
  for (size_t i = 0; i < files.size(); ++i) {
    const auto path_of = [&](size_t number) { return join(options.folder, files[number]); };
    const size_t place = i % parallel.threads();
    if (place == 0) {
      batch.assign(std::min<size_t>(parallel.threads(), files.size() - i), Failure{});
      parallel.for_each(batch.size(), [&](uint64_t k) { batch[k] = read_lesson(path_of(i + k), options.limits); });
    }
    const std::string path = path_of(i);
    Totals done;
    if (const auto failure = learn(path, batch[place], lessons, done)) {
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
  std::string line = "model " + base::hexadecimal(model.name) + ", " + std::to_string(model.size) + " bytes, for " +
                     layout.name() + ", made from " + std::to_string(layout.images) +
                     (layout.images == 1 ? " image" : " images");
  if (const std::string others = lessons.left_out(layout); !others.empty()) line += "; ignored: " + others;
  if (not_looked_at > 0) line += "; not read: " + std::to_string(not_looked_at);
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
    console.fail({options.folder, std::nullopt, "this folder has no images"});
    return kExitFailed;
  }
  const std::vector<std::string> files = chosen_of(tree.files, options.max_images);
  base::Parallel parallel(options.threads);
  l3_train_options train = l3_train_options_init();
  train.effort = options.effort;
  train.tile_width = train.tile_height = options.tile;
  train.parallel = parallel.for_l3();
  train.complete = options.complete ? 1 : 0;
  Lessons lessons(train);
  const std::optional<uint64_t> failed = learn_all(files, options, lessons, parallel, console);
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
  Subcommand sub = line.command("train", "Make a model that many small images share");
  auto options = std::make_shared<TrainOptions>();
  sub.option("DIR", options->folder, "A folder of images, with all folders below it").required().type("").local();
  sub.option("MODEL", options->out, "The model file to write, or - for stdout").required().type("").local();
  sub.option(kEffort, options->effort, "Effort from 1 (fastest) to 9 (smallest files), also as -1 to -9 (default: 5)")
      .type("N")
      .whole_between(1, 9);
  sub.option("--max-images", options->max_images, "Learn from at most N images, spread evenly over all (default: 1000)")
      .type("N")
      .whole_between(1, UINT64_MAX);
  sub.option("--colour", options->colour, "Learn only from images of this colour (default: that of most images)")
      .one_of(kColourOptions);
  sub.option("--bits", options->bits, "Learn only from images with N bits for each sample (default: as most images)")
      .type("N")
      .whole_between(1, 16);
  sub.flag("--complete", options->complete, "Also suit images that are quite different; costs some percent of size");
  sub.option("--tile", options->tile, "The value of --tile that images will be encoded with (default: 128)")
      .type("PIXELS")
      .check(check_tile);
  add_threads(sub, options->threads, "-j,--threads", "Number of threads");
  add_quiet(sub, options->quiet);
  add_limits(sub, options->limits, true);
  sub.examples(
      "  l3 train icons/ icons.l3model\n"
      "  l3 convert --files --model icons.l3model icons/ l3s/\n"
      "  l3 verify --model icons.l3model --against icons/ l3s/\n");
  sub.footer(
      "A file that is encoded with --model MODEL does not contain the model, only its name. It cannot be decoded\n"
      "without the model: keep the model file. Data sets need no l3 train: l3 convert makes shared models by "
      "itself.\n");
  sub.manual(
      "Small images that look alike become smaller if they share a model, because then no file has to contain its\n"
      "own.\n\n"
      "A model is for one colour (gray, gray and alpha, RGB, RGBA or palette) and one number of bits for each sample:\n"
      "those of most images in DIR, or those that --colour and --bits name. Other images are ignored, and the summary\n"
      "counts them. Label maps, masks and screenshots need another kind of model than photographs; train finds out\n"
      "which kind suits the images.\n\n"
      "With --complete, the model has a code for every value of a sample.\n");
  sub.run([options](Context& context) { return train(*options, context); });
}

}  // namespace tools
